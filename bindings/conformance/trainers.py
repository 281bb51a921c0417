#!/usr/bin/env python3
"""Trains the Fashion-MNIST classifier in several languages from the same first values on the same batches, and compares the losses of all
steps, the accuracy and the hash of all parameters with those of the first program.
usage: trainers.py NAME=COMMAND NAME=COMMAND...      COMMAND is split as a shell would
Two epochs of 3,000 images, or of all with the variable ZERO_TEST_FULL. Ranks are those that a trainer starts itself, then those of a
launcher, under which --ranks is an error. Exit code 77: the data set is not here."""

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
LAUNCHED_RANKS = 2
LAUNCHED_STAGE = 3
EPOCHS = 2
# Equal is what computes exp and log with the C library. These have their own; their losses may differ by the bound, relative, of the same
# step, their accuracies by the bound in percent, and their hashes are not compared.
OWN_EXP = ("go",)
LOSS_BOUND = 1e-5
ACCURACY_BOUND = 0.1
LONGEST_RUN_S = 1200


class Run:
    """What a trainer wrote."""

    def __init__(self, command, stage, launched=False):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "losses"
            call = [*shlex.split(command), "--stage", str(stage), "--epochs", str(EPOCHS), "--losses", str(path)]
            if not os.environ.get("ZERO_TEST_FULL"):
                call += ["--limit", "3000"]
            worlds = [as_launched(rank) for rank in range(LAUNCHED_RANKS)] if launched else [{}]
            if not launched:
                call += ["--ranks", str(RANKS)]
            running = [subprocess.Popen(call, stdout=subprocess.PIPE, encoding="utf-8", env={**os.environ, **world}) for world in worlds]
            printed = [process.communicate(timeout=LONGEST_RUN_S)[0] for process in running]
            if any(process.returncode for process in running) or any(printed[1:]):
                raise SystemExit(f"{command}: exit codes {[process.returncode for process in running]}, ranks printed {printed}")
            self.losses = [float(line) for line in path.read_text().split()]
        self.result = printed[0].splitlines()[-1]
        self.accuracy = float(re.fullmatch(r"accuracy=(\d+\.\d\d) hash=[0-9a-f]{16}", self.result).group(1))

    def agrees(self, reference, exactly):
        if exactly:
            return self.losses == reference.losses and self.result == reference.result
        # Not the other way round: a loss that is not a number is near nothing.
        near = all(abs(mine - its) <= LOSS_BOUND * abs(its) for mine, its in zip(self.losses, reference.losses))
        return near and len(self.losses) == len(reference.losses) and abs(self.accuracy - reference.accuracy) <= ACCURACY_BOUND


def as_launched(rank):
    """The variables of a rank of torchrun's, on one host."""
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(LAUNCHED_RANKS), "LOCAL_WORLD_SIZE": str(LAUNCHED_RANKS),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": f"trainers.{os.getpid()}"}


# Options, variables, and the text with which a trainer must refuse them.
REFUSALS = (
    (["--ranks", "4"], as_launched(0), f"WORLD_SIZE is {LAUNCHED_RANKS}"),
    (["--data", "/no/such/folder"], {}, "dataset-fashion-mnist"),
)


def refuses(name, command, options, variables, text):
    done = subprocess.run([*shlex.split(command), *options], capture_output=True, timeout=LONGEST_RUN_S, encoding="utf-8",
                          env={**os.environ, **variables})
    refused = done.returncode != 0 and text in done.stderr
    told = "refused" if refused else f"not refused with {text!r}: {done.stdout}{done.stderr}"
    print(f"{name:8} {' '.join(options)}: {told}", flush=True)
    return refused


def main(arguments):
    commands = dict(argument.partition("=")[::2] for argument in arguments)
    if len(commands) < 2 or not all(commands.values()):
        raise SystemExit(__doc__)
    if not DATA.is_dir():
        print(f"the data set is not in {DATA} (Debian: dataset-fashion-mnist)")
        return 77
    wrong = 0
    print(f"{'trainer':8} {'stage':>5} {'steps':>6} {'equal':>6} {'last loss':>10} {'largest difference':>19}  result")
    for stage, launched in [*((stage, False) for stage in STAGES), (LAUNCHED_STAGE, True)]:
        reference = None
        for name, command in commands.items():
            run = Run(command, stage, launched)
            reference = reference or run
            worst = max(abs(mine - its) / abs(its) for mine, its in zip(run.losses, reference.losses))
            equal = sum(mine == its for mine, its in zip(run.losses, reference.losses))
            wrong += not run.agrees(reference, name not in OWN_EXP)
            print(f"{name:8} {stage:5} {len(run.losses):6} {equal:6} {run.losses[-1]:10.6f} {worst:19.1e}  {run.result}", flush=True)
    print(f"{wrong} of {(len(STAGES) + 1) * len(commands)} runs differ; {', '.join(OWN_EXP)} may, by {LOSS_BOUND:g} of a loss")
    wrong += [refuses(name, command, *refusal) for name, command in commands.items() for refusal in REFUSALS].count(False)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
