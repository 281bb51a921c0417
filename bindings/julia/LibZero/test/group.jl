@testset "groups" begin
    @testset "places" begin
        @test on_ranks((group, rank) -> (group_rank(group), group_size(group), local_rank(group), local_size(group), host_count(group))) ==
              [(rank, 3, rank, 3, 1) for rank in 0:2]
        @test on_ranks((group, rank) -> share(group, 10)) == [1:3, 4:6, 7:10]
        @test Group(group -> (group_size(group), share(group, 7, 0)), nothing, 0, 1) == (1, 1:7)
        @test env_group(group_size) == 1 && launcher() == "" # nothing has launched this process
        id = unique_id(rendezvous_host = "127.0.0.1")
        @test startswith(id, "127.0.0.1:") && occursin("/", id)
        @test_throws ZeroError nccl_group(id, 0, 1) # without a device
        @test on_ranks((group, rank) -> (part = split(group, rank == 1 ? -1 : 0, -rank); isnothing(part) ? nothing : group_rank(part))) ==
              [1, nothing, 0]
    end

    @testset "collectives" begin
        for T in (Float32, Float64, Float16, BFloat16, Int32, Int64, UInt8)
            @test on_ranks((group, rank) -> all_reduce!(group, T[1, rank], :sum)) == fill(T[3, 3], 3)
        end
        @test on_ranks((group, rank) -> all_reduce!(group, [rank;], [-1], LibZero.ZERO_REDUCE_MAX)) == fill([2], 3)
        @test on_ranks((group, rank) -> bcast!(group, fill(rank, 2, 2), 1)) == fill([1 1; 1 1], 3)
        @test on_ranks((group, rank) -> reduce!(group, [rank], rank == 1 ? [0] : nothing, :avg, 1)) == [nothing, [1], nothing]
        @test on_ranks((group, rank) -> all_to_all!(group, [10rank, 10rank + 1, 10rank + 2], zeros(Int, 3))) ==
              [[rank, 10 + rank, 20 + rank] for rank in 0:2]
    end

    @testset "parts of a whole may be views of it" begin
        @test on_ranks() do group, rank
            whole = collect(1.0:10.0)
            own = view(whole, share(group, 10))
            reduce_scatter!(group, whole, own, :sum)
            all_gather!(group, own, whole)
        end == fill(3.0 .* (1:10), 3)
        @test on_ranks() do group, rank
            own = zeros(Int, length(share(group, 10)))
            scatter!(group, rank == 0 ? collect(1:10) : nothing, own, 10)
            gather!(group, own .+ 1, rank == 2 ? zeros(Int, 10) : nothing, 10, 2)
        end == [nothing, nothing, 2:11]
    end

    @testset "two ranks exchange, each sending in a task of its own" begin
        @test on_ranks(2) do group, rank
            sent = @async send(group, fill(rank, 100_000), 1 - rank)
            got = recv!(group, zeros(Int, 100_000), 1 - rank)
            wait(sent)
            unique(got)
        end == [[1], [0]]
    end

    @testset "failures" begin
        @test on_ranks((group, rank) -> error_name(() -> all_reduce!(group, zeros(10 + rank), :sum))) == fill("ZERO_E_MISMATCH", 3)
        @test on_ranks(2) do group, rank
            rank == 1 && return error_name(() -> barrier(group))
            @test status(group) === nothing && quiet(group)
            abort(group, "enough")
            @test quiet(group)
            error_name(() -> status(group))
        end == fill("ZERO_E_ABORTED", 2)
        @test on_ranks((group, rank) -> rank == 1 ? close(group) : error_name(() -> barrier(group)), 2) == ["ZERO_E_PEER_LEFT", nothing]
        @test on_ranks((group, rank) -> (set_deadline!(group, 100); rank == 1 ? nothing : error_name(() -> barrier(group))), 2) ==
              ["ZERO_E_TIMEOUT", nothing]
        @test error_name(() -> Group("lonely.$(getpid())", 0, 2; rendezvous_ms = 50)) == "ZERO_E_RENDEZVOUS"
        @test error_name(() -> Group("", 0, 2)) == "ZERO_E_INVALID_ARGUMENT"
        @test_throws ArgumentError Group("na\0me", 0, 2)
        @test_throws MethodError Group(3, 0, 2)
    end

    @testset "a group ends with its block, also when that throws" begin
        kept = Ref{Group}()
        @test_throws DivideError Group(group -> (kept[] = group; 1 ÷ 0), nothing, 0, 1)
        @test !isopen(kept[])
    end

    @testset "tell what they do" begin
        @test on_ranks() do group, rank
            all_reduce!(group, zeros(Float32, 9), :sum)
            stats = traffic_stats(group, :all_reduce)
            (stats.call_count, stats.sent_nbytes > 0, !isempty(describe(group)))
        end == fill((1, true, true), 3)
    end
end
