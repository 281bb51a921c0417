# Optimizers: how they are made, and what is agreed before seal!.

"What an optimizer's Julia side knows of a tensor."
mutable struct Tensor
    name::String
    holder::Int64              # the tensor whose memory it shares: itself, unless it is tied
    grad_type::Type
    acquired::Int              # of the holder: acquires without release
    destinations::Vector{Any}  # of the holder: arrays that may be handed out again until the last release
end

"""
    Optimizer(group; options...)
    Optimizer(group, config)
    Optimizer(f, group, ...)

A ZeRO optimizer over the ranks of a group, which it keeps alive. Its life: `add_param!` ..., `seal!`, first values, `begin!`; then for each
step `acquire` / `release` around use of parameters, `grad_acquire`, `grad_ready`, `step!`. Options (zero/config.h, keys 300 to 499), for
example `stage = 3, algorithm = "adamw", lr = 1e-3`. With a function `f`, the optimizer is closed when `f(optimizer)` has ended.

All ranks make the same calls in the same order, one task per rank at a time. `close` lets other tasks run while it waits for parameters
that are being gathered.
"""
mutable struct Optimizer <: Object
    handle::Handle
    open::Bool
    alone::Bool
    grad_dtype::Any          # of parameters that do not say: a value of ZERO_KEY_GRAD_DTYPE
    tensors::Vector{Tensor}  # by id
    lent::Lent
    saving::Any              # the last save of the run, of a checkpoint too
    device::Int64            # whose memory it takes; -1: of the host alone
    on_device::Bool          # its own memory lies there
    stream::Ptr{Cvoid}       # of that device; C_NULL: the default one

    function Optimizer(group::Group, config::Config)
        alone = group_size(group) == 1
        handle = zero_optimizer_create(group, config)
        device, tier = integer_in(config, ZERO_KEY_DEVICE, -1), integer_in(config, ZERO_KEY_TIER, ZERO_TIER_HOST)
        return finalizer(close_later, new(handle, true, alone, grad_dtype_in(config, 0), Tensor[], Lent(), nothing, device,
                                          tier == ZERO_TIER_DEVICE, C_NULL))
    end
end

Optimizer(group::Group; options...) = with(config -> Optimizer(group, config), Config(; options...))
Optimizer(f::Function, arguments...; options...) = with(f, Optimizer(arguments...; options...))

# Releasing waits for gathers that run ahead, which other ranks may have yet to join: ranks that may be tasks of this very thread.
give_back(optimizer::Optimizer) = call_apart(entry(libzero.zero_optimizer_release), optimizer.handle)
is_lent(optimizer::Optimizer) = is_lent(optimizer.lent)

"""
    set_stream!(optimizer, stream)

The stream of the optimizer's device (a `cudaStream_t` as a `Ptr`) that calls are made with from now on; `C_NULL` is the default stream.
Memory of the device is read and written after all work that the stream was given before a call; what it is given after a call sees the
results. With `tier = :device`, memory that calls were given stays until the stream's work has ended. The stream exists for as long as a
parameter that was acquired with it is held.
"""
function set_stream!(optimizer::Optimizer, stream)
    optimizer.stream = Ptr{Cvoid}(stream)
    return optimizer
end

"""
    add_set!(optimizer; options...)
    add_set!(optimizer, config)

Makes a parameter set: parameters that share an algorithm and hyper-parameters (`algorithm`, keys 400 to 499). Returns its number, which
parameters take as `set = number`. Set 0 has the optimizer's own.
"""
add_set!(optimizer::Optimizer, config::Config) = zero_optimizer_add_set(optimizer, config)
add_set!(optimizer::Optimizer; options...) = with(config -> add_set!(optimizer, config), Config(; options...))

"""
    set_model_group!(optimizer, group)

Names the ranks over which the model is cut (tensor, pipeline or expert parallel): norm, clipping and the decision to skip are then those of
the whole model. The optimizer keeps the group alive.
"""
set_model_group!(optimizer::Optimizer, group::Group) = zero_optimizer_set_model_group(optimizer, group)

"""
    set_order!(optimizer, params)

Gives the order in which gradients become ready; every parameter once. Default: the last registered first.
"""
set_order!(optimizer::Optimizer, params) = zero_optimizer_set_order(optimizer, ids(optimizer, params))

"""
    set_gather_order!(optimizer, params)

Gives the order in which the first step of stage 3 acquires parameters, so that they are gathered ahead.
"""
set_gather_order!(optimizer::Optimizer, params) = zero_optimizer_set_gather_order(optimizer, ids(optimizer, params))

ids(optimizer, params) = Int64[id(optimizer, param) for param in params]

"""
    seal!(optimizer)

Cuts the parameters into shards, agrees with all ranks, and allocates everything. A collective.
"""
seal!(optimizer::Optimizer) = zero_optimizer_seal(optimizer)

"""
    optimizer[key]
    optimizer[key, set]
    optimizer[key] = value
    optimizer[key, set] = value

Hyper-parameters of a parameter set (keys 400 to 499, `:loss_scale`), from the next step on, and scalars of the run (keys 500 to 599, for
example `:step_count`); the same on all ranks, and not set between `reduce!` and `gather!`.
"""
function Base.getindex(optimizer::Optimizer, key, set::Integer = 0)
    number = code(KEY, key)
    counts(number) ? zero_optimizer_get_i64(optimizer, number) : zero_optimizer_get_f64(optimizer, set, number)
end

function Base.setindex!(optimizer::Optimizer, value::Real, key, set::Integer = 0)
    number = code(KEY, key)
    counts(number) ? zero_optimizer_set_i64(optimizer, number, value) : zero_optimizer_set_f64(optimizer, set, number, value)
    return optimizer
end

"Scalars of the run are integers."
counts(key::Int32) = key >= ZERO_KEY_STEP_COUNT
