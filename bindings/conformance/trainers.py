#!/usr/bin/env python3
"""Trains the Fashion-MNIST classifier in several languages from the same first values on the same batches, and compares the losses of all
steps, the accuracy and the hash of all parameters with those of the first program.
usage: trainers.py NAME=COMMAND NAME=COMMAND...      COMMAND is split as a shell would
Two epochs of 3,000 images, or of all with the variable ZERO_TEST_FULL. Exit code 77: the data set is not here."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
RANKS = 4
STAGES = (2, 3)
EPOCHS = 2
# Equal is what computes exp and log with the C library. These have their own; their losses may differ by the bound, relative, of the same
# step, their accuracies by the bound in percent, and their hashes are not compared.
OWN_EXP = ("go",)
LOSS_BOUND = 1e-5
ACCURACY_BOUND = 0.1
LONGEST_RUN_S = 1200


class Run:
    """What a trainer wrote."""

    def __init__(self, command, stage):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "losses"
            call = [*shlex.split(command), "--ranks", str(RANKS), "--stage", str(stage), "--epochs", str(EPOCHS), "--losses", str(path)]
            if not os.environ.get("ZERO_TEST_FULL"):
                call += ["--limit", "3000"]
            done = subprocess.run(call, stdout=subprocess.PIPE, timeout=LONGEST_RUN_S, check=True, encoding="utf-8")
            self.losses = [float(line) for line in path.read_text().split()]
        self.result = done.stdout.splitlines()[-1]
        self.accuracy = float(re.fullmatch(r"accuracy=(\d+\.\d\d) hash=[0-9a-f]{16}", self.result).group(1))

    def agrees(self, reference, exactly):
        if exactly:
            return self.losses == reference.losses and self.result == reference.result
        # Not the other way round: a loss that is not a number is near nothing.
        near = all(abs(mine - its) <= LOSS_BOUND * abs(its) for mine, its in zip(self.losses, reference.losses))
        return near and len(self.losses) == len(reference.losses) and abs(self.accuracy - reference.accuracy) <= ACCURACY_BOUND


def main(arguments):
    commands = dict(argument.partition("=")[::2] for argument in arguments)
    if len(commands) < 2 or not all(commands.values()):
        raise SystemExit(__doc__)
    if not DATA.is_dir():
        print(f"the data set is not in {DATA} (Debian: dataset-fashion-mnist)")
        return 77
    wrong = 0
    print(f"{'trainer':8} {'stage':>5} {'steps':>6} {'equal':>6} {'last loss':>10} {'largest difference':>19}  result")
    for stage in STAGES:
        reference = None
        for name, command in commands.items():
            run = Run(command, stage)
            reference = reference or run
            worst = max(abs(mine - its) / abs(its) for mine, its in zip(run.losses, reference.losses))
            equal = sum(mine == its for mine, its in zip(run.losses, reference.losses))
            wrong += not run.agrees(reference, name not in OWN_EXP)
            print(f"{name:8} {stage:5} {len(run.losses):6} {equal:6} {run.losses[-1]:10.6f} {worst:19.1e}  {run.result}", flush=True)
    print(f"{wrong} of {len(STAGES) * len(commands)} runs differ; {', '.join(OWN_EXP)} may, by {LOSS_BOUND:g} of a loss")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
