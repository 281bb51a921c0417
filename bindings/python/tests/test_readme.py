import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import libzero
import numpy as np
import ranks

FOLDER = pathlib.Path(__file__).resolve().parent.parent


def tested_blocks(language):
    """The fenced blocks of README.md that it says are tested."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^<!-- tested -->\n```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class ReadmeTest(unittest.TestCase):
    def run_program(self, package):
        program = tested_blocks("python")[0]
        environment = {**os.environ, "PYTHONPATH": str(package)}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd="/", env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=60)
        self.assertEqual(done.stdout, " ".join(["[2.0, 1.0]"] * 4) + "\n")

    def test_the_program(self):
        self.run_program(pathlib.Path(libzero.__file__).parent.parent)

    def test_a_run_is_saved_and_goes_on_elsewhere(self):
        names = {"np": np}
        exec(tested_blocks("python")[1], names)

        def train(optimizer, steps):
            for step in range(steps):
                for param in (1, 0):
                    optimizer.grad_ready(param, libzero.to_bf16(np.full(5, step + param + 1, np.float32)))
                optimizer.step()
            return [optimizer.read(param, np.empty(5, libzero.numpy_dtype(libzero.Dtype.BF16))).tolist() for param in (0, 1)]

        def optimizer_of(group, stage):
            optimizer = libzero.Optimizer(group, libzero.Config(stage=stage, lr=0.1))
            for name in ("w", "v"):
                optimizer.add_param(name, 5, "bf16")
            optimizer.seal()
            return optimizer

        def before(group):
            with optimizer_of(group, 3) as optimizer:
                optimizer.begin("local")
                train(optimizer, 2)
                return names["save"](optimizer), train(optimizer, 2)

        def after(group):
            with optimizer_of(group, 1) as optimizer:
                names["restore"](optimizer, *saved)
                return train(optimizer, 2)

        saved, expected = ranks.run(2, before)[0]
        self.assertEqual(saved[1], 2)
        self.assertEqual(ranks.run(3, after), [expected] * 3)

    def test_the_way_of_a_user_from_the_sources_to_the_program(self):
        if shutil.which("pkg-config") is None or subprocess.run(["pkg-config", "--exists", "zero"], check=False).returncode != 0:
            self.skipTest("pkg-config does not find an installed libzero")
        (build,) = tested_blocks("sh")
        with tempfile.TemporaryDirectory() as folder:
            sources = pathlib.Path(folder) / "python"
            shutil.copytree(FOLDER, sources, ignore=shutil.ignore_patterns("_zero*", "__pycache__"))
            python = pathlib.Path(folder) / "bin" / "python3"
            python.parent.mkdir()
            python.symlink_to(sys.executable)
            environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
            subprocess.run(build, shell=True, cwd=sources, env=environment, check=True, timeout=120)
            self.run_program(sources)


if __name__ == "__main__":
    unittest.main()
