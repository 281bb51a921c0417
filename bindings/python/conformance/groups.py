"""Places, splits, collectives and messages."""

import functools

import numpy as np
from libzero import Group, Reduce

import ranks
from values import values
from words import error_of, hash_of, status_of

COUNT = 10
OPS = {"sum": Reduce.SUM, "avg": Reduce.AVG, "min": Reduce.MIN, "max": Reduce.MAX, "prod": Reduce.PROD}
KINDS = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8}
BALANCED = [(1, 192), (1.5, 240), (3, 208)]  # seconds and items, by rank


def _own_share(group):
    return values(group.share(COUNT, group.rank)[1], group.rank)


def _places(group):
    return f"{group.rank}/{group.size}/{group.local_rank}/{group.local_size}/{group.host_count}"


def _shares(group):
    if group.rank == 0:
        return " ".join("{}:{}".format(*group.share(COUNT, rank)) for rank in range(3))


def _share_error(group):
    if group.rank == 0:
        return error_of(group.share, COUNT, 3)


def _split(group):
    with group.split((0, 1, 0)[group.rank], (2, 1, 0)[group.rank]) as part:
        return f"{part.rank}/{part.size}"


def _split_none(group):
    part = group.split((0, -1, 0)[group.rank])
    return "-" if part is None else str(part.size)


def _all_reduce(op, kind, group):
    return hash_of(group.all_reduce(values(COUNT, group.rank, kind), op=op))


def _all_reduce_in_place(group):
    data = values(COUNT, group.rank)
    group.all_reduce(data, data)
    return hash_of(data)


def _all_reduce_empty(group):
    return status_of(group.all_reduce, values(0, 0))


def _reduce_scatter(group):
    return hash_of(group.reduce_scatter(values(COUNT, group.rank)))


def _all_gather(group):
    return hash_of(group.all_gather(_own_share(group), np.empty(COUNT, np.float32)))


def _broadcast(group):
    return hash_of(group.broadcast(values(COUNT, group.rank), root=1))


def _reduce(group):
    out = group.reduce(values(COUNT, group.rank), root=2, op=Reduce.MAX)
    return None if out is None else hash_of(out)


def _gather(group):
    out = group.gather(_own_share(group), COUNT)
    return None if out is None else hash_of(out)


def _scatter(group):
    send = values(COUNT, 1) if group.rank == 1 else None
    return hash_of(group.scatter(send, np.empty_like(_own_share(group)), COUNT, root=1))


def _all_to_all(group):
    return hash_of(group.all_to_all(values(12, group.rank)))


def _send_recv(group):
    if group.rank == 0:
        group.send(values(5, 0), 1)
        return None
    data = group.recv(np.empty(5, np.float32), group.rank - 1)
    if group.rank == 2:
        return hash_of(data)
    group.send(data + np.float32(1), 2)


def _balance(group):
    return str(group.balance(*BALANCED[group.rank], 640, 16))


def _balance_error(group):
    return error_of(group.balance, 1, 8, 63, 8)


def _world_of_one():
    with Group.local(None, 0, 1) as group:
        return hash_of(group.all_reduce(values(COUNT, 0)))


def _all_reduce_lengths(group):
    return error_of(group.all_reduce, values(COUNT, 0), np.empty(COUNT - 1, np.float32))


def _bad_root(group):
    return error_of(group.broadcast, values(COUNT, 0), 5)


def scenarios():
    yield "places", ranks.on(3, _places)
    yield "shares", ranks.on(3, _shares)
    yield "share-error", ranks.on(3, _share_error)
    yield "split", ranks.on(3, _split)
    yield "split-none", ranks.on(3, _split_none)
    for op_name, op in OPS.items():
        for kind_name, kind in KINDS.items():
            yield f"all-reduce-{op_name}-{kind_name}", ranks.on(3, functools.partial(_all_reduce, op, kind))
    yield "all-reduce-in-place", ranks.on(3, _all_reduce_in_place)
    yield "all-reduce-empty", ranks.on(3, _all_reduce_empty)
    yield "reduce-scatter", ranks.on(3, _reduce_scatter)
    yield "all-gather", ranks.on(3, _all_gather)
    yield "broadcast", ranks.on(3, _broadcast)
    yield "reduce", ranks.on(3, _reduce)
    yield "gather", ranks.on(3, _gather)
    yield "scatter", ranks.on(3, _scatter)
    yield "all-to-all", ranks.on(3, _all_to_all)
    yield "send-recv", ranks.on(3, _send_recv)
    yield "barrier", ranks.on(3, lambda group: status_of(group.barrier))
    yield "balance", ranks.on(3, _balance)
    yield "world-of-one", _world_of_one
    yield "all-reduce-lengths", ranks.on(1, _all_reduce_lengths)
    yield "bad-root", ranks.on(1, _bad_root)
    yield "balance-error", ranks.on(1, _balance_error)
