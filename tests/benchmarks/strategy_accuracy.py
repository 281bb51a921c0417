"""Losses and accuracies of the synchronisation strategies beside the synchronous run, as a table.
Four ranks are threads of one process.

usage: strategy_accuracy.py gpt --program build/release/examples/train_gpt [--seeds 1]
           [--tokens 300000] [--batch 4] [--context 64] [--lr 0.001]
       strategy_accuracy.py fashion --program build/release/examples/train_fashion [--seeds 1,2,3]
           [--batch 256] [--epochs 4]
"gpt" prints the validation loss of train_gpt's smallest model in nats per byte. Its bound is 0.05
above the synchronous run. "fashion" prints accuracies in percent. Their bound is 0.5 points below
the synchronous run, and 0.3 for codes of 8 bits, for differences and for flushes.
--results FILE keeps what was measured, one line of JSON per run. A run that is in the file is not
repeated, so that the script can be stopped and started again. Results depend on options and seed
alone, never on the speed of the machine.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

FLUSH = "--flush-every 100"
GPT_ROWS = [  # options beside the synchronous run's, and by how much the loss may be above it
    ("--replica-ranks 2 --grad-code i8", 0.05),
    (f"--replica-ranks 2 --grad-code i4 --gather-code i4 {FLUSH}", 0.05),
    ("--replica-ranks 2 --sync-every 64", 0.05),
    ("--replica-ranks 2 --sync-every 64 --sync-code i4", 0.05),
    ("--replica-ranks 2 --sync-every 64 --outer nesterov", 0.05),
    ("--replica-ranks 2 --sync-every 64 --sync-after 880", 0.05),
    ("--replica-ranks 2 --sync-every 64 --sync-after 880 --sync-code i4", 0.05),
    ("--replica-ranks 2 --sync-every 64 --sync-after 880 --outer nesterov", 0.05),
    ("--replica-ranks 2 --sync-every 16 --outer nesterov", 0.05),
    ("--replica-ranks 2 --sync-every 16", 0.05),
    ("--replica-ranks 2 --sync-every 4", 0.05),
    ("--replica-ranks 2 --strategy diloco", 0.05),
]
FASHION_ROWS = [
    ("--replica-ranks 2 --grad-code i8", 0.3),
    ("--replica-ranks 2 --strategy slow_link", 0.3),
    ("--replica-ranks 2 --strategy slow_link --stage 1 --gather-code i4", 0.3),
    ("--gather-code i8 --stage 1", 0.3),
    ("--gather-code i4 --stage 1", 0.3),
    ("--replica-ranks 2 --strategy hsdp", 0.5),
    ("--replica-ranks 2 --strategy zeropp --stage 3", 0.5),
    ("--replica-ranks 2 --strategy diloco", 0.5),
    ("--replica-ranks 2 --sync-every 32 --outer nesterov --sync-fragments 4", 0.5),
    ("--replica-ranks 2 --sync-every 32 --outer nesterov --sync-fragments 4 --sync-delay 4 --sync-mix 0.5", 0.5),
    ("--replica-ranks 1 --strategy slow_link", 0.3),
    ("--replica-ranks 1 --strategy zeropp --stage 3", 0.5),
    ("--replica-ranks 1 --strategy diloco", 0.5),
    ("--replica-ranks 1 --strategy diloco --sync-after 234", 0.5),
    ("--replica-ranks 1 --compress topk:8", 0.5),
    ("--replica-ranks 1 --compress topk:8 --code-after 234", 0.5),
    ("--replica-ranks 1 --compress topk:32", 0.5),
    ("--replica-ranks 1 --compress lowrank:4", 0.5),
    ("--replica-ranks 1 --compress sign", 0.5),
    ("--replica-ranks 1 --compress sign --code-after 234", 0.5),
    ("--replica-ranks 1 --compress 1bit-adam:94", 0.5),
    ("--replica-ranks 1 --compress 1bit-adam:234", 0.5),
    ("--stage 1 --delay 1", 0.5),
]


class Gpt:
    """train_gpt: the smaller the loss, the better."""

    rows = GPT_ROWS
    what = "validation loss"
    result = r"^loss=(\S+)"
    sign = 1

    def __init__(self, given):
        steps = given.tokens // (given.batch * given.context)
        self.options = (f"--model tiny --ranks 4 --stage 1 --batch {given.batch} --context {given.context} --steps {steps} "
                        f"--validation-batches {max(1, 65536 // (given.batch * given.context))} --lr {given.lr}")

    def show(self, value):
        return f"{value:.4f}"


class Fashion:
    """train_fashion: the larger the accuracy, the better."""

    rows = FASHION_ROWS
    what = "accuracy"
    result = r"^accuracy=([0-9.]+)"
    sign = -1

    def __init__(self, given):
        self.options = f"--ranks 4 --batch {given.batch} --epochs {given.epochs}"

    def show(self, value):
        return f"{value:.2f}"


class Results:
    """Values that were measured, by the options of their runs."""

    def __init__(self, path):
        self.path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.values = {entry["options"]: entry["value"] for entry in map(json.loads, lines)}

    def add(self, options, value):
        self.values[options] = value
        if not self.path:
            return
        with self.path.open("a") as file:
            file.write(json.dumps({"options": options, "value": value}) + "\n")


def measure(given, training, results, row, seed):
    """If an option is given twice, the last one counts, so a row may name a stage."""
    options = f"{training.options} {row} --seed {seed}".replace("  ", " ")
    if options in results.values:
        return results.values[options]
    begin = time.monotonic()
    run = subprocess.run([given.program, *options.split(), "--quiet"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{given.program} {options}: exit code {run.returncode}\n{run.stderr}")
    found = re.search(training.result, run.stdout, re.M)
    if found is None:
        sys.exit(f"{given.program} {options}: no result in:\n{run.stdout}")
    results.add(options, float(found.group(1)))
    print(f"{results.values[options]} {options} ({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)
    return results.values[options]


def print_table(training, seeds, table):
    print(f"{training.what} of `{training.options}`\n")
    print("| options | " + " | ".join(f"seed {seed}" for seed in seeds) + " | beside the first row | bound | |")
    print("|---" * (len(seeds) + 4) + "|")
    first = statistics.mean(table[0][2])
    for row, bound, values in table:
        apart = statistics.mean(values) - first
        verdict = "" if bound is None else "within" if training.sign * apart <= bound else "misses"
        name = f"`{row}`" if row else "none"
        allowed = "" if bound is None else f"{training.sign * bound:+g}"
        print(f"| {name} | " + " | ".join(map(training.show, values)) + f" | {apart:+.4f} | {allowed} | {verdict} |")


def parse():
    parser = argparse.ArgumentParser(description="losses and accuracies of the synchronisation strategies", allow_abbrev=False)
    parser.add_argument("what", choices=["gpt", "fashion"])
    parser.add_argument("--program", required=True, help="train_gpt or train_fashion")
    parser.add_argument("--results", type=pathlib.Path, help="keeps what was measured")
    parser.add_argument("--seeds", help="with commas; default: 1 of gpt, 1,2,3 of fashion")
    parser.add_argument("--tokens", type=int, default=300000)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--lr", default="0.001")
    parser.add_argument("--batch", type=int, help="default: 4 of gpt, 256 of fashion")
    parser.add_argument("--epochs", type=int, default=4)
    given = parser.parse_args()
    if not pathlib.Path(given.program).is_file():
        parser.error(f"--program {given.program}: no such file")
    if min(given.tokens, given.context, given.epochs, 1 if given.batch is None else given.batch) < 1:
        parser.error("numbers are at least 1")
    if not re.fullmatch(r"\d+(,\d+)*", given.seeds or "1"):
        parser.error(f"--seeds {given.seeds}: expected whole numbers with commas")
    if given.results and not given.results.parent.is_dir():
        parser.error(f"--results {given.results}: there is no such folder")
    is_gpt = given.what == "gpt"
    given.seeds = [int(seed) for seed in (given.seeds or ("1" if is_gpt else "1,2,3")).split(",")]
    given.batch = given.batch or (4 if is_gpt else 256)
    return given


def main():
    given = parse()
    training = Gpt(given) if given.what == "gpt" else Fashion(given)
    results = Results(given.results)
    rows = [("", None), *training.rows]
    print_table(training, given.seeds, [(row, bound, [measure(given, training, results, row, seed) for seed in given.seeds])
                                        for row, bound in rows])


if __name__ == "__main__":
    main()
