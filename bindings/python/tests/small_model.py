"""An optimizer with one small parameter."""

import numpy as np
from libzero import Dtype, Optimizer, Source

SHAPE = (4, 3)


def gradient(rank, step=0):
    return (np.arange(12, dtype=np.float32).reshape(SHAPE) + rank + step) / 8


def begun(group, config=None, dtype=Dtype.F32):
    """An optimizer with one parameter, which is zero."""
    optimizer = Optimizer(group, config)
    optimizer.add_param("w", SHAPE, dtype)
    optimizer.seal()
    optimizer.begin(Source.LOCAL)
    return optimizer


def whole(optimizer, param=0):
    with optimizer.param(param) as data:
        return data.copy()
