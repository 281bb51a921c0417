# Parameter servers of 600 Float32; rank 0 is the server.

function with_server(body, size, order)
    return on_ranks(size) do group, rank
        Server(group, 600; server_order = order) do server
            seal!(server)
            body(server, rank)
        end
    end
end

"Pulls, and pushes v(i, 10 t + rank), in rounds t."
function work_rounds(server, rank, rounds)
    for t in 0:rounds-1
        pull!(server, zeros(Float32, 600))
        push!(server, floats(600, 10t + rank))
    end
    leave!(server)
    return nothing
end

"Writes v(i, 0) and serves: what the server did, and the hash of its parameters."
function serve_rounds(server)
    params = shard(server)
    params .= floats(length(params), 0)
    return run!(server), hash_of(params)
end

function server_scenarios()
    say("server-rounds", with_server(3, :round_robin) do server, rank
        rank == 0 || return work_rounds(server, rank, 3)
        result, params = serve_rounds(server)
        "$params $(result.push_count) $(result.pull_count) $(result.greatest_age)"
    end)
    say("server-replay", with_server(3, :arrival) do server, rank
        rank == 0 || return work_rounds(server, rank, 1)
        replay!(server, UInt16[32768, 32769, 1, 0])
        _, params = serve_rounds(server)
        "$params $(hash_of(record(server)))"
    end)
    say("server-roles", with_server(2, :round_robin) do server, rank
        if rank == 0
            refused = error_of(() -> push!(server, zeros(Float32, 600)))
            run!(server)
        else
            refused = error_of(() -> run!(server))
            leave!(server)
        end
        refused
    end)
end
