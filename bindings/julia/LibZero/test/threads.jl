# Ranks on several threads, which collect garbage while others wait; and an object that nobody closes before the process ends.
const THREADED = """
    name = "threads.\$(getpid())"
    sums = zeros(3)
    @sync for rank in 0:2
        Threads.@spawn Group(name, rank, 3) do group
            data = ones(1000)
            for round in 1:50
                garbage = [rand(100) for _ in 1:20]
                round % 10 == rank && GC.gc()
                all_reduce!(group, data, :avg)
            end
            sums[rank+1] = sum(data)
        end
    end
    left = Optimizer(Group(nothing, 0, 1))
    print(Threads.nthreads() == min(2, Sys.CPU_THREADS), " ", sums)
    """

@testset "ranks may run on several threads, and the collector waits for none" begin
    @test in_new_process(THREADED, "JULIA_NUM_THREADS" => "2") == "true [1000.0, 1000.0, 1000.0]"
end
