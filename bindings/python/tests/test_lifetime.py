import random
import re
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import handles
import ranks
from failing import TestCase
from libzero import Buffer, Config, Key, Optimizer, Source, Status

BATCHES, FAMILIES = 25, 100  # 10000 objects, in parts: a process may open few files
THREADS, FAILURES = 8, 2000


class LifetimeTest(TestCase):
    def setUp(self):
        before = handles.live()
        self.addCleanup(lambda: self.assertEqual(handles.live(), before))

    def test_objects_end_in_any_order(self):
        chance = random.Random(1)
        before = handles.live()
        for _ in range(BATCHES):
            objects = []
            for number in range(FAMILIES):
                group = ranks.alone()
                optimizer = Optimizer(group)
                optimizer.add_param(f"p{number}", (3,))
                objects += [group, optimizer, Buffer(group, 5), Config(stage=number % 4)]
            self.assertEqual(handles.live(), before + 4 * FAMILIES)
            chance.shuffle(objects)
            for place, ended in enumerate(objects):
                if place % 3 == 0:
                    ended.close()
                if place % 3 == 1:
                    ended.cycle = ended
            del ended, group, optimizer
            while objects:
                objects.pop()

    def test_children_outlive_their_parents(self):
        group = ranks.alone()
        buffer, optimizer = Buffer(group, 3), Optimizer(group)
        optimizer.add_param("w", (3,))
        group.close()
        optimizer.seal()
        optimizer.begin(Source.LOCAL)
        optimizer.step()
        with buffer.whole() as data:
            self.assertEqual(data.tolist(), [0, 0, 0])
        optimizer.close()
        buffer.close()

    def test_memory_stays_as_long_as_arrays_over_it(self):
        with ranks.alone() as group, Buffer(group, 1 << 16) as buffer, Optimizer(group) as optimizer:
            optimizer.add_module_buffer("m", (1 << 16,))
            optimizer.seal()
            parts = buffer.shard().data[100:], optimizer.module_buffer(0)[::2]
        held = handles.live()
        self.fails(Status.E_BAD_HANDLE, buffer.shard)
        for part in parts:
            part[:] = 3
            self.assertEqual(part.sum(), 3 * part.size)
        del part, parts
        self.assertEqual(handles.live(), held - 2)

    def test_an_object_that_could_not_be_made_leaves_nothing(self):
        with Config(algorithm="nothing") as config, ranks.alone() as group:
            for _ in range(100):
                self.fails(Status.E_UNSUPPORTED, Optimizer, group, config)
            self.assertEqual(handles.live(), 2)

    def test_memory_of_the_caller_is_held_while_it_stands_for_a_parameter(self):
        with ranks.alone() as group, Optimizer(group) as optimizer:
            optimizer.add_param("w", (4,))
            optimizer.seal()
            optimizer.begin(Source.LOCAL)
            out = bytearray(16)
            optimizer.param_acquire(0, memoryview(out).cast("f"))
            with self.assertRaises(BufferError):
                out.append(0)
            optimizer.param_release(0)
            out.append(0)


class ContentionTest(TestCase):
    def test_every_thread_gets_its_own_errors(self):
        start = threading.Barrier(THREADS, timeout=60)

        def fail(number):
            with ranks.alone() as group, Optimizer(group) as optimizer:
                start.wait()
                for call in range(FAILURES):
                    given = number * FAILURES + call + 1
                    error = self.fails(Status.E_INVALID_ARGUMENT, optimizer.set_f64, Key.LR, 1, given)
                    self.assertIn(str(given), re.findall(r"\d+", error.text))

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(fail, range(THREADS)))


if __name__ == "__main__":
    unittest.main()
