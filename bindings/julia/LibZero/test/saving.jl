@testset "saves in the background" begin
    "What `body(optimizer, w, group, rank)` is on each of two ranks."
    function on_optimizers(body; options...)
        on_ranks(2) do group, rank
            set_deadline!(group, 20_000)
            Optimizer(group; options...) do optimizer
                w = add_param!(optimizer, "w", Float32, 300)
                seal!(optimizer)
                begin!(optimizer, :local)
                body(optimizer, w, group, rank)
            end
        end
    end

    function take_steps(optimizer, w, count)
        for _ in 1:count
            grad_ready(optimizer, w, fill(0.5f0, 300))
            step!(optimizer)
        end
    end

    value(optimizer, w) = read!(optimizer, w, :param, zeros(Float32, 300))

    "Steps and the parameter of the newest save of a folder."
    function newest(folder)
        Group(nothing, 0, 1) do group
            Optimizer(group) do optimizer
                w = add_param!(optimizer, "w", Float32, 300)
                seal!(optimizer)
                (resume!(optimizer, folder), optimizer[:step_count], value(optimizer, w))
            end
        end
    end

    @testset "steps go on, and the save holds the step of the call" begin
        for snapshot in (:copy, :lazy)
            mktempdir() do folder
                told = on_optimizers() do optimizer, w, group, rank
                    Checkpoint(group; checkpoint_snapshot = snapshot) do checkpoint
                        push!(checkpoint, optimizer)
                        take_steps(optimizer, w, 2)
                        before = value(optimizer, w)
                        saving = save_async(checkpoint, folder)
                        take_steps(optimizer, w, 3)
                        result = fetch(saving)
                        (result.step, isready(saving), value(optimizer, w) != before, before, result.snapshot_nbytes)
                    end
                end
                @test [t[1:3] for t in told] == fill((2, true, true), 2)
                @test newest(folder) == (true, 2, told[1][4])
                @test snapshot == :lazy || sum(last, told) > 0
            end
        end
    end

    @testset "a save is not done before all ranks take part" begin
        mktempdir() do folder
            looked = Base.Event()
            @test on_optimizers() do optimizer, w, group, rank
                rank == 1 && wait(looked)
                waiting = @async save_async(optimizer, folder)
                rank == 0 && (sleep(0.05); notify(looked))
                saving = fetch(waiting)
                (wait(saving), fetch(saving), isready(saving), string(saving))
            end == fill((nothing, nothing, true, "Saving(ended)"), 2)
            @test newest(folder) == (true, 0, zeros(Float32, 300))
        end
    end

    @testset "saves follow one another, and what is closed meanwhile is saved" begin
        mktempdir() do folder
            savings = on_optimizers() do optimizer, w, group, rank
                take_steps(optimizer, w, 1)
                Checkpoint(group) do checkpoint
                    push!(checkpoint, optimizer)
                    push!(checkpoint, fill(Int64(rank), 100_000), "seen", :each)
                    save_async(optimizer, folder) # nobody waits for this one
                    save_async(checkpoint, folder)
                end
            end
            GC.gc()
            @test [fetch(saving).step for saving in savings] == [1, 1]
            @test count(==('\n'), list_saves(folder)) == 2
        end
    end

    @testset "a save that fails costs nothing" begin
        mktempdir() do folder
            nowhere = joinpath(folder, "nowhere")
            @test on_optimizers() do optimizer, w, group, rank
                saving = save_async(optimizer, nowhere)
                errors = (error_name(() -> wait(saving)), error_name(() -> fetch(saving)), error_name(() -> save(optimizer, "")))
                take_steps(optimizer, w, 1)
                (errors, occursin(nowhere, error_text(() -> wait(saving))), optimizer[:step_count])
            end == fill((("ZERO_E_NOT_FOUND", "ZERO_E_NOT_FOUND", "ZERO_E_INVALID_ARGUMENT"), true, 1), 2)
        end
    end

    # Rank 0 would keep the others on its thread from joining gathers that run ahead.
    @testset "ranks of one thread save while parameters are gathered ahead" begin
        mktempdir() do folder
            @test on_ranks(3) do group, rank
                set_deadline!(group, 5000)
                Optimizer(group; stage = 3, bucket_bytes = 4096, overlap = 1) do optimizer
                    params = [add_param!(optimizer, "p$i", Float32, 1000) for i in 1:6]
                    seal!(optimizer)
                    begin!(optimizer, :local)
                    for _ in 1:3
                        foreach(param -> acquire(sum, optimizer, param), params)
                        foreach(param -> grad_ready(optimizer, param, fill(0.5f0, 1000)), reverse(params))
                        step!(optimizer)
                        acquire(sum, optimizer, params[1]) # and others ahead
                        save(optimizer, folder)
                    end
                    optimizer[:step_count]
                end
            end == [3, 3, 3]
        end
    end
end
