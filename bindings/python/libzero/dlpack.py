"""Tensors of other packages, without a copy, by DLPack: torch, JAX and whatever else has __dlpack__. On the host; device.py knows devices.

The structs are those of dlpack.h; kinds with names that NumPy does not have are those of elements.py.
"""

from __future__ import annotations

import ctypes
import weakref

import numpy as np

_HOST = (1, 3)  # kDLCPU and kDLCUDAHost: memory that the host reads
_BFLOAT = 4
_TYPES = {0: "i", 1: "u", 2: "f"}
_READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype = ctypes.c_char_p
_name.argtypes = [ctypes.py_object]


class Lender:
    """Memory that other packages may take."""

    __slots__ = ("_exports", "__weakref__")

    def __init__(self):
        self._exports = []

    def exported(self, memory: Memory) -> None:
        """Remembers memory that another package takes of this one."""
        self._exports = [*filter(lambda known: known() is not None, self._exports), weakref.ref(memory)]

    @property
    def in_use(self) -> bool:
        """Whether a tensor of another package still lies here."""
        return any(known() is not None for known in self._exports)


class Memory(Lender):
    """What NumPy makes an array of. The array refers to it, and so keeps `owner`, whose memory this is."""

    __slots__ = ("owner", "__array_interface__")

    def __init__(self, owner: object, address: int, shape: tuple, strides: tuple | None, kind: np.dtype, writable: bool):
        super().__init__()
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": kind.str,
            "data": (address, not writable),
        }


def memory_of(array) -> Lender | None:
    """What an array over memory of the library was made of, and memory of a device itself; None for an array without elements."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array


def from_dlpack(source, kinds: dict) -> np.ndarray:
    """An array over the tensor's memory. `kinds`: NumPy's type by DLPack's code and bits, where it is none of the usual ones."""
    given = type_name(source)
    if source.__dlpack_device__()[0] not in _HOST:
        raise TypeError(f"the {given} lies on a device, but this call takes memory of the host; give a copy on the host")
    # A capsule that nobody has consumed gives its tensor back when it ends.
    capsule, tensor, writable = opened(source)
    kind = kinds.get((tensor.code, tensor.bits))
    if kind is None and tensor.code in _TYPES and tensor.bits % 8 == 0:
        kind = np.dtype(f"{_TYPES[tensor.code]}{tensor.bits // 8}")
    if kind is None or tensor.lanes != 1:
        kind = f"elements of {tensor.bits} bits (DLPack's type {tensor.code})"
        raise TypeError(f"the {given} has {kind}, which have no element type in libzero")
    shape = tuple(tensor.shape[: tensor.ndim])
    if 0 in shape:
        return np.empty(shape, kind)
    strides = tuple(step * kind.itemsize for step in tensor.strides[: tensor.ndim]) if tensor.strides else None
    # JAX tells of no tensor that it must not be written to.
    writable = writable and not given.startswith("jax")
    return np.asarray(Memory(capsule, tensor.data + tensor.byte_offset, shape, strides, kind, writable)).view(kind)


def type_name(source) -> str:
    """How errors name what was given."""
    return f"{type(source).__module__}.{type(source).__qualname__}"


def opened(source, **stream: int):
    """The capsule, its tensor, and whether that may be written to. `stream`: of a tensor on a device, where the work that uses it goes."""
    try:
        capsule = source.__dlpack__(max_version=(1, 0), **stream)
    except TypeError:
        capsule = source.__dlpack__(**stream)
    name = _name(capsule)
    struct = (_Versioned if name == b"dltensor_versioned" else _Managed).from_address(_pointer(capsule, name))
    return capsule, struct.tensor, not (name == b"dltensor_versioned" and struct.flags & _READ_ONLY)


def capsule_of(lender: Lender | None, memory: Memory, kind: np.dtype, device: tuple = (1, 0)) -> object:
    """The capsule of memory that another package takes of `lender`. NumPy makes it, of an array that nobody reads."""
    capsule = np.asarray(memory).__dlpack__()
    if lender is not None:
        lender.exported(memory)
    tensor = _Managed.from_address(_pointer(capsule, b"dltensor")).tensor
    tensor.device_type, tensor.device_id = device
    if kind.metadata and kind.metadata.get("libzero") == "BF16":
        tensor.code = _BFLOAT
    return capsule


class Lent(np.ndarray):
    """An array over memory of the library, which other packages take by DLPack without a copy (torch.from_dlpack).

    They know no read-only tensors: what they write into a parameter after begin() is lost or found as a change by verify().
    """

    def __dlpack__(self, *, copy=None, dl_device=None, **_):
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("memory of the library lies on the host, and is not moved to a device")
        if copy:
            return self.copy().__dlpack__()
        memory = memory_of(self)
        exported = Memory(self, self.ctypes.data, self.shape, self.strides, self.dtype, True)
        return capsule_of(memory if isinstance(memory, Memory) else None, exported, self.dtype)
