import tempfile
import unittest

import numpy as np
import ranks
from failing import TestCase
from libzero import Checkpoint, Config, Divisor, Optimizer, Part, Source, Status


def trained(group, stage, steps):
    """An optimizer after so many steps, or sealed with None."""
    with Config(stage=stage, divisor=Divisor.ONE) as config:
        optimizer = Optimizer(group, config)
    optimizer.add_param("weight", (10, 30))
    optimizer.seal()
    if steps is not None:
        optimizer.begin(Source.LOCAL)
    for _ in range(steps or 0):
        if group.rank == 0:
            optimizer.grad_ready(0, np.full((10, 30), 0.5, np.float32))
        optimizer.step()
    return optimizer


def weight(optimizer):
    return optimizer.read(0, np.empty((10, 30), np.float32))


class CheckpointTest(TestCase):
    def test_a_run_goes_on_with_other_ranks_in_another_stage(self):
        with tempfile.TemporaryDirectory() as folder:

            def first(group):
                with trained(group, 3, 2) as optimizer:
                    self.assertFalse(optimizer.resume(folder))
                    optimizer.save(folder)
                    return weight(optimizer)

            def second(group):
                with trained(group, 1, None) as optimizer:
                    self.assertTrue(optimizer.resume(folder))
                    self.assertEqual(optimizer.get_i64("step_count"), 2)
                    return weight(optimizer)

            expected = ranks.run(3, first)[0]
            np.testing.assert_array_equal(ranks.run(2, second)[1], expected)

    def test_arrays_and_texts_of_the_program_are_in_the_save(self):
        with tempfile.TemporaryDirectory() as folder:

            def save(group):
                with trained(group, 2, 1) as optimizer, Checkpoint(group) as checkpoint:
                    checkpoint.add_optimizer(optimizer, "model.")
                    checkpoint.add_tensor("seen", np.array([group.rank + 5], np.int64), "each")
                    checkpoint["epoch"] = "3"
                    return checkpoint.save(folder).step

            def load(group):
                seen = np.zeros(1, np.int64)
                with trained(group, 0, None) as optimizer, Checkpoint(group) as checkpoint:
                    checkpoint.add_optimizer(optimizer, "model.")
                    checkpoint.add_tensor("seen", seen, "each")
                    self.fails(Status.E_NOT_FOUND, checkpoint.__getitem__, "epoch")
                    self.assertEqual(checkpoint.load(folder, Part.ALL).step, 1)
                    self.assertEqual(checkpoint.skipped(), [])
                    return checkpoint["epoch"], int(seen[0])

            self.assertEqual(ranks.run(2, save), [1, 1])
            self.assertEqual(ranks.run(2, load), [("3", 5), ("3", 6)])

    def test_parameters_travel_as_plain_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/model.safetensors"

            def save(group):
                with trained(group, 3, 1) as optimizer, Checkpoint(group) as checkpoint:
                    checkpoint.add_optimizer(optimizer)
                    self.assertEqual(checkpoint.export(path).file_count, 1)
                    self.assertEqual(checkpoint.export(folder + "/bf16", "bf16").file_count, 1)
                    self.fails(Status.E_INVALID_ARGUMENT, checkpoint.export, path, "i64")
                    return weight(optimizer)

            def load(group):
                with trained(group, 1, None) as optimizer, Checkpoint(group) as checkpoint:
                    checkpoint.add_optimizer(optimizer)
                    self.fails(Status.E_INVALID_ARGUMENT, checkpoint.load, path)
                    self.assertEqual(checkpoint.load(folder + "/bf16", "params").converted, 1)
                    self.assertEqual(checkpoint.load(path, Part.PARAMS).converted, 0)
                    return weight(optimizer)

            expected = ranks.run(3, save)[0]
            np.testing.assert_array_equal(ranks.run(2, load)[1], expected)

    def test_all_ranks_see_a_stop(self):
        def body(group):
            with trained(group, 1, 0) as optimizer:
                if group.rank == 1:
                    optimizer.request_stop(7)
                self.fails(Status.E_INVALID_ARGUMENT, optimizer.request_stop, 0)
                return [optimizer.step().stop_reason for _ in range(2)]

        self.assertEqual(ranks.run(2, body), [[7, 0], [7, 0]])


if __name__ == "__main__":
    unittest.main()
