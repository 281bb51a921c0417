# Places, splits, collectives and messages.

const ELEMENT_TYPES = [:f32 => Float32, :f64 => Float64, :i32 => Int32, :i64 => Int64, :u8 => UInt8]

floats(count, series) = values_of(Float32, count, series)

function group_scenarios()
    place_scenarios()
    for op in (:sum, :avg, :min, :max, :prod), (name, T) in ELEMENT_TYPES
        say("all-reduce-$op-$name", on_ranks((group, rank) -> hash_of(all_reduce!(group, values_of(T, 10, rank), zeros(T, 10), op))))
    end
    say("all-reduce-in-place", on_ranks((group, rank) -> hash_of(all_reduce!(group, floats(10, rank), :sum))))
    say("all-reduce-empty", on_ranks((group, rank) -> status_of(() -> all_reduce!(group, Float32[], :sum))))
    share_scenarios()
    message_scenarios()
    say("world-of-one", on_one_rank(group -> hash_of(all_reduce!(group, floats(10, 0), zeros(Float32, 10), :sum))))
    say("all-reduce-lengths", on_one_rank(group -> error_of(() -> all_reduce!(group, floats(10, 0), zeros(Float32, 9), :sum))))
    say("bad-root", on_one_rank(group -> error_of(() -> bcast!(group, floats(10, 0), 5))))
    say("balance-error", on_one_rank(group -> error_of(() -> balance(group, 1, 8, 63, 8))))
end

on_one_rank(body) = Group(body, nothing, 0, 1)

function place_scenarios()
    say("places", on_ranks() do group, rank
        join((group_rank(group), group_size(group), local_rank(group), local_size(group), host_count(group)), "/")
    end)
    say("shares", on_ranks((group, rank) -> rank == 0 ? [place(share(group, 10, r)) for r in 0:2] : nothing)[1])
    say("share-error", on_ranks((group, rank) -> rank == 0 ? error_of(() -> share(group, 10, 3)) : nothing)[1])
    say("split", on_ranks() do group, rank
        part = split(group, (0, 1, 0)[rank+1], (2, 1, 0)[rank+1])
        "$(group_rank(part))/$(group_size(part))"
    end)
    say("split-none", on_ranks() do group, rank
        part = split(group, (0, -1, 0)[rank+1])
        isnothing(part) ? "-" : group_size(part)
    end)
end

"A range as C's offset and count."
place(range) = "$(first(range) - 1):$(length(range))"

own(group) = length(share(group, 10))

function share_scenarios()
    say("reduce-scatter", on_ranks((group, rank) -> hash_of(reduce_scatter!(group, floats(10, rank), zeros(Float32, own(group)), :sum))))
    say("all-gather", on_ranks((group, rank) -> hash_of(all_gather!(group, floats(own(group), rank), zeros(Float32, 10)))))
    say("broadcast", on_ranks((group, rank) -> hash_of(bcast!(group, floats(10, rank), 1))))
    say("reduce", on_ranks() do group, rank
        result = reduce!(group, floats(10, rank), rank == 2 ? zeros(Float32, 10) : nothing, :max, 2)
        isnothing(result) ? nothing : hash_of(result)
    end)
    say("gather", on_ranks() do group, rank
        result = gather!(group, floats(own(group), rank), rank == 0 ? zeros(Float32, 10) : nothing, 10)
        isnothing(result) ? nothing : hash_of(result)
    end)
    say("scatter", on_ranks() do group, rank
        hash_of(scatter!(group, rank == 1 ? floats(10, 1) : nothing, zeros(Float32, own(group)), 10, 1))
    end)
end

function message_scenarios()
    say("all-to-all", on_ranks((group, rank) -> hash_of(all_to_all!(group, floats(12, rank), zeros(Float32, 12)))))
    say("send-recv", on_ranks() do group, rank
        data = rank == 0 ? floats(5, 0) : recv!(group, zeros(Float32, 5), rank - 1)
        rank == 2 && return hash_of(data)
        send(group, rank == 0 ? data : data .+ 1, rank + 1)
    end)
    say("barrier", on_ranks((group, rank) -> status_of(() -> barrier(group))))
    say("balance", on_ranks() do group, rank
        balance(group, (1, 1.5, 3)[rank+1], (192, 240, 208)[rank+1], 640, 16)
    end)
end
