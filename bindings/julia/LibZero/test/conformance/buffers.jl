# Sharded buffers of 1000 Float32.

with_buffer(body, size = 3) = on_ranks((group, rank) -> Buffer(buffer -> body(buffer, rank), group, Float32, 1000), size)

write_part(buffer, rank) = write(buffer, floats(400, rank), 300rank + 1)

function buffer_scenarios()
    say("shards", with_buffer((buffer, rank) -> place(shard_range(buffer))))
    say("buffer-write-read", with_buffer() do buffer, rank
        write_part(buffer, rank)
        hash_of(read!(buffer, zeros(Float32, 500), 100rank + 1))
    end)
    say("buffer-whole", with_buffer() do buffer, rank
        write_part(buffer, rank)
        acquire(hash_of, buffer)
    end)
    say("buffer-whole-twice", with_buffer((buffer, rank) -> acquire(whole -> error_of(() -> acquire(buffer)), buffer), 1))
    say("buffer-reduce-scatter", with_buffer() do buffer, rank
        reduce_scatter!(buffer, floats(1000, rank), :avg)
        hash_of(shard(buffer))
    end)
end
