# Errors that libzero reports, and texts that it fills in.

"""
    ZeroError

What libzero reported: `code` and its `name` (zero/status.h lists them, for example `"ZERO_E_TIMEOUT"`), and the `text` that says what was
given, what was expected and, for a group, the rank and the operation.
"""
struct ZeroError <: Exception
    code::Int32
    name::String
    text::String
end

Base.showerror(io::IO, error::ZeroError) = print(io, error.name, ": ", error.text)

"No text of an error is longer."
const ERROR_NBYTES = 4096

"""
The error of the call that has just failed. libzero keeps its text by thread, and tasks change threads only where they yield: nothing may
yield between the call and this one.
"""
@noinline function last_error(status::Int32)
    bytes = Vector{UInt8}(undef, ERROR_NBYTES)
    last = ccall(entry(libzero.zero_last_error_copy), Int32, (Ptr{UInt8}, Int64), bytes, length(bytes))
    name = zero_status_name(status)
    return ZeroError(status, name, last == status ? text_in(bytes) : name) # calls that a signal handler may make leave no text
end

check(status::Int32) = status == ZERO_OK ? nothing : throw(last_error(status))

"The text at the beginning of the bytes, up to its NUL."
text_in(bytes::Vector{UInt8}) = GC.@preserve bytes unsafe_string(pointer(bytes))

"""
A text that `fill(out, out_nbytes, out_needed)` gives a piece of. It may grow between two calls.
"""
function text(fill)
    needed = Ref(Int64(1024))
    while true
        bytes = Vector{UInt8}(undef, needed[])
        check(fill(bytes, length(bytes), needed))
        needed[] <= length(bytes) && return text_in(bytes)
    end
end
