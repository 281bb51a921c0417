# The 16-bit float that Julia does not have.

"""
    BFloat16(x)

The upper half of a `Float32`: 8 bits of exponent, 8 of precision. Conversion goes through `Float32` and rounds to nearest, ties to even;
arithmetic is done in `Float32` and rounded. `reinterpret(UInt16, x)` gives the bits.
"""
primitive type BFloat16 <: AbstractFloat 16 end

dtype(::Type{BFloat16}) = ZERO_DTYPE_BF16

function BFloat16(x::Float32)
    bits = reinterpret(UInt32, x)
    isnan(x) && return reinterpret(BFloat16, (bits >> 16) % UInt16 | 0x0040)
    bits += 0x00007fff + ((bits >> 16) & 0x00000001)
    return reinterpret(BFloat16, (bits >> 16) % UInt16)
end
BFloat16(x::BFloat16) = x
BFloat16(x::Real) = BFloat16(Float32(x))

Base.Float32(x::BFloat16) = reinterpret(Float32, UInt32(reinterpret(UInt16, x)) << 16)
Base.Float64(x::BFloat16) = Float64(Float32(x))
Base.Float16(x::BFloat16) = Float16(Float32(x))

Base.promote_rule(::Type{BFloat16}, ::Type{T}) where {T<:Union{Float32,Float64}} = T
Base.promote_rule(::Type{BFloat16}, ::Type{Float16}) = Float32
Base.promote_rule(::Type{BFloat16}, ::Type{<:Integer}) = BFloat16

for operation in (:+, :-, :*, :/, :^)
    @eval Base.$operation(a::BFloat16, b::BFloat16) = BFloat16($operation(Float32(a), Float32(b)))
end
for relation in (:(==), :<, :<=, :isless)
    @eval Base.$relation(a::BFloat16, b::BFloat16) = $relation(Float32(a), Float32(b))
end
for property in (:isnan, :isinf, :isfinite, :signbit)
    @eval Base.$property(x::BFloat16) = $property(Float32(x))
end
Base.:-(x::BFloat16) = reinterpret(BFloat16, xor(reinterpret(UInt16, x), 0x8000))
Base.abs(x::BFloat16) = reinterpret(BFloat16, reinterpret(UInt16, x) & 0x7fff)
Base.hash(x::BFloat16, h::UInt) = hash(Float32(x), h)
Base.show(io::IO, x::BFloat16) = print(io, "BFloat16(", Float32(x), ")")
