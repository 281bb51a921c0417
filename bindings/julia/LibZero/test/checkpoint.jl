@testset "checkpoints" begin
    "What `result(optimizer, w)` is on each rank after `steps` steps; with `nothing`, the optimizer is only sealed."
    function saved_run(result, size, stage, steps)
        on_ranks(size) do group, rank
            Optimizer(group; stage = stage, divisor = :one) do optimizer
                w = add_param!(optimizer, "w", Float32, (30, 10))
                seal!(optimizer)
                steps === nothing || begin!(optimizer, :local)
                for _ in 1:something(steps, 0)
                    rank == 0 && grad_ready(optimizer, w, fill(0.5f0, 30, 10))
                    step!(optimizer)
                end
                result(optimizer, w, group, rank)
            end
        end
    end
    value(optimizer, w) = read!(optimizer, w, :param, zeros(Float32, 300))

    @testset "a run goes on with other ranks in another stage" begin
        mktempdir() do folder
            before = saved_run(3, 3, 2) do optimizer, w, group, rank
                found = resume!(optimizer, folder)
                save(optimizer, folder)
                (found, value(optimizer, w))
            end
            after = saved_run(2, 1, nothing) do optimizer, w, group, rank
                (resume!(optimizer, folder), optimizer[:step_count], value(optimizer, w))
            end
            @test first.(before) == [false, false, false] && any(!=(0), before[1][2])
            @test after == fill((true, 2, before[1][2]), 2)
        end
    end

    @testset "parameters travel as plain files" begin
        mktempdir() do folder
            path = joinpath(folder, "model.safetensors")
            "Calls `body(checkpoint)` with a checkpoint of the optimizer."
            with_params(body, optimizer, group) = Checkpoint(checkpoint -> body(push!(checkpoint, optimizer)), group)
            before = saved_run(3, 3, 1) do optimizer, w, group, rank
                with_params(optimizer, group) do checkpoint
                    files = export_params(checkpoint, path).file_count
                    export_params(checkpoint, joinpath(folder, "halves"); as = Float16)
                    (files, error_name(() -> export_params(checkpoint, path; as = Int64)), value(optimizer, w))
                end
            end
            after = saved_run(2, 1, nothing) do optimizer, w, group, rank
                with_params(optimizer, group) do checkpoint
                    states = error_name(() -> load!(checkpoint, path))
                    converted = load!(checkpoint, joinpath(folder, "halves"); part = :params).converted
                    (states, converted, load!(checkpoint, path; part = :params).converted, value(optimizer, w))
                end
            end
            @test before == fill((1, "ZERO_E_INVALID_ARGUMENT", before[1][3]), 3)
            @test after == fill(("ZERO_E_INVALID_ARGUMENT", 1, 0, before[1][3]), 2)
        end
    end

    @testset "arrays, buffers and texts of the program are in the save" begin
        mktempdir() do folder
            "Makes a checkpoint of everything; `array` and the buffer's shards hold `value`."
            function with_list(body, optimizer, group, array, value)
                Buffer(group, Float32, 1000) do buffer
                    shard(buffer) .= value
                    Checkpoint(group; checkpoint_keep = 2) do checkpoint
                        push!(push!(push!(checkpoint, optimizer, "model."), buffer, "table"), array, "seen", :each)
                        body(checkpoint, buffer)
                    end
                end
            end
            @test saved_run(2, 2, 1) do optimizer, w, group, rank
                with_list(optimizer, group, Int64[rank + 5, 7], 4) do checkpoint, buffer
                    checkpoint["epoch"] = "3"
                    checkpoint["gone"] = "soon"
                    checkpoint["gone"] = nothing
                    save(checkpoint, folder).step
                end
            end == [1, 1]
            @test saved_run(2, 0, nothing) do optimizer, w, group, rank
                seen = zeros(Int64, 2)
                with_list(optimizer, group, seen, 0) do checkpoint, buffer
                    unset = error_name(() -> checkpoint["epoch"])
                    step = load!(checkpoint, folder).step
                    (unset, step, skipped(checkpoint), checkpoint["epoch"], error_name(() -> checkpoint["gone"]), seen, unique(shard(buffer)))
                end
            end == [("ZERO_E_NOT_FOUND", 1, [], "3", "ZERO_E_NOT_FOUND", [5 + rank, 7], [4]) for rank in 0:1]
        end
    end

    @testset "parameters alone, under other names" begin
        mktempdir() do folder
            before = saved_run(2, 1, 2) do optimizer, w, group, rank
                Checkpoint(checkpoint -> save(push!(checkpoint, optimizer, "old."), folder), group)
                value(optimizer, w)
            end
            @test saved_run(1, 0, 0) do optimizer, w, group, rank
                Checkpoint(group) do checkpoint
                    push!(checkpoint, optimizer)
                    rename!(checkpoint, "old.w" => "w")
                    unnamed = error_name(() -> rename!(checkpoint, "" => "w"))
                    load!(checkpoint, folder; part = :params)
                    (unnamed, optimizer[:step_count], value(optimizer, w))
                end
            end == [("ZERO_E_INVALID_ARGUMENT", 0, before[1])]
            @test_throws ArgumentError Group(group -> Checkpoint(checkpoint -> load!(checkpoint, folder; part = :half), group), nothing, 0, 1)
        end
    end

    @testset "all ranks see a stop in the same step" begin
        @test saved_run(2, 1, 0) do optimizer, w, group, rank
            rank == 1 && request_stop(optimizer, 7)
            (error_name(() -> request_stop(optimizer, 0)), step!(optimizer).stop_reason, step!(optimizer).stop_reason)
        end == fill(("ZERO_E_INVALID_ARGUMENT", 7, 0), 2)
    end
end
