"""Scenarios that need no group."""

import libzero
from libzero import Config, Dtype, Feature, Group, Key

from words import double, error_of


def _bounds_lr():
    bounds = libzero.bounds(Key.LR)
    return f"{bounds.type} {double(bounds.min_f64)} {double(bounds.max_f64)} {double(bounds.default_f64)}"


def _bounds_stage():
    bounds = libzero.bounds(Key.STAGE)
    return f"{bounds.type} {bounds.min_i64} {bounds.max_i64} {bounds.default_i64}"


def _error_of_set(key, value):
    with Config() as config:
        return error_of(config.set, key, value)


def scenarios():
    dtypes = (Dtype.F32, Dtype.F64, Dtype.F16, Dtype.BF16, Dtype.I32, Dtype.I64, Dtype.U8)
    yield "version", libzero.version
    yield "abi", lambda: str(libzero.abi_version())
    yield "status-names", lambda: " ".join(map(libzero.status_name, (-300, 0, 1)))
    yield "dtype-sizes", lambda: " ".join(str(libzero.dtype_nbytes(dtype)) for dtype in dtypes)
    yield "dtype-unknown", lambda: error_of(libzero.dtype_nbytes, 99)
    yield "feature-local", lambda: str(int(libzero.has_feature(Feature.LOCAL)))
    yield "launcher", Group.launcher
    yield "bounds-stage", _bounds_stage
    yield "bounds-lr", _bounds_lr
    yield "bounds-unknown", lambda: error_of(libzero.bounds, 99999)
    yield "config-unknown-key", lambda: _error_of_set(99999, 1)
    yield "config-wrong-type", lambda: _error_of_set(Key.STAGE, 1.0)
    yield "config-out-of-bounds", lambda: _error_of_set(Key.STAGE, 4)
    yield "config-string", lambda: _error_of_set(Key.ALGORITHM, "adamw")
