# Training runs of five steps, and what can be asked of an optimizer afterwards.

"Trains on three ranks; what `result(model)` says on each of them. Keywords that are not named here are options."
function train(result = say_result; first_values = begin_model, step = usual_step, options...)
    said = on_ranks() do group, rank
        with_model(group, rank; options...) do model
            seal!(model.optimizer)
            first_values(model)
            notes = [step(model, t) for t in 0:4]
            (filter(note -> note isa String, notes), result(model, last(notes)))
        end
    end
    return collect(Iterators.flatten(words(s) for s in said))
end

words((notes, said)) = Iterators.filter(!isnothing, Iterators.flatten((notes, said isa Union{Tuple,AbstractVector} ? said : (said,))))

say_result(model, ::Any) = say_result(model)

function usual_step(model, t)
    give_gradients(model, t)
    return step!(model.optimizer)
end

"Gradients from memory of its own: `b`, then `w` in two halves of which the second comes first."
function private_step(model, t)
    w = gradient(model, model.w, t)
    grad_ready(model.optimizer, model.b, gradient(model, model.b, t))
    grad_ready(model.optimizer, model.w, view(w, 301:600), 301)
    grad_ready(model.optimizer, model.w, view(w, 1:300))
    return step!(model.optimizer)
end

"Gradients from memory of its own, of both parameters in one call."
function bulk_step(model, t)
    params = [model.b, model.w]
    grads_ready(model.optimizer, params, [gradient(model, param, t) for param in params])
    return step!(model.optimizer)
end

function micro_steps(model, t)
    micro_step!(model.optimizer, :local)
    give_gradients(model, t)
    micro_step!(model.optimizer, :last)
    return usual_step(model, t)
end

function rate_step(model, t)
    model.optimizer[:lr] = 0.01 / (t + 1)
    return usual_step(model, t)
end

"In step 2 the gradient of `b` on rank 1 holds a NaN."
function skip_step(model, t)
    (t, model.rank) == (2, 1) || return t == 2 && model.rank == 0 ? note_skip(usual_step(model, t)) : usual_step(model, t)
    b = gradient(model, model.b, t)
    b[1] = NaN
    grad_ready(model.optimizer, model.b, b)
    grad_ready(model.optimizer, model.w, gradient(model, model.w, t))
    return step!(model.optimizer)
end

note_skip(result) = "$(result.step) $(Int(result.skipped))"

function weighted_step(model, t)
    set_weight!(model.optimizer, model.rank)
    return usual_step(model, t)
end

"The period ends in steps 1 and 3, and the run behind step 4. Notes are what rank 0 says of each step."
function replica_step(model, t)
    result = usual_step(model, t)
    t == 4 || return model.rank == 0 ? string(Int(result.synced)) : nothing
    return (result, sync!(model.optimizer))
end

function say_synced(model, (last, synced))
    said = model.rank == 0 ? [Int(last.synced), Int(synced.synced), bits(synced.spread)] : []
    return [said; say_result(model)...]
end

"slot += gradient, parameter -= 0.125 slot."
function custom_step(model, t)
    give_gradients(model, t)
    reduce!(model.optimizer)
    pieces = zip((views(model.optimizer, slot, Float32) for slot in (:grad, :custom, :param))...)
    for (gradient, slot, param) in pieces
        slot.data .+= gradient.data
        param.data .-= 0.125f0 .* slot.data
    end
    gather!(model.optimizer)
end

function init_normal(model)
    for param in params(model)
        init_param!(model.optimizer, param, :normal, 0.5, 2; seed = 7 + param.id)
    end
    begin!(model.optimizer, :shards)
end

"Only rank 0 speaks."
on_root(say) = (model, result) -> model.rank == 0 ? say(model, result) : nothing

sent(model, operation) = traffic_stats(model.optimizer, operation).sent_elements

say_views(model, ::Any) = join(("$(piece.param):$(place(piece.range))" for piece in views(model.optimizer, :param, Float32)), ",")

function say_slots(model, ::Any)
    map(slots(model.optimizer, model.w)) do slot
        "$(LibZero.code(LibZero.slot_names, slot.slot)):$(LibZero.code(LibZero.DTYPE, slot.dtype)):$(slot.count)"
    end
end

function say_verified(model, ::Any)
    result = verify(model.optimizer)
    return model.rank == 0 ? (result.found, result.chunk_count) : nothing
end

function optimizer_scenarios()
    foreach(stage -> say("train-stage$stage", train(; stage = stage)), 0:3)
    step_scenarios()
    custom = (algorithm = "custom", custom_slots = 1, step = custom_step)
    say("train-custom", train(; custom...))
    say("train-custom-views", train(say_views; custom...))
    say("train-acquired", train((model, _) -> acquire(hash_of, model.optimizer, model.w); stage = 3))
    say("precision-bf16", train(; T = BFloat16))
    say("slots", train(on_root(say_slots); T = BFloat16))
    say("scalars", train(on_root((model, _) -> (bits(model.optimizer[:lr]), model.optimizer[:step_count]))))
    say("moments", train((model, _) -> say_slot(model, model.w, :second_moment)))
    say("init-normal", train(; first_values = init_normal, step = (model, t) -> nothing))
    say("rows", first(on_ranks(step_rows)))
    say("rows-error", on_ranks((group, rank) -> with_embedding(error_of_rows, group), 1))
    say("module-buffer", on_ranks(sync_buffer))
    say("verify", train(say_verified))
    say("traffic", train((model, _) -> "$(sent(model, :reduce_scatter))/$(sent(model, :all_gather))"; overlap = 0))
    say("memory-formula", train((model, _) -> memory_stats(model.optimizer).formula_nbytes))
    say("describe", train(on_root((model, _) -> Int(length(describe(model.optimizer)) > 100))))
end

function step_scenarios()
    say("train-sgd", train(; algorithm = "sgd", momentum = 0.9))
    say("train-private", train(; step = private_step))
    for stage in 0:3
        say("train-bulk$stage", train(; stage = stage, step = bulk_step))
    end
    on_device = LibZero.has_feature(:cuda) ? (device = 0, tier = :device) : NamedTuple()
    say("train-device", train(; stage = 2, first_values = init_normal, step = private_step, on_device...))
    say("train-clip", train((model, last) -> [model.rank == 0 ? bits(last.grad_norm) : nothing; say_result(model)...]; clip_norm = 1))
    say("train-micro", train(; stage = 2, step = micro_steps))
    say("train-rate", train(; step = rate_step))
    say("train-skip", train((model, last) -> [model.rank == 0 ? last.skipped_total : nothing; say_result(model)...]; step = skip_step))
    replicas = (replica_ranks = 1, sync_period = 2, outer_lr = 0.7, outer_momentum = 0.9, step = replica_step)
    say("train-weights", train(; divisor = :weights, step = weighted_step))
    say("train-replicas", train(say_synced; replicas...))
end

"A table of which gradients are given by rows, which C sees as 40 x 10, begun with zeros."
function with_embedding(body, group)
    Optimizer(group; stage = 1, bucket_bytes = 1024) do optimizer
        table = add_param!(optimizer, "t", Float32, (10, 40); rows = 1)
        seal!(optimizer)
        begin!(optimizer, :local)
        body(optimizer, table)
    end
end

function step_rows(group, rank)
    with_embedding(group) do optimizer, table
        grad_ready_rows(optimizer, table, [rank, 7, rank] .+ 1, floats(30, rank))
        step!(optimizer)
        data = rank == 0 ? zeros(Float32, length(table)) : nothing
        read!(optimizer, table, :param, data)
        rank == 0 ? hash_of(data) : nothing
    end
end

error_of_rows(optimizer, table) = error_of(() -> grad_ready_rows(optimizer, table, [41], floats(10, 0)))

function sync_buffer(group, rank)
    with_model(group, rank) do model
        statistics = add_module_buffer!(model.optimizer, "m", Float32, 9, :average)
        seal!(model.optimizer)
        array = module_buffer(model.optimizer, statistics)
        copyto!(array, floats(9, rank))
        sync_module_buffers!(model.optimizer)
        hash_of(array)
    end
end
