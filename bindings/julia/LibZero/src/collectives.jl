# Collectives and messages of a group.

"The number of the elements that travel; arrays must agree in it."
function shared_dtype(send::AbstractArray, recv::AbstractArray)
    check_eltype(eltype(send), recv, "what is sent")
    return dtype(eltype(send))
end
shared_dtype(send::AbstractArray, ::Nothing) = dtype(eltype(send))
shared_dtype(::Nothing, recv::AbstractArray) = dtype(eltype(recv))
shared_dtype(send, recv) = throw(ArgumentError("arrays are needed, not a $(typeof(send)) and a $(typeof(recv))"))

"""
    all_reduce!(group, data, op)
    all_reduce!(group, send, recv, op)

`recv` becomes the reduction over ranks of `send`; `op` is `:sum`, `:avg`, `:min`, `:max` or `:prod`. With one array, in place.
"""
function all_reduce!(group::Group, send, recv, op)
    zero_group_all_reduce(group, send, recv, shared_dtype(send, recv), code(REDUCE, op))
    return recv
end
all_reduce!(group::Group, data, op) = all_reduce!(group, data, data, op)

"""
    reduce_scatter!(group, send, recv, op)

`recv` becomes this rank's [`share`](@ref) of the reduction over ranks of `send`, and may be that share of `send` itself, as a view.
"""
function reduce_scatter!(group::Group, send, recv, op)
    zero_group_reduce_scatter(group, send, recv, shared_dtype(send, recv), code(REDUCE, op))
    return recv
end

"""
    all_gather!(group, send, recv)

`recv` becomes the ranks' shares one after another; `send` is this rank's [`share`](@ref) of it, and may lie in it, as a view.
"""
function all_gather!(group::Group, send, recv)
    zero_group_all_gather(group, send, recv, shared_dtype(send, recv))
    return recv
end

"""
    bcast!(group, data, root = 0)

`data` of `root` goes to `data` of every rank.
"""
function bcast!(group::Group, data, root::Integer = 0)
    zero_group_broadcast(group, data, shared_dtype(data, data), root)
    return data
end

"""
    reduce!(group, send, recv, op, root = 0)

`recv` on `root` becomes the reduction over ranks of `send`, and may be `send`; elsewhere it is `nothing`.
"""
function reduce!(group::Group, send, recv, op, root::Integer = 0)
    zero_group_reduce(group, send, recv, shared_dtype(send, recv), code(REDUCE, op), root)
    return recv
end

"""
    gather!(group, send, recv, total, root = 0)

`recv` on `root` becomes the ranks' shares one after another, elsewhere it is `nothing`; `send` is this rank's [`share`](@ref) of `total`.
"""
function gather!(group::Group, send, recv, total::Integer, root::Integer = 0)
    zero_group_gather(group, send, recv, total, shared_dtype(send, recv), root)
    return recv
end

"""
    scatter!(group, send, recv, total, root = 0)

`recv` becomes this rank's [`share`](@ref) of the `total` elements of `send` on `root`; elsewhere `send` is `nothing`.
"""
function scatter!(group::Group, send, recv, total::Integer, root::Integer = 0)
    zero_group_scatter(group, send, recv, total, shared_dtype(send, recv), root)
    return recv
end

"""
    all_to_all!(group, send, recv)

Block r of `recv` becomes block (this rank) of rank r's `send`. Blocks are equal parts of the array, one for each rank.
"""
function all_to_all!(group::Group, send, recv)
    zero_group_all_to_all(group, send, recv, shared_dtype(send, recv))
    return recv
end

"""
    send(group, data, peer)

Sends to another rank, which calls [`recv!`](@ref) with as many elements of the same type. Returns when `data` is free again, which may be
only when the peer receives: of two ranks that exchange, each sends in a task of its own.
"""
function send(group::Group, data, peer::Integer)
    zero_group_send(group, data, shared_dtype(data, data), peer)
    return nothing
end

"""
    recv!(group, data, peer)

Receives what another rank sends to this one, in the order in which it was sent.
"""
function recv!(group::Group, data, peer::Integer)
    zero_group_recv(group, data, shared_dtype(data, data), peer)
    return data
end

"""
    barrier(group)

Returns when every rank has called it.
"""
barrier(group::Group) = zero_group_barrier(group)

"""
    balance(group, seconds, items, total, unit = 1)

This rank's share of `total` items for the next step, by the speeds of all ranks: a multiple of `unit`. `seconds` is what this rank's newest
`items` took, without waits for other ranks; 0 where nothing was measured.
"""
balance(group::Group, seconds::Real, items::Integer, total::Integer, unit::Integer = 1) =
    zero_group_balance(group, seconds, items, total, unit)
