"""Sharded buffers of 1000 float32."""

import numpy as np
from libzero import Buffer, Reduce

import ranks
from values import values
from words import error_of, hash_of

COUNT = 1000


def _shards(group):
    with Buffer(group, COUNT) as buffer:
        shard = buffer.shard()
        return f"{shard.offset}:{shard.data.size}"


def _write_read(group):
    with Buffer(group, COUNT) as buffer:
        buffer.write(300 * group.rank, values(400, group.rank))
        return hash_of(buffer.read(100 * group.rank, np.empty(500, np.float32)))


def _whole(group):
    with Buffer(group, COUNT) as buffer:
        buffer.write(300 * group.rank, values(400, group.rank))
        with buffer.whole() as data:
            return hash_of(data)


def _whole_twice(group):
    with Buffer(group, COUNT) as buffer, buffer.whole():
        return error_of(buffer.whole_acquire)


def _reduce_scatter(group):
    with Buffer(group, COUNT) as buffer:
        buffer.reduce_scatter(values(COUNT, group.rank), Reduce.AVG)
        return hash_of(buffer.shard().data)


def scenarios():
    yield "shards", ranks.on(3, _shards)
    yield "buffer-write-read", ranks.on(3, _write_read)
    yield "buffer-whole", ranks.on(3, _whole)
    yield "buffer-whole-twice", ranks.on(1, _whole_twice)
    yield "buffer-reduce-scatter", ranks.on(3, _reduce_scatter)
