import array
import os
import threading
import unittest

import numpy as np
import ranks
from failing import TestCase
from libzero import Config, Error, Group, Operation, Reduce, Status, as_bf16

SHORT_MS = 200


class CollectivesTest(TestCase):
    def test_all_reduce_makes_an_array_of_the_same_shape_and_type(self):
        for kind in (np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8):
            sums = ranks.run(3, lambda group: group.all_reduce(np.full((2, 3), group.rank + 1, kind)))
            for found in sums:
                self.assertEqual((found.dtype, found.tolist()), (kind, [[6] * 3] * 2))

    def test_bf16_is_marked_uint16(self):
        sums = ranks.run(2, lambda group: group.all_reduce(as_bf16(np.array([0x3F80], np.uint16))))
        self.assertEqual([int(found[0]) for found in sums], [0x4000, 0x4000])

    def test_arrays_are_used_where_they_lie(self):
        def body(group):
            data = np.arange(6, dtype=np.float32).reshape(2, 3)
            self.assertIs(group.all_reduce(data, data), data)
            part = array.array("f", [1, 2, 3])
            group.all_reduce(part, part, Reduce.MAX)
            with memoryview(bytearray(8)).cast("i") as numbers:
                group.all_reduce(np.array([5, 6], np.int32), numbers)
                return data[1, 2], part.tolist(), numbers.tolist()

        self.assertEqual(ranks.run(2, body), [(10, [1, 2, 3], [10, 12])] * 2)

    def test_every_collective(self):
        def body(group):
            rank = group.rank
            offset, count = group.share(10, rank)
            whole = np.arange(10, dtype=np.int64)
            mine = whole[offset : offset + count].copy()
            np.testing.assert_array_equal(group.reduce_scatter(whole), 3 * mine)
            np.testing.assert_array_equal(group.all_gather(mine, np.empty_like(whole)), whole)
            np.testing.assert_array_equal(group.broadcast(whole if rank == 1 else np.zeros_like(whole), root=1), whole)
            np.testing.assert_array_equal(group.scatter(whole if rank == 2 else None, np.empty_like(mine), 10, root=2), mine)
            np.testing.assert_array_equal(group.all_to_all(np.arange(3) + 10 * rank), np.array([0, 10, 20]) + rank)
            group.barrier()
            return group.gather(mine, 10, root=1), group.reduce(whole, root=2, op=Reduce.PROD)

        gathered, reduced = zip(*ranks.run(3, body))
        np.testing.assert_array_equal(gathered[1], np.arange(10))
        np.testing.assert_array_equal(reduced[2], np.arange(10) ** 3)
        self.assertEqual([found is None for found in gathered + reduced], [True, False, True, True, True, False])

    def test_two_ranks_exchange_in_a_thread_each(self):
        def body(group):
            peer = 1 - group.rank
            thread = threading.Thread(target=group.send, args=(np.full(4, group.rank, np.float64), peer))
            thread.start()
            found = group.recv(np.empty(4), peer)
            thread.join()
            return found[3]

        self.assertEqual(ranks.run(2, body), [1, 0])

    def test_places_shares_and_splits(self):
        def body(group):
            part = group.split(group.rank % 2 if group.rank < 2 else -1, key=5)
            place = (group.rank, group.size, group.local_rank, group.local_size, group.host_count)
            return place, None if part is None else part.size

        self.assertEqual(ranks.run(3, body), [((0, 3, 0, 3, 1), 1), ((1, 3, 1, 3, 1), 1), ((2, 3, 2, 3, 1), None)])

    def test_operations_may_be_given_by_name(self):
        def body(group):
            self.assertEqual(repr(group), f"Group(rank {group.rank} of 2)")
            greatest = group.all_reduce(np.array([group.rank]), op="max")
            with self.assertRaisesRegex(TypeError, "no reduce 'total'; there are sum, avg, min, max, prod"):
                group.all_reduce(greatest, op="total")
            return int(greatest[0]), group.traffic("all_reduce").call_count

        self.assertEqual(ranks.run(2, body), [(1, 1)] * 2)

    def test_traffic_is_counted(self):
        def body(group):
            group.all_reduce(np.zeros(10, np.float32))
            return group.traffic(Operation.ALL_REDUCE).call_count, group.traffic(Operation.BARRIER).call_count

        self.assertEqual(ranks.run(2, body), [(1, 0)] * 2)


class BadArraysTest(TestCase):
    def setUp(self):
        self.group = ranks.alone()
        self.addCleanup(self.group.close)

    def test_a_wrong_type_is_refused(self):
        with self.assertRaisesRegex(TypeError, "complex128"):
            self.group.all_reduce(np.zeros(3, complex))
        with self.assertRaisesRegex(TypeError, ">f4"):
            self.group.all_reduce(np.zeros(3, ">f4"))
        with self.assertRaisesRegex(TypeError, "float64, but the other array of the call is float32"):
            self.group.all_reduce(np.zeros(3, np.float32), np.zeros(3))
        with self.assertRaisesRegex(TypeError, "a NumPy array is needed, or something else with DLPack or the buffer protocol, not a list"):
            self.group.all_reduce([1.0, 2.0])

    def test_an_output_must_be_writable(self):
        data = np.zeros(3)
        data.flags.writeable = False
        self.group.all_reduce(data)
        with self.assertRaisesRegex(BufferError, "read-only"):
            self.group.all_reduce(np.zeros(3), data)
        with self.assertRaisesRegex(BufferError, "read-only"):
            self.group.broadcast(data)
        with self.assertRaisesRegex(BufferError, "read-only"):
            self.group.broadcast(bytes(8))

    def test_arrays_must_be_contiguous(self):
        with self.assertRaisesRegex(BufferError, "contiguous"):
            self.group.all_reduce(np.zeros((3, 3))[:, 1])
        with self.assertRaisesRegex(BufferError, "contiguous"):
            self.group.all_reduce(np.zeros((3, 3), order="F"))

    def test_arrays_must_be_aligned(self):
        odd = np.frombuffer(bytearray(25), np.uint8)[1:].view(np.float64)
        for call in (lambda: self.group.all_reduce(odd), lambda: self.group.all_reduce(np.zeros(3), odd)):
            with self.assertRaisesRegex(BufferError, "multiples of their 8 bytes"):
                call()
        self.assertEqual(self.group.all_reduce(odd[:0]).size, 0)

    def test_lengths_are_libzeros_to_judge(self):
        error = self.fails(Status.E_INVALID_ARGUMENT, self.group.all_reduce, np.zeros(10), np.zeros(9))
        self.assertEqual(error.text, "send_count is 10 and recv_count is 9, but they must be equal")
        self.fails(Status.E_INVALID_ARGUMENT, self.group.reduce_scatter, np.zeros(10), np.zeros(9))
        self.fails(Status.E_INVALID_ARGUMENT, self.group.broadcast, np.zeros(1), 5)
        self.fails(Status.E_INVALID_ARGUMENT, self.group.all_reduce, np.zeros(1), op=77)

    def test_an_array_is_let_go_after_a_refusal(self):
        data = bytearray(8)
        self.fails(Status.E_INVALID_ARGUMENT, self.group.broadcast, data, 5)
        with self.assertRaises(BufferError):
            self.group.all_reduce(memoryview(data), memoryview(bytes(8)))
        data.append(1)


class FailuresTest(TestCase):
    def test_an_exception_in_a_with_block_aborts_the_group(self):
        def body(group):
            if group.rank == 2:
                groups.append(group)
                raise error
            self.assertIn(text, self.fails(Status.E_ABORTED, group.barrier).text)

        for error, text in (
            (KeyError("no such batch"), "KeyError: 'no such batch'"),
            (ValueError(os.fsdecode(b"\xff") + "\0."), "ValueError: ? ."),
        ):
            groups = []
            with self.assertRaises(type(error)) as caught:
                ranks.run(3, body)
            self.assertIs(caught.exception, error)
            self.assertTrue(groups[0].closed)

    def test_a_group_is_closed_also_when_the_exception_has_no_text(self):
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError("no text")

        group = ranks.alone()
        with self.assertRaisesRegex(RuntimeError, "no text"), group:
            raise Mute
        self.assertTrue(group.closed)

    def test_timeout_poisons_the_group(self):
        held = threading.Event()

        def body(group):
            if group.rank == 1:
                self.assertTrue(held.wait(60))
                return
            group.set_deadline(SHORT_MS)
            group.status()
            self.assertIs(group.quiet, True)
            self.fails(Status.E_TIMEOUT, group.barrier)
            self.fails(Status.E_TIMEOUT, group.status)
            self.assertIs(group.quiet, True)
            held.set()

        ranks.run(2, body)

    def test_mismatch(self):
        def body(group):
            return self.fails(Status.E_MISMATCH, group.all_reduce, np.zeros(10 + group.rank)).code

        self.assertEqual(ranks.run(2, body), [Status.E_MISMATCH] * 2)

    def test_ranks_that_do_not_meet(self):
        with Config(rendezvous_ms=SHORT_MS) as config:
            self.fails(Status.E_RENDEZVOUS, Group.local, ranks.group_name(), 0, 2, config)

    def test_names(self):
        self.fails(Status.E_INVALID_ARGUMENT, Group.local, None, 0, 2)
        self.fails(Status.E_INVALID_ARGUMENT, Group.local, "", 0, 2)
        with self.assertRaises(ValueError):
            Group.local("a\0b", 0, 1)
        with self.assertRaises(TypeError):
            Group.local(b"name", 0, 1)

    def test_mpi_module_that_is_not_there(self):
        with Config(mpi_module="/nonexistent/libzero_mpi.so") as config:
            self.assertIn("/nonexistent", self.fails(Status.E_MODULE, Group.mpi, config=config).text)

    def test_groups_over_hosts_need_a_device(self):
        with Config(rendezvous_host="127.0.0.1") as config:
            id = Group.unique_id(config)
            self.assertRegex(id, r"^127\.0\.0\.1:\d+/.+$")
            self.assertIn("ZERO_KEY_DEVICE", self.fails(Status.E_INVALID_ARGUMENT, Group.nccl, id, 0, 1, config).text)
            self.fails(Status.E_INVALID_ARGUMENT, Group.nccl, "no id", 0, 1, config)

    def test_use_after_close(self):
        group = ranks.alone()
        group.close()
        self.assertIn("Group was closed", self.fails(Status.E_BAD_HANDLE, lambda: group.size).text)
        self.fails(Status.E_BAD_HANDLE, group.all_reduce, np.zeros(1))
        self.fails(Status.E_BAD_HANDLE, group.split, 0)
        self.fails(Status.E_BAD_HANDLE, lambda: group.quiet)

    def test_errors_have_their_parts(self):
        error = self.fails(Status.E_INVALID_ARGUMENT, Group.local, None, 5, 1)
        self.assertEqual(error.args, (Status.E_INVALID_ARGUMENT, "ZERO_E_INVALID_ARGUMENT", error.text))
        self.assertEqual(Error(-7, "ZERO_E_UNKNOWN", "x").code, -7)


class ThreadsTest(TestCase):
    def test_a_rank_that_waits_does_not_hold_the_interpreter(self):
        name, passed = ranks.group_name(), []

        def wait():
            with Config(deadline_ms=20000) as config, Group.local(name, 0, 2, config) as group:
                group.barrier()
                passed.append(True)

        waiter = threading.Thread(target=wait)
        waiter.start()
        with Group.local(name, 1, 2) as group:
            for _ in range(100000):
                pass
            self.assertEqual(passed, [])
            group.barrier()
            waiter.join()
        self.assertEqual(passed, [True])

    def test_another_thread_aborts_a_waiting_rank(self):
        held = threading.Event()

        def body(group):
            if group.rank == 1:
                return self.assertTrue(held.wait(60))
            threading.Timer(0.05, group.abort, ["enough"]).start()
            self.assertIn("enough", self.fails(Status.E_ABORTED, group.barrier).text)
            held.set()

        ranks.run(2, body)


if __name__ == "__main__":
    unittest.main()
