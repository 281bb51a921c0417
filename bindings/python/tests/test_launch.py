import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import libzero
from libzero import Feature, Group

RANKS = 3
HERE = pathlib.Path(__file__).parent
# Open MPI refuses root and more ranks than cores unless told that both are meant; the last name is that of release 5.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


class LaunchTest(unittest.TestCase):
    def test_without_a_launcher_there_is_one_rank(self):
        with Group.env() as group:
            self.assertEqual((group.rank, group.size), (0, 1))

    def mpirun(self, ranks, program, *arguments, **options):
        """A finished run of one of the programs beside this file."""
        if shutil.which("mpirun") is None:
            self.skipTest("no mpirun was found")
        if not libzero.has_feature(Feature.MPI):
            self.skipTest("libzero has no MPI here: " + libzero.describe())
        environment = {**os.environ, **OPEN_MPI, "PYTHONPATH": str(pathlib.Path(libzero.__file__).parent.parent)}
        command = ["mpirun", "-n", str(ranks), sys.executable, str(HERE / program), *arguments]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8", **options)

    def test_an_exception_that_nobody_catches_ends_the_other_ranks_at_once(self):
        for holder in ("module", "function"):
            with self.subTest(holder):
                # Less than the 60 s for which the last release of a group waits for the other ranks.
                done = self.mpirun(2, "abandoned.py", holder, stderr=subprocess.PIPE, timeout=40)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("RuntimeError: rank 0 gives up", done.stderr)
                self.assertIn("ZERO_E_PEER_LEFT: rank 0 ", done.stderr)

    def test_ranks_of_mpirun(self):
        done = self.mpirun(RANKS, "launched.py", check=True, timeout=60)
        halves = [[2, 2], [1, 1], [2, 2]]
        expected = [f"{rank} of 3: {[[3, 3], [3, 3], halves[rank]]} -1.0" for rank in range(RANKS)]
        self.assertEqual(sorted(done.stdout.splitlines()), expected)


if __name__ == "__main__":
    unittest.main()
