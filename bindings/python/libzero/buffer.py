"""Sharded buffers: flat arrays whose shards lie with the ranks of a group."""

from __future__ import annotations

import contextlib
import operator
from typing import NamedTuple

import numpy as np

from . import elements
from .config import Config
from .generated import Dtype, Memory, MemoryStats, Reduce
from .group import Group
from .handle import Owner, native_of
from .lent import lent_array
from .library import zero
from .names import number
from .structure import prepared


class Shard(NamedTuple):
    """What this rank holds of a buffer."""

    offset: int
    data: np.ndarray


class Buffer(Owner):
    """`count` elements over the ranks of a group, zero at first.

    All calls but shard(), whole_release(), memory() and close() are collectives.
    """

    def __init__(self, group: Group, count: int, dtype=Dtype.F32, config: Config | None = None):
        number = elements.dtype_of(dtype)
        super().__init__(zero.zero_buffer_create(group.native, native_of(config), number, count))
        self.count = operator.index(count)
        self.dtype = Dtype(number)
        self._kind = elements.numpy_dtype(number)

    def _described(self) -> str:
        return f"{self.count} elements of {self.dtype.name.lower()}"

    def shard(self) -> Shard:
        """This rank's shard, for reading and writing where it lies."""
        address, offset, count = zero.zero_buffer_shard(self.native)
        return Shard(offset, lent_array(self._handle, address, (count,), self._kind, writable=True))

    def whole_acquire(self) -> np.ndarray:
        """Gathers all elements. Valid until whole_release(); read-only, because nothing written there would be kept."""
        address = zero.zero_buffer_whole_acquire(self.native)
        return lent_array(self._handle, address, (self.count,), self._kind, writable=False)

    def whole_release(self) -> None:
        """Gives what whole_acquire() gathered back; its array must not be used any more."""
        zero.zero_buffer_whole_release(self.native)

    @contextlib.contextmanager
    def whole(self):
        """All elements during a `with` block."""
        data = self.whole_acquire()
        try:
            yield data
        finally:
            self.whole_release()

    def reduce_scatter(self, data, op: Reduce | int | str = Reduce.SUM) -> None:
        """Shards = op over ranks of `data`, which has as many elements as the buffer."""
        zero.zero_buffer_reduce_scatter(self.native, self._typed(data), number(Reduce, op))

    def read(self, offset: int = 0, out=None) -> np.ndarray | None:
        """Fills `out` with the elements from `offset` on, whoever holds them. A rank that wants none gives None."""
        out = self._typed(out)
        zero.zero_buffer_read(self.native, offset, out)
        return out

    def write(self, offset: int = 0, data=None) -> None:
        """Writes `data` from `offset` on, whoever holds the elements. A rank that has none gives None."""
        zero.zero_buffer_write(self.native, offset, self._typed(data))

    def memory(self, category: Memory | int | str = Memory.TOTAL) -> MemoryStats:
        """Bytes on this rank."""
        stats = prepared(MemoryStats, zero.zero_memory_stats_init)
        zero.zero_stats_buffer_memory(self.native, number(Memory, category), stats)
        return stats

    def _typed(self, data) -> np.ndarray | None:
        return None if data is None else elements.typed(data, self.dtype, "the buffer")
