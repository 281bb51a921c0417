"""Programs of two ranks that torchrun starts, against DistributedDataParallel and AdamW."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import libzero
from test_dlpack import package

torch = package("torch")
package("torch.distributed")

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"


def environment():
    kept = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")}
    return {**kept, "PYTHONPATH": str(pathlib.Path(libzero.__file__).parent.parent), "OMP_NUM_THREADS": "1"}


def torchrun(program, *arguments):
    """What rank 0 of two prints."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run([*launch, str(program), *arguments], env=environment(), capture_output=True, encoding="utf-8", timeout=120)
    # A thread of torch's gloo may still give back the last tensor as Python ends, which then ends the process; also without libzero.
    if done.returncode != 0 and "terminate called without an active exception" not in done.stderr:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


def losses(text):
    return [float(value) for value in re.findall(r"^step +\d+  loss ([\d.]+)$", text, re.MULTILINE)]


class LaunchTest(unittest.TestCase):
    def test_the_example_trains_as_its_twin_of_two_other_lines(self):
        program = (EXAMPLES / "torch" / "train.py").read_text(encoding="utf-8")
        twin, changed = re.subn(r"^# was: (.*)\n.*$", r"\1", program, flags=re.MULTILINE)
        self.assertEqual(changed, 2)
        self.assertNotIn("libzero.torch", re.sub('""".*?"""', "", twin, flags=re.DOTALL))
        stages = (0, 1, 2, 3) if os.environ.get("ZERO_TEST_FULL") else (3,)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "train.py"
            path.write_text(twin, encoding="utf-8")
            expected = losses(torchrun(path))
            self.assertEqual(len(expected), 20)
            self.assertLess(expected[-1], expected[0] - 1)
            for stage in stages:
                path.write_text(program.replace("stage=3", f"stage={stage}"), encoding="utf-8")
                found = losses(torchrun(path))
                self.assertEqual(len(found), 20)
                for a, b in zip(found, expected):
                    self.assertLessEqual(abs(a - b), 1e-5, f"stage {stage}")

    def test_the_example_of_jax_learns_alike_in_every_stage(self):
        package("jax")
        program = [sys.executable, str(EXAMPLES / "jax" / "train.py")]
        found = set()
        for stage in ("0", "3"):
            run = subprocess.run([*program, "2", stage], env=environment(), check=True, stdout=subprocess.PIPE, timeout=120)
            found.add(run.stdout.decode())
        self.assertEqual(len(found), 1)
        values = losses(found.pop())
        self.assertEqual(len(values), 20)
        self.assertLess(values[-1], values[0] / 3)


if __name__ == "__main__":
    unittest.main()
