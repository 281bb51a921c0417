#!/usr/bin/env python3
"""Trains the Fashion-MNIST classifier in several languages from the same first values on the same batches, and compares the losses of all
steps with those of the first program. usage: trainers.py NAME=COMMAND NAME=COMMAND...      COMMAND is split as a shell would
An epoch of 6,000 images, or of all with the variable ZERO_TEST_FULL. Exit code 77: the data set is not here."""

import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
RANKS = 4
STAGES = (2, 3)
# Relative, of the same step. Equal bits are expected where a language's exp and log agree with C's.
BOUND = 1e-5
LONGEST_RUN_S = 1200


def losses(command, stage, folder):
    path = pathlib.Path(folder) / "losses"
    options = ["--ranks", str(RANKS), "--stage", str(stage), "--epochs", "1", "--losses", str(path)]
    if not os.environ.get("ZERO_TEST_FULL"):
        options += ["--limit", "6000"]
    done = subprocess.run(shlex.split(command) + options, stdout=subprocess.PIPE, timeout=LONGEST_RUN_S, check=True, encoding="utf-8")
    return [float(line) for line in path.read_text().split()], done.stdout.splitlines()[-1]


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
            with tempfile.TemporaryDirectory() as folder:
                found, result = losses(command, stage, folder)
            reference = reference or found
            worst = max(abs(mine - its) / abs(its) for mine, its in zip(found, reference))
            equal = sum(mine == its for mine, its in zip(found, reference))
            # Not the other way round: a loss that is not a number is near nothing.
            near = all(abs(mine - its) <= BOUND * abs(its) for mine, its in zip(found, reference))
            wrong += len(found) != len(reference) or not near
            print(f"{name:8} {stage:5} {len(found):6} {equal:6} {found[-1]:10.6f} {worst:19.1e}  {result}", flush=True)
    print(f"{wrong} of {len(STAGES) * len(commands)} runs differ by more than {BOUND:g}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
