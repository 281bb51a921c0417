"""One rank of a program that a launcher started: sums ranks over the world and over one half of it, in two kinds of groups."""

import sys

import numpy as np
from libzero import Config, Group, Optimizer, Source


def train(group):
    with Config(algorithm="sgd", lr=1, stage=3) as config, Optimizer(group, config) as optimizer:
        w = optimizer.add_param("w", (5,))
        optimizer.seal()
        optimizer.begin(Source.LOCAL)
        optimizer.grad_ready(w, np.full(5, group.rank, np.float32))
        optimizer.step()
        with optimizer.param(w) as data:
            return float(data[4])


def main():
    with Group.env() as group, Group.mpi() as world, group.split(group.rank % 2) as half:
        ranks = np.array([group.rank, 1], np.int64)
        sums = [part.all_reduce(ranks).tolist() for part in (group, world, half)]
        # One write for the whole line: those of other ranks do not come between.
        sys.stdout.write(f"{group.rank} of {world.size}: {sums} {train(group)}\n")


main()
