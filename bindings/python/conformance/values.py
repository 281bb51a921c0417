"""v(i, s): the numbers that every language computes with."""

import numpy as np
from libzero import as_bf16


def values(count, series, kind=np.float32):
    """v(i, series) for i = 0 .. count - 1."""
    k = (7 * np.arange(count) + 13 * series) % 97
    kind = np.dtype(kind)
    if kind.kind == "f":
        return ((k - 48) / 16).astype(kind)
    return (k if kind == np.uint8 else k - 48).astype(kind)


def upper_halves(array):
    """bf16 of float32."""
    return as_bf16((array.view(np.uint32) >> 16).astype(np.uint16))
