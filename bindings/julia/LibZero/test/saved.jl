@testset "saves as tools see them" begin
    "Saves a run of one rank after each of its steps. Returns the names of the saves, newest first."
    function saved_steps(folder, steps)
        Group(nothing, 0, 1) do group
            Optimizer(group; divisor = :one) do optimizer
                w = add_param!(optimizer, "w", Float32, (30, 10))
                seal!(optimizer)
                begin!(optimizer, :local)
                Checkpoint(group) do checkpoint
                    push!(checkpoint, optimizer)
                    for _ in 1:steps
                        grad_ready(optimizer, w, fill(0.5f0, 30, 10))
                        step!(optimizer)
                        save(checkpoint, folder)
                    end
                end
            end
        end
        return [String(first(split(line))) for line in split(list_saves(folder), '\n'; keepempty = false)]
    end

    @testset "they are described, verified, compared and exported" begin
        mktempdir() do folder
            names = saved_steps(folder, 2)
            @test length(names) == 2
            @test occursin("\"valid\": true", list_saves(folder; form = :json))
            Save(folder) do newest
                @test occursin("\"step\": 2", describe(newest; form = :json))
                @test occursin("\nstep 2, ", describe(newest))
                verify(newest)
                done, total = progress(newest)
                @test done == total > 0
                @test differences(newest, newest) == ""
                Save(joinpath(folder, names[2])) do older
                    @test occursin("step: differs: 2 | 1\n", differences(newest, older))
                    @test_throws ArgumentError differences(newest, older; form = :xml)
                end
                export_params(newest, joinpath(folder, "model.safetensors"))
                @test filesize(joinpath(folder, "model.safetensors")) > 1200
            end
        end
    end

    @testset "old ones are removed, and the newest stays" begin
        mktempdir() do folder
            names = saved_steps(folder, 3)
            @test prunable_saves(folder, 1) == names[3:-1:2]
            foreach(name -> remove_save(folder, name), prunable_saves(folder, 1))
            @test error_name(() -> remove_save(folder, names[1])) == "ZERO_E_STATE"
            @test error_name(() -> remove_save(folder, names[2])) == "ZERO_E_NOT_FOUND"
        end
    end

    @testset "damaged and closed ones are errors" begin
        mktempdir() do folder
            state = joinpath(folder, saved_steps(folder, 1)[1], "state-00001-of-00001.safetensors")
            bytes = read(state)
            bytes[end] = xor(bytes[end], 0x01)
            write(state, bytes)
            saved = Save(folder)
            @test error_name(() -> verify(saved)) == "ZERO_E_CHECKPOINT"
            close(saved)
            @test error_name(() -> verify(saved)) == "ZERO_E_BAD_HANDLE"
            @test error_name(() -> Save(joinpath(folder, "nowhere"))) == "ZERO_E_NOT_FOUND"
        end
    end
end
