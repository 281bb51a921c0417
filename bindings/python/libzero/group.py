"""Process groups: ranks that call the same collectives in the same order."""

from __future__ import annotations

import numpy as np

from . import elements
from .config import Config
from .generated import MPI_WORLD, Operation, Reduce, TrafficStats
from .handle import Owner, native_of
from .library import text, zero
from .names import number
from .structure import prepared


class Group(Owner):
    """One rank's place in a group. Made by local(), env(), mpi() or split().

    Collectives wait for the other ranks without the interpreter lock, so ranks can be threads. Arrays are used where they lie; an `out`
    that is left out is made. A `with` block that ends with an exception aborts the group: the other ranks get ZERO_E_ABORTED with its text
    instead of waiting for this one, or ZERO_E_PEER_LEFT in an optimizer that was closed first.
    """

    @classmethod
    def local(cls, name: str | None, rank: int, size: int, config: Config | None = None) -> Group:
        """Ranks of this host, threads and processes, that meet by name; the name may be None when size is 1."""
        return cls(zero.zero_group_create_local(name, rank, size, native_of(config)))

    @classmethod
    def nccl(cls, id: str, rank: int, size: int, config: Config) -> Group:
        """Ranks of any hosts, each with a CUDA device (Key.DEVICE), that meet by an id of unique_id(), carried to all of them.

        Arrays lie on the host: what is more than 4 KiB passes through the device.
        """
        return cls(zero.zero_group_create_nccl(id, rank, size, native_of(config)))

    @staticmethod
    def unique_id(config: Config | None = None) -> str:
        """An id for nccl(). This process listens from now on, and is where rank 0 must be made."""
        return text(zero.zero_group_unique_id, native_of(config))

    @classmethod
    def env(cls, config: Config | None = None) -> Group:
        """The ranks that a launcher started (mpirun, srun, torchrun); a world of one without a launcher."""
        return cls(zero.zero_group_create_env(native_of(config)))

    @staticmethod
    def launcher() -> str:
        """The variable in which a launcher says how many ranks it started, for example OMPI_COMM_WORLD_SIZE; empty without a launcher."""
        return text(zero.zero_group_launcher)

    @classmethod
    def mpi(cls, comm: int = MPI_WORLD, config: Config | None = None) -> Group:
        """The ranks of an MPI communicator, given as its Fortran handle (mpi4py: comm.py2f())."""
        return cls(zero.zero_group_create_mpi(comm, native_of(config)))

    def __exit__(self, kind, error, traceback):
        try:
            if error is not None and not self.closed:
                reason = f"{kind.__name__}: {error}".replace("\0", " ")
                self.abort(reason.encode("utf-8", "replace").decode())
        finally:
            self.close()

    def _described(self) -> str:
        return f"rank {self.rank} of {self.size}"

    @property
    def rank(self) -> int:
        return zero.zero_group_rank(self.native)

    @property
    def size(self) -> int:
        return zero.zero_group_size(self.native)

    @property
    def local_rank(self) -> int:
        return zero.zero_group_local_rank(self.native)

    @property
    def local_size(self) -> int:
        return zero.zero_group_local_size(self.native)

    @property
    def host_count(self) -> int:
        return zero.zero_group_host_count(self.native)

    def share(self, count: int, rank: int) -> tuple[int, int]:
        """Offset and count of what a rank owns of `count` elements."""
        offset, share = zero.zero_group_share(self.native, count, rank)
        return offset, share

    def split(self, color: int, key: int = 0) -> Group | None:
        """The group of the ranks with this color, in the order of key; None for a negative color."""
        native = zero.zero_group_split(self.native, color, key)
        return Group(native) if native else None

    def status(self) -> None:
        """Raises the error that poisoned the group, if one did."""
        zero.zero_group_status(self.native)

    def abort(self, reason: str | None = None) -> None:
        """Poisons the group on every rank; calls that wait in it fail at once. Any thread may call it."""
        zero.zero_group_abort(self.native, reason)

    def set_deadline(self, deadline_ms: int) -> None:
        """How long later calls of this rank wait for the others."""
        zero.zero_group_set_deadline(self.native, deadline_ms)

    @property
    def quiet(self) -> bool:
        """Whether memory that was given to calls is the caller's again after a failure: without Key.NCCL always; with it not while NCCL, in
        this process, may still read or write memory of a call that failed. Such memory must then not be freed or used."""
        return bool(zero.zero_group_quiet(self.native))

    def all_reduce(self, send, out=None, op: Reduce | int | str = Reduce.SUM) -> np.ndarray:
        """op over ranks of `send`; `out` may be `send`."""
        send = elements.array(send)
        out = np.empty(send.shape, send.dtype) if out is None else _like(send, out)
        zero.zero_group_all_reduce(self.native, send, out, elements.array_dtype(send.dtype), number(Reduce, op))
        return out

    def reduce_scatter(self, send, out=None, op: Reduce | int | str = Reduce.SUM) -> np.ndarray:
        """This rank's share of op over ranks of `send`."""
        send = elements.array(send)
        out = np.empty(self.share(send.size, self.rank)[1], send.dtype) if out is None else _like(send, out)
        zero.zero_group_reduce_scatter(self.native, send, out, elements.array_dtype(send.dtype), number(Reduce, op))
        return out

    def all_gather(self, send, out) -> np.ndarray:
        """The ranks' shares one after another; `send` is this rank's share of `out`."""
        send = elements.array(send)
        out = _like(send, out)
        zero.zero_group_all_gather(self.native, send, out, elements.array_dtype(send.dtype))
        return out

    def broadcast(self, data, root: int = 0) -> np.ndarray:
        """`data` of root goes to `data` of every rank."""
        data = elements.array(data)
        zero.zero_group_broadcast(self.native, data, elements.array_dtype(data.dtype), root)
        return data

    def reduce(self, send, root: int = 0, op: Reduce | int | str = Reduce.SUM, out=None) -> np.ndarray | None:
        """op over ranks of `send`, on root; None elsewhere."""
        send = elements.array(send)
        if self.rank == root:
            out = np.empty(send.shape, send.dtype) if out is None else _like(send, out)
        zero.zero_group_reduce(self.native, send, out, elements.array_dtype(send.dtype), number(Reduce, op), root)
        return out

    def gather(self, send, total: int, root: int = 0, out=None) -> np.ndarray | None:
        """On root the ranks' shares of `total` elements one after another; None elsewhere."""
        send = elements.array(send)
        if self.rank == root:
            out = np.empty(total, send.dtype) if out is None else _like(send, out)
        zero.zero_group_gather(self.native, send, out, total, elements.array_dtype(send.dtype), root)
        return out

    def scatter(self, send, out, total: int, root: int = 0) -> np.ndarray:
        """This rank's share of the `total` elements that root gives; elsewhere `send` is None."""
        out = elements.array(out)
        send = None if send is None else _like(out, send)
        zero.zero_group_scatter(self.native, send, out, total, elements.array_dtype(out.dtype), root)
        return out

    def all_to_all(self, send, out=None) -> np.ndarray:
        """Block r of the result is this rank's block of rank r's `send`."""
        send = elements.array(send)
        out = np.empty(send.shape, send.dtype) if out is None else _like(send, out)
        zero.zero_group_all_to_all(self.native, send, out, elements.array_dtype(send.dtype))
        return out

    def send(self, data, peer: int) -> None:
        """Gives `data` to the recv of another rank. Two ranks that exchange send and receive in a thread each."""
        data = elements.array(data)
        zero.zero_group_send(self.native, data, elements.array_dtype(data.dtype), peer)

    def recv(self, out, peer: int) -> np.ndarray:
        """Fills `out` with what another rank sends."""
        out = elements.array(out)
        zero.zero_group_recv(self.native, out, elements.array_dtype(out.dtype), peer)
        return out

    def barrier(self) -> None:
        """Returns when every rank has called it."""
        zero.zero_group_barrier(self.native)

    def balance(self, seconds: float, items: int, total: int, unit: int = 1) -> int:
        """This rank's share of `total` items for the next step, by the speeds of all ranks: a multiple of `unit`.

        `seconds` is what this rank's newest `items` took, without waits for other ranks; 0 where nothing was measured.
        """
        return zero.zero_group_balance(self.native, seconds, items, total, unit)

    def traffic(self, operation: Operation | int | str) -> TrafficStats:
        """What this rank moved in one kind of collective."""
        stats = prepared(TrafficStats, zero.zero_traffic_stats_init)
        zero.zero_stats_group_traffic(self.native, number(Operation, operation), stats)
        return stats

    def describe(self) -> str:
        """Transport, ranks, memory and deadline as a text."""
        return text(zero.zero_describe_group, self.native)


def _like(array: np.ndarray, other) -> np.ndarray:
    """The array at the other end of the same collective."""
    return elements.typed(other, elements.array_dtype(array.dtype), "the other array of the call")
