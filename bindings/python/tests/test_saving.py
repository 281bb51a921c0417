"""Saves in the background."""

import os
import tempfile
import threading
import unittest

import handles
import numpy as np
import ranks
from failing import TestCase
from libzero import Checkpoint, Config, Snapshot, Status, list_saves
from small_model import begun, gradient, whole


def train(optimizer, rank, steps):
    for step in steps:
        optimizer.grad_ready(0, gradient(rank, step))
        optimizer.step()


class SavingTest(TestCase):
    def setUp(self):
        self.new_folder()

    def new_folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def loaded(self):
        """Step and parameter of the newest save."""
        with ranks.alone() as group, begun(group) as optimizer:
            self.assertTrue(optimizer.resume(self.folder))
            return optimizer.get_i64("step_count"), whole(optimizer)

    def test_steps_go_on_and_the_save_holds_the_step_of_the_call(self):
        for snapshot in Snapshot:
            with self.subTest(snapshot), Config(checkpoint_snapshot=snapshot) as config:
                self.new_folder()

                def body(group):
                    with begun(group) as optimizer, Checkpoint(group, config) as checkpoint:
                        checkpoint.add_optimizer(optimizer)
                        train(optimizer, group.rank, range(2))
                        before = whole(optimizer)
                        with checkpoint.save_async(self.folder) as saving:
                            train(optimizer, group.rank, range(2, 5))
                            self.assertEqual(saving.wait().step, 2)
                        self.assertTrue(saving.closed and (whole(optimizer) != before).all())
                        return before, saving.result.snapshot_nbytes

                told = ranks.run(2, body)
                step, found = self.loaded()
                self.assertEqual(step, 2)
                np.testing.assert_array_equal(found, told[0][0])
                self.assertTrue(sum(copied for _, copied in told) > 0 or snapshot == Snapshot.LAZY)

    def test_a_save_is_not_done_before_all_ranks_take_part(self):
        looked = threading.Event()

        def body(group):
            with begun(group) as optimizer:
                if group.rank == 1:
                    looked.wait()
                saving = optimizer.save_async(self.folder)
                if group.rank == 0:
                    self.assertFalse(saving.done())
                    looked.set()
                self.assertIsNone(saving.wait())
                self.assertTrue(saving.done())

        ranks.run(2, body)
        self.assertEqual(self.loaded()[0], 0)

    def test_what_is_dropped_and_closed_meanwhile_is_saved(self):
        before = handles.live()

        def body(group):
            with begun(group) as optimizer, Checkpoint(group) as checkpoint:
                checkpoint.add_optimizer(optimizer)
                checkpoint.add_tensor("seen", np.full(100_000, group.rank), "each")
                train(optimizer, group.rank, range(3))
                checkpoint.save_async(self.folder)
                saving = checkpoint.save_async(self.folder)
            group.close()
            return saving

        steps = [saving.wait().step for saving in ranks.run(2, body)]
        self.assertEqual((steps, len(list_saves(self.folder))), ([3, 3], 2))
        self.assertEqual(handles.live(), before)

    def test_a_save_that_fails_raises_its_error_and_costs_nothing(self):
        nowhere = os.path.join(self.folder, "nowhere")

        def body(group):
            with begun(group) as optimizer:
                with self.assertRaises(ArithmeticError), optimizer.save_async(nowhere):
                    raise ArithmeticError("of the block")
                saving = optimizer.save_async(nowhere)
                self.assertIn(nowhere, self.fails(Status.E_NOT_FOUND, saving.wait).text)
                self.assertTrue(saving.done())
                self.fails(Status.E_NOT_FOUND, saving.__exit__, None, None, None)
                self.fails(Status.E_BAD_HANDLE, saving.wait)
                self.fails(Status.E_BAD_HANDLE, saving.done)
                train(optimizer, group.rank, range(1))
                return optimizer.get_i64("step_count")

        self.assertEqual(ranks.run(2, body), [1, 1])

    def test_a_save_that_cannot_begin_is_an_error_of_the_call(self):
        with ranks.alone() as group, Checkpoint(group) as checkpoint:
            self.fails(Status.E_INVALID_ARGUMENT, checkpoint.save_async, "")
            self.assertRaises(TypeError, checkpoint.save_async, 5)
        self.fails(Status.E_BAD_HANDLE, checkpoint.save_async, self.folder)


if __name__ == "__main__":
    unittest.main()
