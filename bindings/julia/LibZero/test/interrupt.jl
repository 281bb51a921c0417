"Interrupts a task that waits, and says what it ended with."
function interrupt(task)
    foreach(_ -> yield(), 1:10)
    schedule(task, InterruptException(); error = true)
    try
        wait(task)
    catch error
        return error isa TaskFailedException ? error.task.exception : error
    end
end

@testset "an interrupted wait leaves no memory to be overwritten" begin
    @testset "what was lent stays until the call has ended by itself" begin
        name = "interrupt.$(getpid())"
        groups = Vector{Group}(undef, 2)
        @sync for rank in 0:1
            @async groups[rank+1] = Group(name, rank, 2)
        end
        freed = Ref(false)
        waiting = @async begin
            data = finalizer(_ -> freed[] = true, fill(1.0, 100_000))
            all_reduce!(groups[1], data, :sum)
        end
        @test interrupt(waiting) isa InterruptException
        waiting = nothing
        GC.gc()
        @test length(LibZero.abandoned) == 1 && !freed[]
        @test all_reduce!(groups[2], fill(2.0, 100_000), :sum)[1] == 3
        @test collect_garbage(() -> freed[] && isempty(LibZero.abandoned); rounds = 2000)
        foreach(close, groups)
    end

    @testset "so do groups that come too late" begin
        name = "late.$(getpid())"
        waiting = @async Group(name, 0, 2)
        @test interrupt(waiting) isa InterruptException
        @test error_name(() -> Group(group -> barrier(group), name, 1, 2)) == "ZERO_E_PEER_LEFT"
        @test collect_garbage(() -> isempty(LibZero.abandoned); rounds = 2000)
    end

    @testset "sleeping waits are interrupted too" begin
        name = "asleep.$(getpid())"
        waiting = @async Group(name, 0, 2; rendezvous_ms = 3000)
        sleep(0.1)
        @test interrupt(waiting) isa InterruptException
        @test collect_garbage(() -> isempty(LibZero.abandoned); rounds = 2000)
    end
    @testset "an acquire that was interrupted has a release of its own" begin
        interrupted = Base.Event()
        @test on_ranks(2) do group, rank
            Optimizer(group; stage = 3) do optimizer
                w = add_param!(optimizer, "w", Float32, 1000)
                seal!(optimizer)
                begin!(optimizer, :local)
                mine = zeros(Float32, 1000)
                if rank == 0
                    @test interrupt(@async acquire!(optimizer, w, mine)) isa InterruptException
                    notify(interrupted)
                else
                    wait(interrupted)
                    acquire!(optimizer, w, mine)
                end
                collect_garbage(() -> isempty(LibZero.abandoned); rounds = 2000)
                is_mine = pointer(acquire(optimizer, w)) == pointer(mine)
                kept = map(1:2) do _
                    release(optimizer, w)
                    !isempty(optimizer.tensors[1].destinations)
                end
                (is_mine, kept)
            end
        end == fill((true, [true, false]), 2)
    end
end
