"""Parameter servers: some ranks hold and update parameters, the others push and pull them."""

from __future__ import annotations

import operator

import numpy as np

from . import elements
from .buffer import Shard
from .config import Config
from .generated import Dtype, ServerResult
from .group import Group
from .handle import Owner, native_of
from .lent import lent_array
from .library import zero
from .structure import prepared


class Server(Owner):
    """One rank's part in parameter servers of `count` float32. zero/server.h tells the rules.

    seal() is a collective. shard(), replay(), record() and run() are calls of servers, the first Key.SERVER_RANKS ranks of the group;
    push(), pull() and leave() are calls of workers, all other ranks.
    """

    def __init__(self, group: Group, count: int, config: Config | None = None):
        super().__init__(zero.zero_server_create(group.native, native_of(config), count))
        self.count = operator.index(count)

    def _described(self) -> str:
        return f"{self.count} parameters"

    def seal(self) -> None:
        """Compares what all ranks made, and connects servers and workers."""
        zero.zero_server_seal(self.native)

    def shard(self) -> Shard:
        """The parameters that this server holds, for reading and writing where they lie. Not to be used during run()."""
        address, offset, count = zero.zero_server_shard(self.native)
        return Shard(offset, lent_array(self._handle, address, (count,), np.dtype(np.float32), writable=True))

    def replay(self, record: np.ndarray) -> None:
        """Gives a server the order that it keeps to in run(): what record() returned on it."""
        zero.zero_server_replay(self.native, np.ascontiguousarray(record, np.uint16))

    def record(self) -> np.ndarray:
        """The order that a server recorded in run(): for each push the worker's number, for each pull 32768 more."""
        record = np.empty(zero.zero_server_record(self.native, None), np.uint16)
        zero.zero_server_record(self.native, record)
        return record

    def run(self) -> ServerResult:
        """Serves the workers until all have left or were lost."""
        result = prepared(ServerResult, zero.zero_server_result_init)
        zero.zero_server_run(self.native, result)
        return result

    def push(self, data) -> None:
        """Sends a gradient, or parameters, to the servers. Waits within the bound of staleness."""
        zero.zero_server_push(self.native, elements.typed(data, Dtype.F32, "the servers"))

    def pull(self, out=None) -> np.ndarray:
        """Fills `out`, or a new array, with the parameters. Waits as push()."""
        out = np.empty(self.count, np.float32) if out is None else elements.typed(out, Dtype.F32, "the servers")
        zero.zero_server_pull(self.native, out)
        return out

    def leave(self) -> None:
        """Tells the servers that this worker makes no more calls."""
        zero.zero_server_leave(self.native)
