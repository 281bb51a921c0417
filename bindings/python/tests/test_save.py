import os
import tempfile
import unittest

import numpy as np
from failing import TestCase
from libzero import Checkpoint, Config, Divisor, Group, Optimizer, Save, Source, Status, list_saves, prunable_saves, remove_save


def save_run(folder, steps):
    """Saves a run of one rank after each of its steps."""
    with Group.local(None, 0, 1) as group, Config(divisor=Divisor.ONE) as config, Optimizer(group, config) as optimizer:
        optimizer.add_param("weight", (10, 30))
        optimizer.seal()
        optimizer.begin(Source.LOCAL)
        with Checkpoint(group) as checkpoint:
            checkpoint.add_optimizer(optimizer)
            for _ in range(steps):
                optimizer.grad_ready(0, np.full((10, 30), 0.5, np.float32))
                optimizer.step()
                checkpoint.save(folder)


class SaveTest(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        save_run(self.folder, 3)
        self.names = [save["name"] for save in list_saves(self.folder)]

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_saves_are_listed_described_and_verified(self):
        found = [(save["step"], save["valid"], save["ranks"]) for save in list_saves(self.folder)]
        self.assertEqual(found, [(3, True, 1), (2, True, 1), (1, True, 1)])
        with Save(self.folder) as save:
            found = save.describe()
            self.assertEqual((found["step"], found["sections"][0]["tensors"][0]["name"]), (3, "weight"))
            save.verify()
            done, total = save.progress
            self.assertTrue(0 < done == total)
        self.fails(Status.E_BAD_HANDLE, save.verify)

    def test_saves_are_compared_and_exported(self):
        with Save(self.path(self.names[0])) as newest, Save(self.path(self.names[1])) as older:
            self.assertEqual(newest.compare(newest), [])
            found = newest.compare(older)
            self.assertIn({"name": "step", "difference": "differs", "a": "3", "b": "2"}, found)
            self.assertIn("weight param", [one["name"] for one in found])
            newest.export(self.path("model.safetensors"))
            self.assertGreater(os.path.getsize(self.path("model.safetensors")), 300 * 4)

    def test_old_saves_are_removed_and_the_newest_stays(self):
        self.assertEqual(prunable_saves(self.folder, 1), self.names[:0:-1])
        for name in prunable_saves(self.folder, 1):
            remove_save(self.folder, name)
        self.assertEqual([save["name"] for save in list_saves(self.folder)], self.names[:1])
        self.fails(Status.E_STATE, remove_save, self.folder, self.names[0])
        self.fails(Status.E_NOT_FOUND, remove_save, self.folder, self.names[1])

    def test_a_damaged_save_is_an_error_that_names_the_file(self):
        state = self.path(os.path.join(self.names[0], "state-00001-of-00001.safetensors"))
        with open(state, "r+b") as file:
            file.seek(os.path.getsize(state) - 1)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        with Save(self.folder) as save:
            error = self.fails(Status.E_CHECKPOINT, save.verify)
        self.assertIn("state-00001-of-00001.safetensors is damaged", str(error))


if __name__ == "__main__":
    unittest.main()
