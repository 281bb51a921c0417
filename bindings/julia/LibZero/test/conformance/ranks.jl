# Ranks: tasks of this thread, each with its group.

const group_count = Ref(0)

"What `body(group, rank)` says on each rank. Groups are closed when all ranks have ended."
function on_ranks(body, size = 3)
    name = "conformance.julia.$(getpid()).$(group_count[] += 1)"
    groups = Vector{Group}(undef, size)
    said = Vector{Any}(nothing, size)
    @sync for rank in 0:size-1
        @async begin
            groups[rank+1] = Group(name, rank, size)
            said[rank+1] = body(groups[rank+1], rank)
        end
    end
    foreach(close, groups)
    return said
end
