import unittest

import numpy as np
import ranks
from failing import TestCase
from libzero import Buffer, Config, Dtype, Memory, Reduce, Status

COUNT = 1000


class BufferTest(TestCase):
    def test_shards_follow_weights_and_lie_in_the_buffer(self):
        def body(group):
            with Config(shard_weights="1,0,3") as config, Buffer(group, COUNT, config=config) as buffer:
                shard = buffer.shard()
                self.assertEqual(shard.data.dtype, np.float32)
                shard.data[:] = group.rank + 1
                with buffer.whole() as whole:
                    np.testing.assert_array_equal(whole[shard.offset : shard.offset + shard.data.size], shard.data)
                    return shard.data.size, float(whole.sum())

        sizes, sums = zip(*ranks.run(3, body))
        self.assertEqual((sum(sizes), sizes[1]), (COUNT, 0))
        self.assertEqual(set(sums), {float(sizes[0] + 3 * sizes[2])})

    def test_ranges_of_any_rank(self):
        def body(group):
            with Buffer(group, COUNT, np.float64) as buffer:
                buffer.write(0, np.arange(COUNT, dtype=np.float64) if group.rank == 1 else None)
                return buffer.read(10, np.empty((3, 2)) if group.rank == 0 else None)

        found, nothing = ranks.run(2, body)
        np.testing.assert_array_equal(found, [[10, 11], [12, 13], [14, 15]])
        self.assertIsNone(nothing)

    def test_reduce_scatter(self):
        def body(group):
            with Buffer(group, COUNT, Dtype.I64) as buffer:
                buffer.reduce_scatter(np.arange(COUNT) + group.rank, Reduce.MAX)
                shard = buffer.shard()
                np.testing.assert_array_equal(shard.data, np.arange(COUNT)[shard.offset :][: shard.data.size] + 1)

        ranks.run(2, body)

    def test_the_whole_is_read_only(self):
        with ranks.alone() as group, Buffer(group, COUNT) as buffer, buffer.whole() as whole:
            with self.assertRaises(ValueError):
                whole[0] = 1
            with self.assertRaises(ValueError):
                whole.flags.writeable = True

    def test_the_whole_is_given_back_after_an_exception(self):
        with ranks.alone() as group, Buffer(group, COUNT) as buffer:
            with self.assertRaises(ZeroDivisionError), buffer.whole():
                raise ZeroDivisionError
            self.fails(Status.E_STATE, buffer.whole_release)
            buffer.whole_acquire()
            self.fails(Status.E_STATE, buffer.whole_acquire)

    def test_empty(self):
        with ranks.alone() as group, Buffer(group, 0, "bf16") as buffer, buffer.whole() as whole:
            self.assertEqual((whole.size, whole.dtype, buffer.dtype), (0, np.uint16, Dtype.BF16))
            self.assertEqual(buffer.shard().data.size, 0)

    def test_a_dtype_is_named_by_its_number_whatever_integer_that_is(self):
        with ranks.alone() as group:
            for number in (1, np.int32(1), np.uint8(1), np.int64(1), Dtype.F32):
                self.assertEqual(Buffer(group, COUNT, number).dtype, Dtype.F32)
            self.fails(Status.E_INVALID_ARGUMENT, Buffer, group, 1, np.int64(99))

    def test_memory(self):
        with ranks.alone() as group, Buffer(group, COUNT) as buffer:
            self.assertGreaterEqual(buffer.memory(Memory.BUFFER).now_nbytes, 4 * COUNT)
            self.fails(Status.E_INVALID_ARGUMENT, buffer.memory, 99)
            self.assertEqual(repr(buffer), f"Buffer({COUNT} elements of f32)")

    def test_bad_input(self):
        with ranks.alone() as group:
            self.fails(Status.E_INVALID_ARGUMENT, Buffer, group, -1)
            self.fails(Status.E_INVALID_ARGUMENT, Buffer, group, 1, 99)
            with Buffer(group, COUNT) as buffer:
                self.fails(Status.E_INVALID_ARGUMENT, buffer.read, COUNT - 1, np.empty(2, np.float32))
                self.fails(Status.E_INVALID_ARGUMENT, buffer.reduce_scatter, np.zeros(COUNT - 1, np.float32))
                with self.assertRaisesRegex(TypeError, "float64, but the buffer is float32"):
                    buffer.write(0, np.zeros(1))
                with self.assertRaisesRegex(BufferError, "read-only"):
                    buffer.read(0, np.frombuffer(bytes(8), np.float32))
            self.fails(Status.E_BAD_HANDLE, buffer.shard)
        self.fails(Status.E_BAD_HANDLE, Buffer, group, COUNT)


if __name__ == "__main__":
    unittest.main()
