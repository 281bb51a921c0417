# Parameters: registering tensors, and the addresses of whole ones.

"""
    Parameter{T,N,G}

A tensor of an optimizer: elements of `T` in `N` dimensions, with a gradient of elements of `G`. Made by [`add_param!`](@ref).
"""
struct Parameter{T,N,G}
    id::Int64
    dims::NTuple{N,Int}
    owner::Handle
end

Base.size(param::Parameter) = param.dims
Base.length(param::Parameter) = prod(param.dims)
Base.eltype(::Type{<:Parameter{T}}) where {T} = T
Base.ndims(::Parameter{T,N}) where {T,N} = N

"""
    add_param!(optimizer, name, T, dims; options...)
    add_param!(optimizer, name, T, dims, config)

Registers a tensor of `T` (`Float32`, `Float16` or `BFloat16`) and returns it as a [`Parameter`](@ref). `dims` are those of the Julia Array;
libzero, and trainers in other languages, see them reversed. Options (zero/config.h, keys 350 to 399), for example `frozen = true`,
`grad_dtype = Float32` or `tied_to = embedding`.
"""
function add_param!(optimizer::Optimizer, name::AbstractString, ::Type{T}, dims::Dims{N}, config::Config) where {T,N}
    check_tie(optimizer, config)
    number = zero_optimizer_add_param(optimizer, config, name, dtype(T), c_shape(dims))
    grad_type = add_tensor(optimizer, number, name, T, config).grad_type
    return Parameter{T,N,grad_type}(number, dims, optimizer.handle)
end

add_param!(optimizer::Optimizer, name::AbstractString, T::Type, dims, config::Config) =
    add_param!(optimizer, name, T, as_dims(dims), config)
add_param!(optimizer::Optimizer, name::AbstractString, T::Type, dims; options...) =
    with(config -> add_param!(optimizer, name, T, dims, config), Config(; options...))

as_dims(count::Integer) = (Int(count),)
as_dims(dims) = Dims(dims)

"Throws where a tensor is tied to one of another optimizer, whose number names another tensor here."
function check_tie(optimizer, config)
    tied_to = get(config.values, ZERO_KEY_TIED_TO, nothing)
    tied_to isa Parameter && id(optimizer, tied_to)
    return nothing
end

"Julia's dimensions as C counts them."
c_shape(dims::Dims) = collect(Int64, reverse(dims))

function add_tensor(optimizer, number, name, T, config)
    holder = Int64(get(config.values, ZERO_KEY_TIED_TO, number))
    grad_type = holder == number ? grad_type_of(T, grad_dtype_in(config, optimizer.grad_dtype)) : optimizer.tensors[holder+1].grad_type
    push!(optimizer.tensors, Tensor(name, holder, grad_type, 0, Any[]))
    return last(optimizer.tensors)
end

"The value of ZERO_KEY_GRAD_DTYPE in a config, or what stands for it."
grad_dtype_in(config::Config, otherwise) = get(config.values, ZERO_KEY_GRAD_DTYPE, otherwise)

grad_type_of(T, G::Type) = G
grad_type_of(T, name) = (number = code(DTYPE, name); number == 0 ? T : element_type(number))

set_value(config, key, value::Parameter) = set_integer(config, key, value.id)
Base.Int64(param::Parameter) = param.id

"The number of a parameter of this optimizer: only of its own does an optimizer know dimensions and types."
function id(optimizer::Optimizer, param::Parameter)
    param.owner == optimizer.handle || throw(ArgumentError("parameter $(param.id) belongs to another optimizer"))
    return param.id
end

"How texts name a parameter."
name_in(optimizer::Optimizer, param::Parameter) = optimizer.tensors[id(optimizer, param)+1].name

"The number of the tensor whose memory a parameter has."
holder_id(optimizer, param) = optimizer.tensors[id(optimizer, param)+1].holder

holder(optimizer, param) = optimizer.tensors[holder_id(optimizer, param)+1]

"""
    acquire(optimizer, param)
    acquire(f, optimizer, params...)

The whole tensor in libzero's memory, valid until `release(optimizer, param)`, or while `f(arrays...)` runs. After `begin!` it is read-only.
With `tier = :device` it is a [`DeviceArray`](@ref), and so are gradients and views.
In stage 3 it is gathered from the shards: all ranks acquire the same tensors in the same order.
"""
acquire(optimizer::Optimizer, param::Parameter{T}) where {T} = GC.@preserve optimizer begin
    data = acquire_at(optimizer, param, nothing)
    lend_tensor(optimizer, T, data, param.dims)
end

function acquire(f::Function, optimizer::Optimizer, param::Parameter, params::Parameter...)
    array = acquire(optimizer, param)
    try
        return isempty(params) ? f(array) : acquire((arrays...) -> f(array, arrays...), optimizer, params...)
    finally
        release(optimizer, param)
    end
end

"""
    acquire!(optimizer, param, destination)

As [`acquire`](@ref), into an array of the caller's, or a [`DeviceArray`](@ref): a vector, or of the tensor's size. It stays in use until
`release(optimizer, param)`.
"""
function acquire!(optimizer::Optimizer, param::Parameter{T}, destination::Union{AbstractArray,DeviceArray}) where {T}
    of = name_in(optimizer, param)
    check_eltype(T, destination, of)
    check_dims(param.dims, destination, of)
    acquire_at(optimizer, param, destination)
    return destination
end

"""
Acquires a tensor, into a destination unless that is `nothing`. It counts as acquired before C is asked, and only a refusal takes that back:
whatever else interrupts the call does not end it, and the destination may yet stand for the parameter.
"""
function acquire_at(optimizer::Optimizer, param::Parameter, destination)
    number, tensor, place = id(optimizer, param), holder(optimizer, param), native(optimizer, destination)
    tensor.acquired += 1
    destination === nothing || push!(tensor.destinations, destination)
    try
        return zero_optimizer_param_acquire(optimizer, number, place, optimizer.stream)
    catch error
        if error isa Union{ZeroError,ArgumentError}
            tensor.acquired -= 1
            destination === nothing || pop!(tensor.destinations)
        end
        rethrow()
    end
end

"""
    release(optimizer, param)

Ends one `acquire`. Never waits.
"""
function release(optimizer::Optimizer, param::Parameter)
    zero_optimizer_param_release(optimizer, id(optimizer, param))
    tensor = holder(optimizer, param)
    tensor.acquired -= 1
    tensor.acquired == 0 && empty!(tensor.destinations)
    return nothing
end

"""
    ModuleBuffer{T,N}

A tensor that is no parameter but belongs to the model. Made by [`add_module_buffer!`](@ref).
"""
struct ModuleBuffer{T,N}
    id::Int64
    dims::NTuple{N,Int}
    owner::Handle
end

"""
    add_module_buffer!(optimizer, name, T, dims, rule = :none)

Registers a tensor that is no parameter but belongs to the model, for example statistics of a batch normalisation; every rank keeps all of
it. `rule` says how ranks are brought in line: `:none`, `:average` or `:broadcast`.
"""
function add_module_buffer!(optimizer::Optimizer, name::AbstractString, ::Type{T}, dims, rule = :none) where {T}
    extents = as_dims(dims)
    number = zero_optimizer_add_module_buffer(optimizer, name, dtype(T), c_shape(extents), code(SYNC, rule))
    return ModuleBuffer{T,length(extents)}(number, extents, optimizer.handle)
end

"""
    module_buffer(optimizer, buffer)

The tensor in libzero's memory, the caller's to write from `seal!` on.
"""
module_buffer(optimizer::Optimizer, buffer::ModuleBuffer{T}) where {T} = GC.@preserve optimizer begin
    buffer.owner == optimizer.handle || throw(ArgumentError("module buffer $(buffer.id) belongs to another optimizer"))
    data, _ = zero_optimizer_module_buffer(optimizer, buffer.id)
    lend(optimizer, T, data, buffer.dims)
end

"""
    sync_module_buffers!(optimizer)

Brings all module buffers in line by their rules. A collective.
"""
sync_module_buffers!(optimizer::Optimizer) = zero_optimizer_sync_module_buffers(optimizer, optimizer.stream)
