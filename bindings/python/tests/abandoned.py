"""Ranks of a program that a launcher started, of which rank 0 ends by an exception that nobody catches, while the group is held by a
variable of the module or of a function, and not by a `with` block."""

import sys

import numpy as np
from libzero import Group


def run(group):
    ranks = np.array([group.rank], np.int64)
    group.all_reduce(ranks)
    if group.rank == 0:
        raise RuntimeError("rank 0 gives up")
    group.all_reduce(ranks)


def main():
    group = Group.env()
    run(group)


if sys.argv[1] == "function":
    main()
else:
    world = Group.env()
    run(world)
