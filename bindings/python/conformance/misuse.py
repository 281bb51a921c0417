"""Calls that must fail, and groups that ranks fail in."""

import numpy as np
from libzero import Buffer, Config, Dtype, Key, Optimizer

import ranks
from model import B, Model
from values import values
from words import error_of, status_of


def _sealed(group):
    model = Model(group)
    model.optimizer.seal()
    return model


def _begun(group):
    model = _sealed(group)
    model.begin()
    return model


def _step_before_begin(group):
    with _sealed(group) as model:
        return error_of(model.optimizer.step)


def _seal_twice(group):
    with _sealed(group) as model:
        return error_of(model.optimizer.seal)


def _param_after_seal(group):
    with _sealed(group) as model:
        return error_of(model.optimizer.add_param, "c", (7,))


def _param_dtype(group):
    with Model(group) as model:
        return error_of(model.optimizer.add_param, "c", (7,), Dtype.I32)


def _param_shape(group):
    with Model(group) as model:
        return error_of(model.optimizer.add_param, "c", (-1,))


def _param_name_twice(group):
    with Model(group) as model:
        return error_of(model.optimizer.add_param, "w", (7,))


def _unknown_algorithm(group):
    with Config(algorithm="nothing") as config:
        return error_of(Optimizer, group, config)


def _gradient_twice(group):
    with _begun(group) as model:
        model.optimizer.grad_ready(B, values(7, 0))
        return error_of(model.optimizer.grad_ready, B, values(7, 0))


def _gradient_range(group):
    with _begun(group) as model:
        return error_of(model.optimizer.grad_ready, B, values(8, 0))


def _read_range(group):
    with _begun(group) as model:
        return error_of(model.optimizer.read, B, np.empty(8, np.float32))


def _rate_unknown(group):
    with _begun(group) as model:
        return error_of(model.optimizer.set_f64, Key.STAGE, 1)


def _trace_off(group):
    with _begun(group) as model:
        return error_of(model.optimizer.trace)


def _closed(group):
    model = _begun(group)
    group.close()
    model.optimizer.close()
    return f"{status_of(lambda: group.size)} {status_of(model.optimizer.step)}"


def _mismatch(group):
    return status_of(group.all_reduce, values(10 if group.rank == 0 else 11, group.rank))


def _timeout(group):
    if group.rank == 0:
        group.set_deadline(200)
        return status_of(group.barrier)


def _aborted(group):
    if group.rank == 1:
        return status_of(group.barrier)
    group.abort()


def _peer_left(group):
    if group.rank == 0:
        return status_of(group.barrier)
    group.close()


def _release_order(group):
    model = _begun(group)
    buffer = Buffer(group, 1000)
    status = status_of(model.step, 0)
    group.close()
    buffer.close()
    model.optimizer.close()
    return status


def scenarios():
    yield "step-before-begin", ranks.on(1, _step_before_begin)
    yield "seal-twice", ranks.on(1, _seal_twice)
    yield "param-after-seal", ranks.on(1, _param_after_seal)
    yield "param-dtype", ranks.on(1, _param_dtype)
    yield "param-shape", ranks.on(1, _param_shape)
    yield "param-name-twice", ranks.on(1, _param_name_twice)
    yield "unknown-algorithm", ranks.on(1, _unknown_algorithm)
    yield "gradient-twice", ranks.on(1, _gradient_twice)
    yield "gradient-range", ranks.on(1, _gradient_range)
    yield "read-range", ranks.on(1, _read_range)
    yield "rate-unknown", ranks.on(1, _rate_unknown)
    yield "trace-off", ranks.on(1, _trace_off)
    yield "closed", ranks.on(1, _closed)
    yield "mismatch", ranks.on(3, _mismatch)
    yield "timeout", ranks.on(2, _timeout)
    yield "aborted", ranks.on(2, _aborted)
    yield "peer-left", ranks.on(2, _peer_left)
    yield "release-order", ranks.on(1, _release_order)
