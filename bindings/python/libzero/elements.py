"""Element types: which NumPy type stands for which zero_dtype, and arrays as calls need them.

NumPy has no bf16 and no 8-bit floats: bf16 elements are uint16 with the upper halves of float32, 8-bit floats are uint8 codes.
"""

from __future__ import annotations

import numpy as np

from .generated import Dtype
from .library import zero

_NUMPY = {
    Dtype.F32: np.dtype(np.float32),
    Dtype.F64: np.dtype(np.float64),
    Dtype.F16: np.dtype(np.float16),
    Dtype.BF16: np.dtype(np.uint16),
    Dtype.I32: np.dtype(np.int32),
    Dtype.I64: np.dtype(np.int64),
    Dtype.U8: np.dtype(np.uint8),
    Dtype.U16: np.dtype(np.uint16),
    Dtype.F8_E4M3: np.dtype(np.uint8),
    Dtype.F8_UE5M3: np.dtype(np.uint8),
}

# What an array of a type that stands for several is taken for.
_OF_ARRAYS = (Dtype.F32, Dtype.F64, Dtype.F16, Dtype.BF16, Dtype.I32, Dtype.I64, Dtype.U8)
_DTYPES = {_NUMPY[dtype]: dtype for dtype in _OF_ARRAYS}


def dtype_nbytes(dtype: Dtype | int) -> int:
    """Bytes of one element."""
    return zero.zero_dtype_nbytes(dtype)


def numpy_dtype(dtype: Dtype | int) -> np.dtype:
    """What elements are in NumPy."""
    return _NUMPY[Dtype(dtype)]


def dtype_of(kind) -> int:
    """The zero_dtype that is meant: a Dtype, its number, or anything that NumPy takes for a type."""
    return int(kind) if isinstance(kind, int) else array_dtype(np.dtype(kind))


def array_dtype(kind: np.dtype) -> Dtype:
    """The zero_dtype of arrays of a NumPy type."""
    dtype = _DTYPES.get(kind)
    if dtype is None:
        raise TypeError(f"arrays of {kind} have no element type in libzero; those that have one are {', '.join(map(str, _DTYPES))}")
    return dtype


def array(data) -> np.ndarray:
    """An array over the memory of `data`, which has the buffer protocol: nothing is copied."""
    return data if isinstance(data, np.ndarray) else np.asarray(memoryview(data))


def typed(data, kind: np.dtype, *what: str) -> np.ndarray:
    """As array(), of one type only; `what` are words that name what has this type."""
    found = array(data)
    if found.dtype != kind:
        raise TypeError(f"the array is {found.dtype}, but {' '.join(what)} is {kind}")
    return found
