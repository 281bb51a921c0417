# Words of the lines, and the values that scenarios work on.

"One line: words are joined by blanks, nothing is a dash."
function say(name, words...)
    said = Iterators.filter(!isnothing, Iterators.flatten((word isa AbstractVector ? word : (word,)) for word in words))
    println(name, ": ", isempty(said) ? "-" : join(said, " "))
end

bits(value::Float64) = string(reinterpret(UInt64, value); base = 16, pad = 16)

function hash_of(array)
    hash = 0xcbf29ce484222325
    for byte in reinterpret(UInt8, vec(array))
        hash = (hash ⊻ byte) * 0x00000100000001b3
    end
    return "#" * string(hash; base = 16, pad = 16)
end

"The error of a call, with its text; ZERO_OK when there is none."
error_of(call) = report(error -> "$(error.name): $(error.text)", call)

"The status of a call."
status_of(call) = report(error -> error.name, call)

function report(describe, call)
    try
        call()
        return "ZERO_OK"
    catch error
        error isa ZeroError || rethrow()
        return describe(error)
    end
end

"v(i, series) of bindings/conformance/README.md for i = 0 .. count - 1."
values_of(::Type{T}, count, series) where {T} = T[value_of(T, mod(7i + 13series, 97)) for i in 0:count-1]
value_of(::Type{T}, k) where {T<:AbstractFloat} = T((k - 48) / 16)
value_of(::Type{T}, k) where {T<:Signed} = T(k - 48)
value_of(::Type{UInt8}, k) = UInt8(k)
