# Gradients of a step.

"""
    grad_acquire(optimizer, param)
    grad_acquire(f, optimizer, param)

Where the tensor's gradient goes, in libzero's memory, and whether to add to what is there (`true`) or to overwrite it. Valid until
[`grad_ready`](@ref) has the whole tensor; with a function, `f(array, accumulate)` fills it, and it is then ready. Acquired again before
that, it says `true` also when nothing was written.

Other ranks of this thread run first: in stages 2 and 3 a bucket may have to wait for the reduction of an earlier one. libzero waits for
that at most a second before it takes more memory, but up to the deadline where `pool_limit` forbids that. So with that limit, or without
`overlap`, let ranks be processes.
"""
grad_acquire(optimizer::Optimizer, param::Parameter{T,N,G}) where {T,N,G} = GC.@preserve optimizer begin
    number = id(optimizer, param)
    let_ranks_catch_up(optimizer)
    data, accumulate = zero_optimizer_grad_acquire(optimizer, number, optimizer.stream)
    lend_tensor(optimizer, G, data, param.dims), accumulate == 1
end

function grad_acquire(f::Function, optimizer::Optimizer, param::Parameter)
    array, accumulate = grad_acquire(optimizer, param)
    result = f(array, accumulate)
    grad_ready(optimizer, param)
    return result
end

"""
    grad_ready(optimizer, param, range = 1:length(param))
    grad_ready(optimizer, param, grad, first = 1)

Says that elements of the tensor's gradient are final for this step: those at `range` of the acquired array, or those from `first` on, which
are copied out of `grad`, an array or a [`DeviceArray`](@ref). A `grad` that covers the tensor is a vector or has its size. Each element is
given once per step, in ranges of any order.
"""
function grad_ready(optimizer::Optimizer, param::Parameter, range::AbstractUnitRange{<:Integer} = 1:length(param))
    zero_optimizer_grad_ready(optimizer, id(optimizer, param), C_NULL, first(range) - 1, length(range), optimizer.stream)
end

function grad_ready(optimizer::Optimizer, param::Parameter{T,N,G}, grad::AbstractArray, first::Integer = 1) where {T,N,G}
    number, of = id(optimizer, param), ("the gradient of ", name_in(optimizer, param))
    check_eltype(G, grad, of...)
    check_dims(param.dims, grad, of...)
    let_ranks_catch_up(optimizer)
    GC.@preserve grad zero_optimizer_grad_ready(optimizer, number, address_of(grad), first - 1, length(grad), optimizer.stream)
end

function grad_ready(optimizer::Optimizer, param::Parameter{T,N,G}, grad::DeviceArray, first::Integer = 1) where {T,N,G}
    number, of = id(optimizer, param), ("the gradient of ", name_in(optimizer, param))
    check_eltype(G, grad, of...)
    check_dims(param.dims, grad, of...)
    address = address_of_some(native(optimizer, grad))
    let_ranks_catch_up(optimizer)
    GC.@preserve grad zero_optimizer_grad_ready(optimizer, number, address, first - 1, length(grad), optimizer.stream)
end

"Where elements lie. C takes NULL for memory that was acquired, so no elements lie somewhere too."
address_of_some(place::Place) = length_of(place) == 0 ? Ptr{Cvoid}(UInt(1)) : address_of(place)

"""
    grad_ready_rows(optimizer, param, rows, values)

Gives the whole gradient of a tensor with `rows = 1` by the slices along its last dimension, which libzero sees as its first: `values` has
one after the other for each of the numbers `rows`, from 1 on. Others are zero, and one that is given several times is added up.
"""
function grad_ready_rows(
    optimizer::Optimizer, param::Parameter{T,N,G}, rows::AbstractVector{<:Integer}, values::AbstractArray
) where {T,N,G}
    number, name = id(optimizer, param), name_in(optimizer, param)
    check_eltype(G, values, "the gradient of ", name)
    given, expected = length(values), length(rows) * prod(param.dims[1:end-1])
    given == expected || throw(DimensionMismatch("$given elements are given, but $(length(rows)) slices of $name have $expected"))
    let_ranks_catch_up(optimizer)
    numbers = collect(Int64, rows) .- 1
    GC.@preserve values zero_optimizer_grad_ready_rows(optimizer, number, numbers, address_of(values), length(rows), optimizer.stream)
end

"""
    grads_ready(optimizer, params, grads)

Gives the whole gradients of several tensors in one call, in their order, as [`grad_ready`](@ref) gives one. Where it fails at one of them,
those before it are given. Other ranks of this thread run before the call, not between its gradients: with buckets that are small for the
model, in stages 2 and 3, give fewer at a time or let ranks be threads.
"""
function grads_ready(optimizer::Optimizer, params::AbstractVector{<:Parameter}, grads::AbstractVector)
    length(params) == length(grads) ||
        throw(ArgumentError("there are $(length(params)) parameters, but $(length(grads)) gradients"))
    numbers = Int64[id(optimizer, param) for param in params]
    kept = collect(grads)
    places = Ptr{Cvoid}[place_of(optimizer, param, grad) for (param, grad) in zip(params, kept)]
    let_ranks_catch_up(optimizer)
    GC.@preserve kept zero_optimizer_grads_ready(optimizer, numbers, places, optimizer.stream)
end

"Where the whole gradient of a tensor lies."
function place_of(optimizer::Optimizer, param::Parameter{T,N,G}, grad::Union{AbstractArray,DeviceArray}) where {T,N,G}
    of = "the gradient of ", name_in(optimizer, param)
    check_eltype(G, grad, of...)
    check_dims(param.dims, grad, of...)
    length(grad) == length(param) ||
        throw(ArgumentError("the array has $(length(grad)) elements, but $(string(of...)) has $(length(param))"))
    return grad isa DeviceArray ? address_of_some(native(optimizer, grad)) : address_of(grad)
end

"A rank that ran ahead would find no free bucket, and keep the others on its thread from giving theirs."
let_ranks_catch_up(optimizer::Optimizer) = optimizer.alone ? nothing : yield()

"""
    set_weight!(optimizer, weight)

This rank's weight in the step under way, or behind `micro_step!` in that micro-step, for example the samples of its batch. Before its
first `grad_ready`; needs `divisor = :weights`.
"""
set_weight!(optimizer::Optimizer, weight::Real) = zero_optimizer_set_weight(optimizer, weight)

"""
    micro_step!(optimizer, kind)

Begins a part of a step: `:local` (gradients are added up on this rank), `:reduce` (reduced and added up in shards) or `:last` (reduced with
all that came before; the step follows). A step of one part needs no call. A collective.
"""
micro_step!(optimizer::Optimizer, kind) = zero_optimizer_micro_step(optimizer, code(MICRO_STEP, kind), optimizer.stream)
