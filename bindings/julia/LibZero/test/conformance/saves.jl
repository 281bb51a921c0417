# Runs that go on from a save, what else a save holds, and saves as tools see them.

const TENSOR_COUNT = 10

"""
What the ranks of one world after the other say in a new empty folder. Each world is a number of ranks and `body(folder, group, rank)`.
"""
in_folder(worlds...) = mktempdir() do folder
    said = [on_ranks((group, rank) -> body(folder, group, rank), size) for (size, body) in worlds]
    return collect(Iterators.flatten(words_of(rank) for world in said for rank in world))
end

words_of(said) = said isa Union{Tuple,AbstractVector} ? said : (said,)

"What only rank 0 says."
on_first(rank, words...) = rank == 0 ? words : map(_ -> nothing, words)

function save_scenarios()
    say("save-resume", in_folder(3 => train_and_save, 2 => resume_and_train))
    say("save-tensors", in_folder(2 => save_tensors, 3 => load_tensors))
    say("save-buffer", in_folder(3 => save_table, 2 => load_table))
    say("save-names", in_folder(1 => save_a_b, 1 => load_b_c))
    say("save-renamed", in_folder(1 => save_old, 1 => load_new))
    say("save-background", in_folder(2 => save_in_background, 1 => resume_alone))
    say("save-compare", in_folder(1 => save_twice, 1 => compare_saves))
    say("save-remove", in_folder(1 => save_twice, 1 => remove_saves))
    say("save-nothing", in_folder(1 => find_nothing))
    say("stop", in_folder(3 => stop_together))
end

"A model that is sealed."
sealed_model(body, group, rank; options...) = with_model(group, rank; options...) do model
    seal!(model.optimizer)
    body(model)
end

function train_and_save(folder, group, rank)
    sealed_model(group, rank) do model
        found = resume!(model.optimizer, folder)
        begin_model(model)
        foreach(t -> usual_step(model, t), 0:4)
        save(model.optimizer, folder)
        on_first(rank, Int(found))
    end
end

function resume_and_train(folder, group, rank)
    sealed_model(group, rank; stage = 3) do model
        found = resume!(model.optimizer, folder)
        steps = model.optimizer[:step_count]
        before = say_result(model)
        usual_step(model, 5)
        (on_first(rank, Int(found), steps)..., before..., say_result(model)...)
    end
end

function with_tensors(body, group, one, each)
    Checkpoint(group) do checkpoint
        push!(checkpoint, one, "one", :one)
        push!(checkpoint, each, "each", :each)
        body(checkpoint)
    end
end

function save_tensors(folder, group, rank)
    with_tensors(group, floats(TENSOR_COUNT, rank), values_of(Int64, TENSOR_COUNT, rank)) do checkpoint
        checkpoint["epoch"] = "3/10"
        save(checkpoint, folder)
        nothing
    end
end

function load_tensors(folder, group, rank)
    one, each = zeros(Float32, TENSOR_COUNT), zeros(Int64, TENSOR_COUNT)
    texts = with_tensors(group, one, each) do checkpoint
        load!(checkpoint, folder)
        on_first(rank, checkpoint["epoch"], status_of(() -> checkpoint["gone"]))
    end
    return (texts..., hash_of(one), hash_of(each))
end

function with_table(body, group)
    Buffer(group, Float32, 1000) do buffer
        Checkpoint(checkpoint -> body(push!(checkpoint, buffer, "table"), buffer), group)
    end
end

function save_table(folder, group, rank)
    with_table(group) do checkpoint, buffer
        write(buffer, floats(rank == 0 ? 1000 : 0, 0))
        save(checkpoint, folder)
        nothing
    end
end

function load_table(folder, group, rank)
    with_table(group) do checkpoint, buffer
        step = load!(checkpoint, folder).step
        (on_first(rank, step)..., hash_of(shard(buffer)))
    end
end

function save_a_b(folder, group, rank)
    Checkpoint(group) do checkpoint
        push!(checkpoint, floats(TENSOR_COUNT, 0), "a")
        push!(checkpoint, floats(TENSOR_COUNT, 1), "b")
        save(checkpoint, folder)
        nothing
    end
end

function load_b_c(folder, group, rank)
    b, c = zeros(Float32, TENSOR_COUNT), floats(TENSOR_COUNT, 2)
    add(checkpoint) = push!(push!(checkpoint, b, "b"), c, "c")
    refused = Checkpoint(checkpoint -> status_of(() -> load!(add(checkpoint), folder)), group)
    result, names = Checkpoint(group; checkpoint_missing = 1, checkpoint_extra = 1) do checkpoint
        (load!(add(checkpoint), folder), skipped(checkpoint))
    end
    return (refused, result.missing, result.extra, names..., hash_of(b), hash_of(c))
end

function save_old(folder, group, rank)
    sealed_model(group, rank) do model
        begin_model(model)
        foreach(t -> usual_step(model, t), 0:4)
        Checkpoint(checkpoint -> save(push!(checkpoint, model.optimizer, "old."), folder), group)
        nothing
    end
end

function load_new(folder, group, rank)
    sealed_model(group, rank) do model
        result = Checkpoint(group) do checkpoint
            rename!(push!(checkpoint, model.optimizer, "new."), "old.*" => "new.*")
            load!(checkpoint, folder; part = :params)
        end
        (result.missing, result.extra, model.optimizer[:step_count], say_result(model)...)
    end
end

function save_in_background(folder, group, rank)
    sealed_model(group, rank; stage = 2) do model
        begin_model(model)
        usual_step(model, 0)
        saving = Checkpoint(checkpoint -> save_async(push!(checkpoint, model.optimizer), folder), group)
        foreach(t -> usual_step(model, t), 1:2)
        on_first(rank, fetch(saving).step)
    end
end

function resume_alone(folder, group, rank)
    sealed_model(group, rank) do model
        found = resume!(model.optimizer, folder)
        (Int(found), model.optimizer[:step_count], say_result(model)...)
    end
end

"Saves after each of two steps."
function save_twice(folder, group, rank)
    sealed_model(group, rank) do model
        begin_model(model)
        for t in 0:1
            usual_step(model, t)
            save(model.optimizer, folder)
        end
    end
end

"The names of the saves, newest first, which stand at the beginnings of the lines of the list."
save_names(folder) = [first(split(line)) for line in split(list_saves(folder), '\n'; keepempty = false)]

line_count(text) = count(==('\n'), text)

function compare_saves(folder, group, rank)
    names = save_names(folder)
    Save(joinpath(folder, names[1])) do newest
        Save(joinpath(folder, names[2])) do older
            verified = status_of(() -> verify(newest))
            (length(names), verified, line_count(differences(newest, older)), line_count(differences(newest, newest)))
        end
    end
end

function remove_saves(folder, group, rank)
    newest, older = save_names(folder)
    prunable = length(prunable_saves(folder, 1))
    return (prunable, (status_of(() -> remove_save(folder, name)) for name in (older, newest, older))...)
end

function find_nothing(folder, group, rank)
    sealed_model(group, rank) do model
        Checkpoint(group) do checkpoint
            push!(checkpoint, model.optimizer)
            opened = status_of(() -> Save(folder))
            loaded = status_of(() -> load!(checkpoint, folder))
            before_begin = status_of(() -> save(checkpoint, folder))
            begin_model(model)
            (opened, loaded, status_of(() -> save(checkpoint, joinpath(folder, "no"))), before_begin)
        end
    end
end

function stop_together(folder, group, rank)
    sealed_model(group, rank) do model
        begin_model(model)
        reasons = map(0:3) do t
            (t, rank) == (2, 1) && request_stop(model.optimizer, 7)
            usual_step(model, t).stop_reason
        end
        reasons[3:4]
    end
end
