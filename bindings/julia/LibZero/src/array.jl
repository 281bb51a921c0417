# Arrays as C sees them: Julia's given to it, and its memory as Julia's.

address_of(::Nothing) = C_NULL
address_of(data) = throw(ArgumentError("an array is needed, not a $(typeof(data))"))
function address_of(data::AbstractArray)
    is_contiguous(data) || throw(ArgumentError(
        "the elements of a $(typeof(data)) do not lie side by side in memory that may be written; give a copy"))
    address = pointer(data)
    isempty(data) || UInt(address) % sizeof(eltype(data)) == 0 || throw(ArgumentError(
        "the elements of a $(typeof(data)) do not lie at multiples of their $(sizeof(eltype(data))) bytes; give a copy"))
    return Ptr{Cvoid}(address)
end

length_of(::Nothing) = 0
length_of(data::AbstractArray) = length(data)

is_contiguous(::AbstractArray) = false
is_contiguous(::Array) = true
function is_contiguous(data::StridedArray)
    is_text(data) && return false
    expected = 1
    for (extent, stride) in zip(size(data), strides(data))
        extent == 1 || stride == expected || return false
        expected *= extent
    end
    return true
end

"Whether elements are those of a String, which never changes."
is_text(::Base.CodeUnits) = true
is_text(data::AbstractArray) = parent(data) !== data && is_text(parent(data))

"The arrays in an object's memory, without keeping them alive."
mutable struct Lent
    arrays::Vector{WeakRef}
    enough::Int # arrays to have before the dead ones are looked for
end
Lent() = Lent(WeakRef[], 64)

is_alive(array::WeakRef) = array.value !== nothing
is_lent(lent::Lent) = any(is_alive, lent.arrays)

function remember!(lent::Lent, array::Array)
    if length(lent.arrays) >= lent.enough
        filter!(is_alive, lent.arrays)
        lent.enough = max(64, 2 * length(lent.arrays))
    end
    push!(lent.arrays, WeakRef(anchor(array)))
    return array
end

"What lives as long as anything that uses the array's memory: since Julia 1.11, `vec` and `reshape` keep its Memory and not the Array."
anchor(array::Array) = isdefined(Core, :Memory) ? getfield(getfield(array, :ref), :mem) : array

"""
An object's memory as an Array. The caller preserves the object from the call that gave the address until the Array is remembered: to the
compiler it ends with its last use, and a collection in between would close it.
"""
function lend(object, ::Type{T}, data::Ptr{Cvoid}, dims::Dims{N}) where {T,N}
    prod(dims) == 0 && return Array{T,N}(undef, dims)
    return remember!(object.lent, unsafe_wrap(Array, Ptr{T}(data), dims))
end
