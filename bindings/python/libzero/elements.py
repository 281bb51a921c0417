"""Element types: which NumPy type stands for which zero_dtype, and arrays as calls need them.

NumPy has no bf16 and no 8-bit floats. Arrays of the library hold bf16 as the upper halves of float32, in a type of their own that is
uint16 with a mark; 8-bit floats are uint8 codes. Types of ml_dtypes, and tensors with DLPack, are taken for what they are.
"""

from __future__ import annotations

import functools
import math
import numbers
import operator

import numpy as np

from .dlpack import from_dlpack
from .generated import Dtype
from .library import zero

# NumPy keeps the mark in views, copies and new arrays of the type.
_BF16 = np.dtype(np.uint16, metadata={"libzero": "BF16"})
# What arrays of 8-bit floats are viewed as: only slots hold them, and libzero refuses them elsewhere.
_F8 = np.dtype(np.uint8, metadata={"libzero": "F8_E4M3"})

_NUMPY = {
    Dtype.F32: np.dtype(np.float32),
    Dtype.F64: np.dtype(np.float64),
    Dtype.F16: np.dtype(np.float16),
    Dtype.BF16: _BF16,
    Dtype.I32: np.dtype(np.int32),
    Dtype.I64: np.dtype(np.int64),
    Dtype.U8: np.dtype(np.uint8),
    Dtype.U16: np.dtype(np.uint16),
    Dtype.F8_E4M3: np.dtype(np.uint8),
    Dtype.F8_UE5M3: np.dtype(np.uint8),
}

# Where a name means something else in NumPy ("f16", "u8"), that is no element type here.
_NAMES = {dtype.name.lower(): dtype for dtype in Dtype}

# What an array of a type that stands for several is taken for.
_OF_ARRAYS = (Dtype.F32, Dtype.F64, Dtype.F16, Dtype.I32, Dtype.I64, Dtype.U8)
_DTYPES = {_NUMPY[dtype]: dtype for dtype in _OF_ARRAYS}

# Types that other packages add to NumPy, by name, and to DLPack, by code and bits.
_ADDED = {"bfloat16": _BF16, "float8_e4m3fn": _F8}
_ADDED_TO_DLPACK = {(4, 16): _BF16, (10, 8): _F8}
# Types of torch that NumPy knows no name of.
_OF_TORCH = {"torch.bfloat16": Dtype.BF16, "torch.float8_e4m3fn": Dtype.F8_E4M3}

_NO_BF16 = (
    "uint16 elements are not taken for bf16: give an array of ml_dtypes.bfloat16, a tensor with DLPack, what to_bf16 returns, "
    "or as_bf16(array) if these are the bits of bf16"
)


def dtype_nbytes(dtype: Dtype | int) -> int:
    """Bytes of one element."""
    return zero.zero_dtype_nbytes(dtype)


def numpy_dtype(dtype: Dtype | int) -> np.dtype:
    """What elements are in NumPy."""
    return _NUMPY[Dtype(dtype)]


def dtype_of(kind) -> int:
    """The zero_dtype that is meant: a Dtype, its number, its name ("bf16"), or anything else that NumPy takes for a type.

    NumPy would take a number of its own for the type of that number.
    """
    if isinstance(kind, str) and kind in _NAMES:
        kind = _NAMES[kind]
    if str(kind).startswith("torch."):
        kind = _OF_TORCH.get(str(kind), str(kind)[len("torch.") :])
    return operator.index(kind) if isinstance(kind, numbers.Integral) else array_dtype(np.dtype(kind))


def array_dtype(kind: np.dtype) -> Dtype:
    """The zero_dtype of arrays of a NumPy type."""
    if kind.name in _ADDED:
        return Dtype.BF16 if kind.name == "bfloat16" else Dtype.F8_E4M3
    if kind.metadata is not None and "libzero" in kind.metadata:
        return Dtype[kind.metadata["libzero"]]
    if kind == np.uint16:
        raise TypeError(_NO_BF16)
    dtype = _DTYPES.get(kind)
    if dtype is None:
        raise TypeError(f"arrays of {kind} have no element type in libzero; those that have one are {', '.join(map(str, _DTYPES))}")
    return dtype


def _is_bf16(kind: np.dtype) -> bool:
    return kind.metadata is not None and kind.metadata.get("libzero") == "BF16"


def array(data) -> np.ndarray:
    """An array over the memory of `data`, which has DLPack or the buffer protocol: nothing is copied."""
    if isinstance(data, np.ndarray):
        added = _added(data.dtype)
        return data if added is None else data.view(added)
    if hasattr(data, "__dlpack__"):
        return from_dlpack(data, _ADDED_TO_DLPACK)
    try:
        return np.asarray(memoryview(data))
    except TypeError:
        given = type(data).__name__
        raise TypeError(f"a NumPy array is needed, or something else with DLPack or the buffer protocol, not a {given}") from None


@functools.cache
def _added(kind: np.dtype) -> np.dtype | None:
    """What stands for a type that another package added. NumPy takes longer to make a type's name than most calls take."""
    return _ADDED.get(kind.name)


def typed(data, dtype: Dtype, *what: str) -> np.ndarray:
    """As array(), of one type only; `what` are words that name what has this type."""
    found = array(data)
    if found.dtype != _NUMPY[dtype]:
        raise TypeError(f"the array is {found.dtype}, but {' '.join(what)} is {_text(dtype)}")
    if dtype == Dtype.BF16 and not _is_bf16(found.dtype):
        raise TypeError(f"the array is uint16, but {' '.join(what)} is bf16; {_NO_BF16}")
    return found


def as_bf16(bits) -> np.ndarray:
    """The same memory, for arrays of uint16 that hold the bits of bf16."""
    return typed(bits, Dtype.U16, "what as_bf16 takes").view(_BF16)


def _text(dtype: Dtype) -> str:
    """What arrays are in NumPy, and what that stands for where it is something else."""
    kind = "uint16" if dtype == Dtype.BF16 else str(_NUMPY[dtype])
    return f"{dtype.name.lower()} ({kind})" if dtype in (Dtype.BF16, Dtype.F8_E4M3, Dtype.F8_UE5M3) else kind


def shaped(data: np.ndarray, shape: tuple, *what: str) -> np.ndarray:
    """An array that stands for elements of a tensor: flat, or with the tensor's shape when it covers all of it."""
    if data.ndim > 1 and data.size == math.prod(shape) and data.shape != shape:
        raise ValueError(f"the array has shape {data.shape}, but {' '.join(what)} has {shape}; give that shape, or a flat array")
    return data


def in_place(data: np.ndarray) -> np.ndarray:
    """An array whose elements C reads where they lie."""
    if not data.flags.c_contiguous:
        raise BufferError("the array is not contiguous in C order, as what is read in every step must be")
    if not data.flags.aligned:
        raise BufferError(f"the array's elements do not lie at multiples of their {data.itemsize} bytes")
    return data


def shape_of(extents) -> tuple:
    """A shape that is given as a sequence of integers, or as one. Its extents are Python's: NumPy's wrap when they are multiplied."""
    return tuple(map(operator.index, (extents,) if isinstance(extents, numbers.Integral) else extents))
