# Parameter servers: some ranks hold and update parameters, the others push and pull them.

"""
    Server(group, count; options...)
    Server(group, count, config)
    Server(f, group, count, ...)

One rank's part in parameter servers of `count` `Float32`. The first `server_ranks` ranks of the group (1) are servers, all others are
workers. Options: `server_ranks`, `server_order` (`:round_robin` or `:arrival`), `server_staleness`, `server_rule` (`:update`, `:average`,
`:mean`), `server_rate`, `server_period`, and those of the algorithm. With a function `f`, the object is closed when `f(server)` has ended.
"""
mutable struct Server <: Object
    handle::Handle
    open::Bool
    count::Int64
    lent::Lent

    function Server(group::Group, count::Integer, config::Config)
        handle = zero_server_create(group, config, count)
        return finalizer(close_later, new(handle, true, count, Lent()))
    end
end

Server(group::Group, count::Integer; options...) = with(config -> Server(group, count, config), Config(; options...))
Server(f::Function, arguments...; options...) = with(f, Server(arguments...; options...))

give_back(server::Server) = zero_server_release(server)
is_lent(server::Server) = is_lent(server.lent)

"The parameters of all servers."
Base.length(server::Server) = Int(server.count)

"""
    seal!(server)

Compares what all ranks made, and connects servers and workers. All ranks call it.
"""
seal!(server::Server) = zero_server_seal(server)

"""
    shard(server)

The parameters that this server holds, in libzero's memory. [`shard_range`](@ref) tells which. Not to be used during [`run!`](@ref).
"""
shard(server::Server) = GC.@preserve server begin
    data, _, count = zero_server_shard(server)
    lend(server, Float32, data, (Int(count),))
end

"""
    shard_range(server)

The places of the parameters that this server holds.
"""
function shard_range(server::Server)
    _, offset, count = zero_server_shard(server)
    return range_of(offset, count)
end

"""
    replay!(server, record)

Gives a server the order that it keeps to in [`run!`](@ref): what [`record`](@ref) returned on it.
"""
replay!(server::Server, record::Vector{UInt16}) = zero_server_replay(server, record)

"""
    record(server)

The order that a server recorded in [`run!`](@ref), a `Vector{UInt16}`: for each push the worker's number, for each pull 32768 more.
"""
function record(server::Server)
    calls = Vector{UInt16}(undef, zero_server_record(server, nothing))
    zero_server_record(server, calls)
    return calls
end

"""
    ServerResult

What a server did: `push_count`, `pull_count`, `skipped_count`, `waited_count`, `left_count`, `lost_count`, `received_nbytes`,
`sent_nbytes`, `greatest_age`, and pushes by age: `age_0_count`, `age_1_count`, `age_2_count`, `age_4_count`, `age_8_count`,
`age_16_count`.
"""
ServerResult

"""
    run!(server)

Serves the workers until all have left or were lost. Returns [`ServerResult`](@ref).
"""
run!(server::Server) = zero_server_run(server)

"""
    push!(server, data)

Sends a gradient, or parameters, to the servers. Waits within the bound of staleness.
"""
function Base.push!(server::Server, data::AbstractArray)
    check_eltype(Float32, data, server)
    zero_server_push(server, data)
    return server
end

"""
    pull!(server, data)

Fills `data` with the parameters. Waits as `push!`.
"""
function pull!(server::Server, data::AbstractArray)
    check_eltype(Float32, data, server)
    zero_server_pull(server, data)
    return data
end

"""
    leave!(server)

Tells the servers that this worker makes no more calls.
"""
leave!(server::Server) = zero_server_leave(server)
