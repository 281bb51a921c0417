# Element types and the numbers that C knows them by.

"""
    LibZero.dtype(T)

The number of an element type. Another package's type of the same layout takes part with a method of its own, for example
`LibZero.dtype(::Type{TheirBFloat16}) = LibZero.ZERO_DTYPE_BF16`.
"""
dtype(::Type{Float32}) = ZERO_DTYPE_F32
dtype(::Type{Float64}) = ZERO_DTYPE_F64
dtype(::Type{Float16}) = ZERO_DTYPE_F16
dtype(::Type{Int32}) = ZERO_DTYPE_I32
dtype(::Type{Int64}) = ZERO_DTYPE_I64
dtype(::Type{UInt8}) = ZERO_DTYPE_U8
dtype(::Type{T}) where {T} = throw(ArgumentError(
    "libzero has no element type for $T; there are Float32, Float64, Float16, LibZero.BFloat16, Int32, Int64 and UInt8"))

"The type of a slot's entries. 8-bit floats are handed over as their bytes."
function element_type(number::Integer)
    number == ZERO_DTYPE_F32 && return Float32
    number == ZERO_DTYPE_F64 && return Float64
    number == ZERO_DTYPE_F16 && return Float16
    number == ZERO_DTYPE_BF16 && return BFloat16
    number == ZERO_DTYPE_I32 && return Int32
    number == ZERO_DTYPE_I64 && return Int64
    number == ZERO_DTYPE_U16 && return UInt16
    number in (ZERO_DTYPE_U8, ZERO_DTYPE_F8_E4M3, ZERO_DTYPE_F8_UE5M3) && return UInt8
    throw(ArgumentError("no element type has the number $number here; libzero is newer than this package"))
end

"Throws where an array has other elements than those that are there: libzero could not know."
function check_eltype(expected::Type, data::AbstractArray, of...)
    layout(eltype(data)) == layout(expected) ||
        throw(ArgumentError("an array of $(eltype(data)) is given, but $(string(of...)) has elements of $expected"))
    return nothing
end
check_eltype(::Type, ::Nothing, of...) = nothing

"Throws where an array covers a tensor but has other dimensions, so that its elements would come in another order. It may be flat."
function check_dims(dims::Dims, data::AbstractArray, of...)
    ndims(data) > 1 && length(data) == prod(dims) && size(data) != dims &&
        throw(ArgumentError("an array of size $(size(data)) is given, but $(string(of...)) has size $dims; give that size, or a vector"))
    return nothing
end

"Types of one number have one layout. Entries of slots have types that arrays of collectives do not."
layout(::Type{UInt16}) = ZERO_DTYPE_U16
layout(::Type{T}) where {T} = dtype(T)
