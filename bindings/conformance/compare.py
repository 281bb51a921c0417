#!/usr/bin/env python3
"""Compares what the conformance programs of several languages print: the first is the reference.
usage: compare.py NAME=COMMAND NAME=COMMAND...      COMMAND is split as a shell would"""

import os
import shlex
import subprocess
import sys

LONGEST_RUN_S = 300
# As torchrun starts the one rank of a world.
LAUNCHER = {"RANK": "0", "WORLD_SIZE": "1"}
# Lines of tables, which have a row together: the word before the first blank of their names.
TABLES = ("constant", "field")


class BadProgram(Exception):
    """A program that cannot be compared."""


def run(name, command):
    """What a program prints, by scenario, in its order."""
    try:
        done = subprocess.run(shlex.split(command), stdout=subprocess.PIPE, timeout=LONGEST_RUN_S, encoding="utf-8",
                              env={**os.environ, **LAUNCHER})
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired) as error:
        raise BadProgram(f"{name}: {error}") from error
    if done.returncode != 0:
        raise BadProgram(f"{name}: ended with {done.returncode}")
    return parse(name, done.stdout)


def parse(name, output):
    lines = {}
    for line in output.splitlines():
        scenario, colon, text = line.partition(": ")
        if not colon:
            raise BadProgram(f"{name}: a line without a text: {line}")
        if scenario in lines:
            raise BadProgram(f"{name}: {scenario} is printed twice")
        lines[scenario] = text
    if not lines:
        raise BadProgram(f"{name}: printed nothing")
    return lines


def differences(reference, other):
    """What is to be said of each scenario that is not the same in both."""
    found = {}
    for scenario in [*reference, *(extra for extra in other if extra not in reference)]:
        if scenario not in other:
            found[scenario] = ["missing"]
        elif scenario not in reference:
            found[scenario] = [f"extra: {other[scenario]}"]
        elif other[scenario] != reference[scenario]:
            found[scenario] = [f"expected: {reference[scenario]}", f"printed:  {other[scenario]}"]
    if not found and list(reference) != list(other):
        moved = next(mine for mine, theirs in zip(other, reference) if mine != theirs)
        found[moved] = ["stands in another place than in the reference"]
    return found


def rows(scenarios):
    """Scenarios by row of the table: one each, and one for each table of constants and layout."""
    grouped = {}
    for scenario in scenarios:
        word = scenario.partition(" ")[0]
        grouped.setdefault(f"{word} *" if word in TABLES else scenario, []).append(scenario)
    return grouped


def print_table(printed, found):
    everything = dict.fromkeys(scenario for lines in printed.values() for scenario in lines)
    widths = {name: max(len(name), len("different")) for name in printed}
    print(f"{'scenario':24} {'lines':>5}  " + "  ".join(f"{name:{widths[name]}}" for name in printed))
    for row, scenarios in rows(everything).items():
        words = ("different" if any(s in found[name] for s in scenarios) else "equal" for name in printed)
        cells = "  ".join(f"{word:{widths[name]}}" for name, word in zip(printed, words))
        print(f"{row:24} {len(scenarios):5}  {cells}".rstrip())


def print_differences(found):
    for name, scenarios in found.items():
        for scenario, texts in scenarios.items():
            print(f"\n{name}: {scenario}")
            for text in texts:
                print(f"  {text}")


def print_numbers(reference, printed, found):
    tables = sum(scenario.partition(" ")[0] in TABLES for scenario in printed[reference])
    scenarios = len(printed[reference]) - tables
    wrong = sum(map(len, found.values()))
    print(f"\n{scenarios} scenarios and {tables} constants and fields, {len(printed)} programs: {wrong} differences from {reference}")


def main(arguments):
    commands = dict(argument.partition("=")[::2] for argument in arguments)
    if len(commands) < 2 or len(commands) != len(arguments) or not all(commands.values()):
        raise SystemExit(__doc__)
    try:
        printed = {name: run(name, command) for name, command in commands.items()}
    except BadProgram as error:
        raise SystemExit(f"compare.py: {error}") from error
    reference = next(iter(printed))
    found = {name: differences(printed[reference], lines) for name, lines in printed.items()}
    print_table(printed, found)
    print_differences(found)
    print_numbers(reference, printed, found)
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
