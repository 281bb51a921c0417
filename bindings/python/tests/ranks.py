"""Ranks as threads of the test program."""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor

from libzero import Group

_numbers = itertools.count()


def group_name():
    """A name that no other group has."""
    return f"python.test.{os.getpid()}.{next(_numbers)}"


def run(size, body):
    """What body(group) returns on each rank of a new group. The exception of the first rank that has one is raised."""
    name = group_name()

    def rank_main(rank):
        with Group.local(name, rank, size) as group:
            return body(group)

    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(rank_main, range(size)))


def alone():
    """A world of one."""
    return Group.local(None, 0, 1)
