@testset "buffers" begin
    function with_buffer(body, size = 3; options...)
        on_ranks((group, rank) -> Buffer(buffer -> body(buffer, rank), group, Float32, 1000; options...), size)
    end

    @test with_buffer((buffer, rank) -> (length(buffer), eltype(buffer), shard_range(buffer), length(shard(buffer)))) ==
          [(1000, Float32, range, length(range)) for range in (1:256, 257:512, 513:1000)]
    @test with_buffer((buffer, rank) -> length(shard(buffer)); shard_weights = "0,1,0") == [0, 1000, 0]

    @testset "shards are parts of the whole" begin
        @test with_buffer() do buffer, rank
            shard(buffer) .= shard_range(buffer)
            acquire(whole -> whole == 1:1000, buffer)
        end == fill(true, 3)
        @test with_buffer() do buffer, rank
            reduce_scatter!(buffer, fill(Float32(rank), 1000), :sum)
            all(==(3), shard(buffer))
        end == fill(true, 3)
    end

    @testset "any rank reads and writes any range" begin
        @test with_buffer() do buffer, rank
            write(buffer, rank == 1 ? Float32[1, 2, 3] : nothing, 255)
            read!(buffer, rank == 2 ? zeros(Float32, 5) : nothing, 254)
        end == [nothing, nothing, [0, 1, 2, 3, 0]]
    end

    @testset "misuse" begin
        @test with_buffer(1) do buffer, rank
            whole = acquire(buffer)
            twice = error_name(() -> acquire(buffer))
            release(buffer)
            (twice, error_name(() -> release(buffer)), error_name(() -> read!(buffer, zeros(Float32, 2), 1000)),
             error_name(() -> write(buffer, zeros(Float32, 1), 0)))
        end == [("ZERO_E_STATE", "ZERO_E_STATE", "ZERO_E_INVALID_ARGUMENT", "ZERO_E_INVALID_ARGUMENT")]
        Group(nothing, 0, 1) do group
            @test_throws ArgumentError Buffer(group, Int8, 10)
            @test error_name(() -> Buffer(group, Float32, -1)) == "ZERO_E_INVALID_ARGUMENT"
            @test_throws ArgumentError Buffer(buffer -> memory_stats(buffer, :everything), group, Float32, 10)
            @test Buffer(buffer -> isempty(shard(buffer)) && acquire(isempty, buffer), group, Float32, 0)
        end
    end

    @test with_buffer((buffer, rank) -> memory_stats(buffer).now_nbytes >= 4 * length(shard(buffer))) == fill(true, 3)
end
