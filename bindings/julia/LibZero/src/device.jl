# Memory of CUDA devices: where it lies. Julia never reads it.

"""
    DeviceArray{T,N}
    DeviceArray{T}(address, dims, device = 0; owner = nothing)

Elements of `T` in memory of a CUDA device: an address with its device and size. It is no `AbstractArray`, because Julia cannot read the
elements. `owner` is kept for as long as this is; the caller answers for the address. An optimizer with `device = number` takes it for
gradients and destinations of parameters; with `tier = :device` it returns its own memory so.
"""
struct DeviceArray{T,N}
    address::Ptr{T}
    dims::NTuple{N,Int}
    device::Int
    owner::Any
end

DeviceArray{T}(address, dims, device = 0; owner = nothing) where {T} =
    (extents = as_dims(dims); DeviceArray{T,length(extents)}(Ptr{T}(address), extents, device, owner))

Base.size(data::DeviceArray) = data.dims
Base.length(data::DeviceArray) = prod(data.dims)
Base.ndims(::DeviceArray{T,N}) where {T,N} = N
Base.eltype(::Type{<:DeviceArray{T}}) where {T} = T
Base.pointer(data::DeviceArray) = data.address
Base.show(io::IO, data::DeviceArray{T}) where {T} =
    print(io, "DeviceArray of ", join(data.dims, "x"), " ", T, " at ", UInt(data.address), " on device ", data.device)

check_eltype(expected::Type, data::DeviceArray, of...) =
    layout(eltype(data)) == layout(expected) ||
        throw(ArgumentError("memory of $(eltype(data)) is given, but $(string(of...)) has elements of $expected"))

function check_dims(dims::Dims, data::DeviceArray, of...)
    ndims(data) > 1 && length(data) == prod(dims) && size(data) != dims &&
        throw(ArgumentError("memory of size $(size(data)) is given, but $(string(of...)) has size $dims; give that size, or a vector"))
    return nothing
end

"Memory of a device as calls of C take it; it keeps what it names."
struct Place
    data::DeviceArray
end

address_of(place::Place) = Ptr{Cvoid}(place.data.address)
length_of(place::Place) = length(place.data)

"What generated functions take: arrays as they are, memory of the optimizer's device as its place."
native(optimizer, data) = data
native(optimizer, data::DeviceArray) = Place(checked(optimizer, data))

"Throws unless memory is of the optimizer's device: C would take it for memory of the host where the optimizer has no device."
function checked(optimizer, data::DeviceArray)
    if data.device != optimizer.device || data.device < 0
        has = optimizer.device < 0 ? "no device" : "device $(optimizer.device)"
        throw(ArgumentError("the memory lies on CUDA device $(data.device), but the optimizer has $has"))
    end
    UInt(data.address) % sizeof(eltype(data)) == 0 ||
        throw(ArgumentError("the elements do not lie at multiples of their $(sizeof(eltype(data))) bytes"))
    return data
end

"A tensor's memory where the optimizer keeps it: an Array, or memory of its device, which keeps the optimizer."
lend_tensor(optimizer, ::Type{T}, data::Ptr{Cvoid}, dims::Dims) where {T} =
    optimizer.on_device ? DeviceArray{T}(data, dims, optimizer.device; owner = optimizer) : lend(optimizer, T, data, dims)
