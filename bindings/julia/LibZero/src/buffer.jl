# Sharded buffers: flat arrays whose shards lie with the ranks of a group.

"""
    Buffer(group, T, count; options...)
    Buffer(group, T, count, config)
    Buffer(f, group, T, count, ...)

A flat array of `count` elements of type `T`, zero at first, cut over the ranks of a group. All ranks make it with the same arguments; it
keeps the group alive. Option: `shard_weights = "2,1,1"`. With a function `f`, the buffer is closed when `f(buffer)` has ended.
"""
mutable struct Buffer{T} <: Object
    handle::Handle
    open::Bool
    count::Int64
    lent::Lent

    function Buffer{T}(group::Group, count::Integer, config::Config) where {T}
        handle = zero_buffer_create(group, config, dtype(T), count)
        return finalizer(close_later, new{T}(handle, true, count, Lent()))
    end
end

Buffer(group::Group, ::Type{T}, count::Integer, config::Config) where {T} = Buffer{T}(group, count, config)
Buffer(group::Group, ::Type{T}, count::Integer; options...) where {T} =
    with(config -> Buffer(group, T, count, config), Config(; options...))
Buffer(f::Function, arguments...; options...) = with(f, Buffer(arguments...; options...))

give_back(buffer::Buffer) = zero_buffer_release(buffer)
is_lent(buffer::Buffer) = is_lent(buffer.lent)

"The elements of the whole."
Base.length(buffer::Buffer) = Int(buffer.count)
Base.eltype(::Type{Buffer{T}}) where {T} = T

"""
    shard(buffer)

This rank's part of the whole, in libzero's memory; the same elements as long as the buffer is open. [`shard_range`](@ref) tells which.
"""
shard(buffer::Buffer{T}) where {T} = GC.@preserve buffer begin
    data, _, count = zero_buffer_shard(buffer)
    lend(buffer, T, data, (Int(count),))
end

"""
    shard_range(buffer)

The places in the whole of this rank's shard.
"""
function shard_range(buffer::Buffer)
    _, offset, count = zero_buffer_shard(buffer)
    return range_of(offset, count)
end

"""
    acquire(buffer)
    acquire(f, buffer)

Gathers the whole: an Array that is valid until `release(buffer)`, or while `f(array)` runs. What is written to it is not kept. All ranks
call it.
"""
acquire(buffer::Buffer{T}) where {T} = GC.@preserve buffer begin
    data = zero_buffer_whole_acquire(buffer)
    lend(buffer, T, data, (length(buffer),))
end

function acquire(f::Function, buffer::Buffer)
    whole = acquire(buffer)
    try
        return f(whole)
    finally
        release(buffer)
    end
end

"""
    release(buffer)

Gives the whole back that `acquire(buffer)` gathered.
"""
release(buffer::Buffer) = zero_buffer_whole_release(buffer)

"""
    reduce_scatter!(buffer, data, op)

The shards become the reduction over ranks of `data`, which is as long as the whole. All ranks call it.
"""
function reduce_scatter!(buffer::Buffer{T}, data, op) where {T}
    check_eltype(T, data, buffer)
    zero_buffer_reduce_scatter(buffer, data, code(REDUCE, op))
    return buffer
end

"""
    read!(buffer, data, first = 1)

Fills `data` with the elements of the whole from place `first` on, whoever owns them. All ranks call it, each with its own range, which may
be empty (`nothing`).
"""
function Base.read!(buffer::Buffer{T}, data::Union{AbstractArray,Nothing}, first::Integer = 1) where {T}
    check_eltype(T, data, buffer)
    zero_buffer_read(buffer, first - 1, data)
    return data
end

"""
    write(buffer, data, first = 1)

Writes `data` to the places of the whole from `first` on. All ranks call it, each with its own range, which may be empty (`nothing`); where
ranges overlap, the highest rank's values stay.
"""
function Base.write(buffer::Buffer{T}, data::Union{AbstractArray,Nothing}, first::Integer = 1) where {T}
    check_eltype(T, data, buffer)
    zero_buffer_write(buffer, first - 1, data)
    return nothing
end
