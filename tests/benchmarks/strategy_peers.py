"""Steps of libzero's synchronisation strategies between two hosts, beside PyTorch's hooks and
torchft. Prints seconds of the slowest rank, and the bytes that a host sends, counted at its
interface. Gradients are synthetic and ready, so that a step is the exchange and AdamW.

usage: sh tests/group/netns_mpirun.sh PYTHON tests/benchmarks/strategy_peers.py
           --library PATH/libzero.so [--model gpt2|small] [--mbits 100 | --unlimited]
           [--rows NAMES] [--steps N] [--results FILE]
The hosts are network namespaces of two ranks each. A row prepares itself on the free cable, whose
rate is limited (tc, tbf) only while the row is measured. Rows of "small" (10.8M) take turns. Those
of "gpt2" (124M) follow one another, because their states do not fit into memory together. A row
whose step takes more than 40 s is measured three times.
--rows: names of rows, with semicolons; default: all. --unlimited: the cable stays free, so that the
table shows the time of all but the cable. --results FILE keeps what was measured, one line of JSON
per row: with "gpt2" a row that is in it is not repeated.
PYTHON needs packages for the rows of peers only: torch and numpy for DDP, torchft-nightly for
DiLoCo (python3 -m venv build/peers; build/peers/bin/pip install torch numpy torchft-nightly). A row
whose package is missing is named and left out.
"""
import argparse
import gc
import json
import math
import os
import pathlib
import statistics
import sys
import time

import gpt_shapes
from strategy_rows import HOOKS, INTERFACE, LINE, OURS, STEP, SYNC, TORCHFT, Cable, Ddp, Gradients, Ours, Torchft, World

PERIOD = 64
PEERS = [*HOOKS, TORCHFT]


def formula_nbytes(tensors, per_element):
    """Bytes that a host sends per step or synchronisation. Codes are of whole lines of 256 elements,
    and smaller tensors travel in full."""
    if per_element == 4:
        return 4 * sum(map(math.prod, tensors))
    whole = [math.ceil(math.prod(shape) / LINE) * LINE for shape in tensors if math.prod(shape) >= LINE]
    return int(per_element * sum(whole)) + 4 * sum(math.prod(shape) for shape in tensors if math.prod(shape) < LINE)


class Bench:
    """Opens rows and measures them, each step after all ranks have met."""

    def __init__(self, given, world):
        self.given, self.world = given, world
        self.blocks = gpt_shapes.gpt2_blocks() if given.model == "gpt2" else gpt_shapes.small_blocks()
        self.tensors = gpt_shapes.flatten(self.blocks)
        self.elements = sum(map(math.prod, self.tensors))
        self.cable = Cable(world, 0 if given.unlimited else given.mbits)
        self.grads = None

    def open(self, name):
        """A row, or None when its package is not here."""
        try:
            if name in HOOKS:
                return Ddp(self.world, self.blocks, HOOKS[name])
            if name == TORCHFT:
                return Torchft(self.world, self.tensors)
        except ImportError as missing:
            self.world.say(f"{name}: left out: {missing}")
            return None
        self.grads = self.grads or Gradients(self.elements, self.world.rank)
        return Ours(self.world, self.tensors, OURS[name][0], self.grads)

    def measure(self, work):
        self.world.barrier()
        before = self.cable.sent_nbytes()
        self.world.barrier()  # none sends before all have looked
        begin = time.perf_counter()
        work()
        seconds = time.perf_counter() - begin
        self.world.barrier()
        sent = self.cable.sent_nbytes() - before
        return self.world.most(seconds), self.world.most(sent)

    def run(self, names, keep):
        """Measures the rows in turns, and hands each row's samples to keep(name, samples)."""
        rows = {name: row for name in names if (row := self.open(name))}
        samples = {name: {what: [] for what in row.works} for name, row in rows.items()}
        steps = self.given.steps
        self.cable.limit()
        for turn in range(steps):
            for name, row in rows.items():
                if turn >= 3 and self.is_slow(samples[name]):
                    continue
                for what, work in row.works.items():
                    samples[name][what].append(self.measure(work))
        self.cable.free()
        for name, row in rows.items():
            row.release()
            keep(name, samples[name])
        rows.clear()
        gc.collect()  # models of PyTorch are in cycles of references

    @staticmethod
    def is_slow(samples):
        """Rows whose step takes more than 40 s are measured three times."""
        return any(taken and taken[0][0] > 40 for taken in samples.values())


class Results:
    """Samples by model, rate and row: those of a file first."""

    def __init__(self, given, world):
        self.world, self.path = world, given.results
        self.key = f"{given.model} {'unlimited' if given.unlimited else given.mbits}"
        lines = self.path.read_text().splitlines() if self.path and self.path.exists() else []
        self.rows = {entry["row"]: entry["samples"] for entry in map(json.loads, lines) if entry["key"] == self.key}

    def keep(self, name, samples):
        self.rows[name] = samples
        if self.path and self.world.rank == 0:
            with self.path.open("a") as file:
                file.write(json.dumps({"key": self.key, "row": name, "samples": samples}) + "\n")


def medians(samples):
    return statistics.median(seconds for seconds, _ in samples), statistics.median(sent for _, sent in samples)


def per_step(works):
    """Seconds and bytes of a step; of local steps with 1/64 of a synchronisation."""
    if STEP not in works:
        return None
    seconds, sent = medians(works[STEP])
    if SYNC in works:
        of_sync = medians(works[SYNC])
        seconds, sent = seconds + of_sync[0] / PERIOD, sent + of_sync[1] / PERIOD
    return seconds, sent


def print_samples(bench, rows):
    mbits = bench.given.mbits
    cable = "a free cable" if bench.given.unlimited else f"a cable of {mbits} Mbit/s"
    print(f"\n{bench.given.model}: {len(bench.tensors)} tensors, {bench.elements} elements, 2 hosts x 2 ranks, {cable}")
    print("| row | | bytes sent per host | formula | ratio | s, median (min to max) | bytes / rate, s | time over it |")
    print("|---" * 8 + "|")
    for name, works in rows.items():
        for what, samples in works.items():
            seconds, sent = medians(samples)
            exchanges = name in OURS and (SYNC not in works or what == SYNC)
            formula = formula_nbytes(bench.tensors, OURS[name][1]) if exchanges else 0
            ideal = 8e-6 * sent / mbits
            times = [sample[0] for sample in samples]
            beside = f"{formula:,} | {sent / formula:.3f}" if formula else " | "
            limited = sent > 1e5 and not bench.given.unlimited  # fewer bytes are no exchange, but the ranks that meet
            over = f"{ideal:.3f} | {seconds / ideal:.2f}" if limited else " | "
            print(f"| {name} | {what} | {sent:,.0f} | {beside} | {seconds:.3f} ({min(times):.3f} to {max(times):.3f}) | {over} |")


def print_ratios(rows):
    """Times and bytes of peers over those of each row."""
    steps = {name: pair for name, works in rows.items() if (pair := per_step(works))}
    peers = [name for name in steps if name in HOOKS]
    if peers:
        columns = " | ".join(f"{name}: time and bytes over it" for name in peers)
        print(f"\n| a step; of local steps with 1/{PERIOD} of a synchronisation | s | bytes | {columns} |")
        print("|---" * (3 + len(peers)) + "|")
        for name, (seconds, sent) in steps.items():
            beside = " | ".join(f"{steps[peer][0] / seconds:.2f}, {steps[peer][1] / sent:.2f}" for peer in peers)
            print(f"| {name} | {seconds:.3f} | {sent:,.0f} | {beside} |")
    syncs = {name: medians(works[SYNC])[0] for name, works in rows.items() if SYNC in works}
    if TORCHFT in syncs:
        print("\nsynchronisation, torchft's time over it: " + ", ".join(f"{name}: {syncs[TORCHFT] / s:.2f}" for name, s in syncs.items()))


def parse():
    parser = argparse.ArgumentParser(description="libzero's strategies between two hosts, beside peers", allow_abbrev=False)
    parser.add_argument("--library", required=True, type=pathlib.Path, help="libzero.so")
    parser.add_argument("--model", choices=["gpt2", "small"], default="gpt2")
    cable = parser.add_mutually_exclusive_group()
    cable.add_argument("--mbits", type=int, default=100, help="rate of the cable")
    cable.add_argument("--unlimited", action="store_true", help="the cable stays free")
    parser.add_argument("--rows", help="names, with semicolons")
    parser.add_argument("--steps", type=int, help="default: 5 of gpt2, 20 of small")
    parser.add_argument("--results", type=pathlib.Path)
    given = parser.parse_args()
    if given.mbits < 1 or (given.steps is not None and given.steps < 1):
        parser.error("--mbits and --steps are at least 1")
    if not given.library.is_file():
        parser.error(f"--library {given.library}: no such file")
    given.steps = given.steps or (5 if given.model == "gpt2" else 20)
    given.rows = given.rows.split(";") if given.rows else [*OURS, *PEERS]
    for name in given.rows:
        if name not in OURS and name not in PEERS:
            parser.error(f"--rows: '{name}' is none of: {'; '.join([*OURS, *PEERS])}")
    has_cable = any(line.strip().startswith(INTERFACE + ":") for line in pathlib.Path("/proc/self/net/dev").read_text().splitlines())
    if os.environ.get("OMPI_COMM_WORLD_SIZE") != "4" or not has_cable:
        parser.error("start it with tests/group/netns_mpirun.sh: it needs 2 hosts of 2 ranks")
    return given


def main():
    given = parse()
    world = World(str(given.library))
    bench, results = Bench(given, world), Results(given, world)
    if given.model == "small":
        bench.run(given.rows, results.keep)
    else:
        for name in given.rows:
            if name not in results.rows:
                bench.run([name], results.keep)
    if world.rank == 0:
        ordered = {name: results.rows[name] for name in given.rows if name in results.rows}
        print_samples(bench, ordered)
        print_ratios(ordered)
    world.barrier()
    world.lib.zero_group_release(world.group)
    sys.stdout.flush()
    os._exit(0)  # torchft keeps threads that never end


if __name__ == "__main__":
    main()
