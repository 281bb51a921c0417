"""Ranks as threads of this program."""

import functools
import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import libzero

_numbers = itertools.count()


def run(size, body):
    """Runs body(group) on `size` ranks of a new group, which lives until all have ended; what they said, with a blank between them."""
    name = f"conformance.python.{os.getpid()}.{next(_numbers)}"

    def rank_main(rank):
        group = libzero.Group.local(name, rank, size)
        return group, body(group)

    with ThreadPoolExecutor(size) as threads:
        ended = list(threads.map(rank_main, range(size)))
    for group, _ in ended:
        group.close()
    return " ".join(said for _, said in ended if said is not None)


def on(size, body):
    """A scenario of `size` ranks."""
    return functools.partial(run, size, body)
