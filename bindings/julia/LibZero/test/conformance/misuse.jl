# Calls that must fail, and groups that ranks fail in.

"The error of `call(model)` on one rank, after `prepare(model)`."
misuse(call, prepare) = on_ranks(1) do group, rank
    with_model(group, rank) do model
        prepare(model)
        error_of(() -> call(model))
    end
end

unsealed(model) = nothing
sealed(model) = seal!(model.optimizer)
begun(model) = (seal!(model.optimizer); begin_model(model))

add_c(model, T = Float32, extent = 7) = add_param!(model.optimizer, "c", T, extent)
give_b(model, count = 7) = grad_ready(model.optimizer, model.b, floats(count, 0))

function misuse_scenarios()
    say("step-before-begin", misuse(model -> step!(model.optimizer), sealed))
    say("seal-twice", misuse(sealed, sealed))
    say("param-after-seal", misuse(add_c, sealed))
    say("param-dtype", misuse(model -> add_c(model, Int32), unsealed))
    say("param-shape", misuse(model -> add_c(model, Float32, -1), unsealed))
    say("param-name-twice", misuse(model -> add_param!(model.optimizer, "w", Float32, 7), unsealed))
    say("unknown-algorithm", on_ranks((group, rank) -> error_of(() -> Optimizer(group; algorithm = "nothing")), 1))
    say("gradient-twice", misuse(give_b, model -> (begun(model); give_b(model))))
    say("gradient-range", misuse(model -> give_b(model, 8), begun))
    say("read-range", misuse(model -> read!(model.optimizer, model.b, :param, zeros(Float32, 8)), begun))
    say("rate-unknown", misuse(model -> model.optimizer[:stage] = 1, begun))
    say("trace-off", misuse(model -> trace(model.optimizer), begun))
    say("closed", on_ranks(use_closed, 1))
    failure_scenarios()
    say("release-order", on_ranks(close_in_odd_order, 1))
end

function use_closed(group, rank)
    with_model(group, rank) do model
        begun(model)
        close(group)
        close(model.optimizer)
        join((status_of(() -> group_size(group)), status_of(() -> step!(model.optimizer))), " ")
    end
end

function failure_scenarios()
    say("mismatch", on_ranks((group, rank) -> status_of(() -> all_reduce!(group, floats(rank == 0 ? 10 : 11, rank), :sum))))
    say("timeout", on_ranks(2) do group, rank
        rank == 0 || return nothing
        set_deadline!(group, 200)
        status_of(() -> barrier(group))
    end)
    say("aborted", on_ranks((group, rank) -> rank == 0 ? abort(group) : status_of(() -> barrier(group)), 2))
    say("peer-left", on_ranks((group, rank) -> rank == 0 ? status_of(() -> barrier(group)) : close(group), 2))
end

function close_in_odd_order(group, rank)
    with_model(group, rank) do model
        begun(model)
        buffer = Buffer(group, Float32, 1000)
        give_gradients(model, 0)
        status = status_of(() -> step!(model.optimizer))
        foreach(close, (group, buffer, model.optimizer))
        status
    end
end
