"""The 16-bit float that NumPy does not have: its elements are uint16, the upper halves of float32."""

from __future__ import annotations

import numpy as np

from . import elements
from .generated import Dtype


def to_bf16(array) -> np.ndarray:
    """The bits (uint16) of float32 elements as bf16, rounded to nearest, ties to even. NaN stays NaN."""
    values = elements.typed(array, Dtype.F32, "what to_bf16 takes")
    # The bits of other NaN could be rounded to those of infinity.
    bits = np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))
    odd = bits >> np.uint32(16) & np.uint32(1)
    return ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)


def from_bf16(bits) -> np.ndarray:
    """The same numbers as float32, exactly."""
    halves = elements.typed(bits, Dtype.BF16, "what from_bf16 takes")
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
