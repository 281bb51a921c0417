import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import libzero
from libzero import Feature, Group

RANKS = 3
PROGRAM = pathlib.Path(__file__).with_name("launched.py")
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

    def test_ranks_of_mpirun(self):
        if shutil.which("mpirun") is None:
            self.skipTest("no mpirun was found")
        if not libzero.has_feature(Feature.MPI):
            self.skipTest("libzero has no MPI here: " + libzero.describe())
        environment = {**os.environ, **OPEN_MPI, "PYTHONPATH": str(pathlib.Path(libzero.__file__).parent.parent)}
        command = ["mpirun", "-n", str(RANKS), sys.executable, str(PROGRAM)]
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=60)
        halves = [[2, 2], [1, 1], [2, 2]]
        expected = [f"{rank} of 3: {[[3, 3], [3, 3], halves[rank]]} -1.0" for rank in range(RANKS)]
        self.assertEqual(sorted(done.stdout.splitlines()), expected)


if __name__ == "__main__":
    unittest.main()
