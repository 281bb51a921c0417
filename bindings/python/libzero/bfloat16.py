"""The 16-bit float that NumPy does not have: its elements are the upper halves of float32 (elements.py)."""

from __future__ import annotations

import numpy as np

from . import elements
from .generated import Dtype


def to_bf16(array) -> np.ndarray:
    """Float32 elements as bf16, rounded to nearest, ties to even. NaN stays NaN."""
    values = elements.typed(array, Dtype.F32, "what to_bf16 takes")
    # The bits of other NaN could be rounded to those of infinity.
    bits = np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))
    odd = bits >> np.uint32(16) & np.uint32(1)
    return ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16).view(elements.numpy_dtype(Dtype.BF16))


def from_bf16(bits) -> np.ndarray:
    """The same numbers as float32, exactly. Arrays of uint16 are taken for bits of bf16."""
    given = elements.array(bits)
    plain = given.dtype == np.uint16 and given.dtype.metadata is None
    halves = elements.typed(elements.as_bf16(given) if plain else given, Dtype.BF16, "what from_bf16 takes")
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
