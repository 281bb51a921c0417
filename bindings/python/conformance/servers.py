"""Parameter servers of 600 float32; rank 0 is the server."""

import numpy as np
from libzero import Config, Server, ServerOrder

import ranks
from values import values
from words import error_of, hash_of

COUNT = 600


def _sealed(group, order):
    server = Server(group, COUNT, Config(server_order=order))
    server.seal()
    return server


def _work(group, server, rounds):
    for t in range(rounds):
        server.pull()
        server.push(values(COUNT, 10 * t + group.rank))
    server.leave()


def _serve(server):
    shard = server.shard().data
    shard[:] = values(shard.size, 0)
    return server.run(), hash_of(shard)


def _rounds(group):
    with _sealed(group, ServerOrder.ROUND_ROBIN) as server:
        if group.rank != 0:
            return _work(group, server, 3)
        result, params = _serve(server)
        return f"{params} {result.push_count} {result.pull_count} {result.greatest_age}"


def _replay(group):
    with _sealed(group, ServerOrder.ARRIVAL) as server:
        if group.rank != 0:
            return _work(group, server, 1)
        server.replay(np.array([32768, 32769, 1, 0], np.uint16))
        _, params = _serve(server)
        return f"{params} {hash_of(server.record())}"


def _roles(group):
    with _sealed(group, ServerOrder.ROUND_ROBIN) as server:
        if group.rank == 0:
            error = error_of(server.push, np.zeros(COUNT, np.float32))
            server.run()
        else:
            error = error_of(server.run)
            server.leave()
        return error


def scenarios():
    yield "server-rounds", ranks.on(3, _rounds)
    yield "server-replay", ranks.on(3, _replay)
    yield "server-roles", ranks.on(2, _roles)
