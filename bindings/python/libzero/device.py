"""Memory of a CUDA device: where it lies, for calls that take it there, and for other packages by DLPack. Nothing here reads it."""

from __future__ import annotations

import math
import operator
from typing import NamedTuple

import numpy as np

from . import elements
from .dlpack import Lender, Memory, capsule_of, opened, type_name
from .generated import Dtype

_CUDA = 2  # kDLCUDA

# The element types of DLPack, by code and bits.
_DTYPES = {
    (2, 32): Dtype.F32,
    (2, 64): Dtype.F64,
    (2, 16): Dtype.F16,
    (4, 16): Dtype.BF16,
    (0, 32): Dtype.I32,
    (0, 64): Dtype.I64,
    (1, 8): Dtype.U8,
    (10, 8): Dtype.F8_E4M3,
}

# What DLPack calls the default stream of a device, and what it calls an exchange without streams.
_DEFAULT_STREAM = 1
_NO_STREAM = -1


class Place(NamedTuple):
    """Where an optimizer reaches memory: its device, -1 for the host alone, and the stream of its calls."""

    device: int
    stream: int


class DeviceArray(Lender):
    """Elements in memory of a CUDA device, in C order: an address with its device, shape and element type.

    Optimizers with Key.DEVICE take it, and return it where their memory is on the device. Python cannot read the elements: other packages
    take them by DLPack (torch.from_dlpack). `stream` is a cudaStream_t as an integer, 0 the device's default stream: what was given to it
    before comes before any use of the elements.
    """

    __slots__ = ("address", "device", "shape", "dtype", "stream", "owner", "writable")

    def __init__(
        self, address: int, shape, dtype=Dtype.F32, device: int = 0, *, stream: int = 0, owner: object = None, writable: bool = True
    ):
        """`owner` is kept, so that the memory lives as long as this. The caller answers for the address."""
        super().__init__()
        self.address = operator.index(address)
        self.device = operator.index(device)
        self.shape = elements.shape_of(shape)
        self.dtype = Dtype(elements.dtype_of(dtype))
        self.stream = operator.index(stream)
        self.owner = owner
        self.writable = writable
        if self.address % self.itemsize != 0:
            raise BufferError(f"the elements do not lie at multiples of their {self.itemsize} bytes")
        if self.address <= 0 < self.size:
            raise ValueError(f"address is {self.address}, but {self.size} elements lie somewhere")

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return elements.dtype_nbytes(self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    def __repr__(self):
        return f"DeviceArray({self.shape} of {self.dtype.name.lower()} at {self.address:#x} on device {self.device})"

    def __dlpack_device__(self):
        return _CUDA, self.device

    def __dlpack__(self, *, stream=None, copy=None, dl_device=None, **_):
        """As the array API has it. `stream` is the consumer's, which must be the one that this memory was made for, or -1."""
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"the elements lie on CUDA device {self.device}, and are not moved elsewhere")
        if copy:
            raise BufferError("memory of a device is exported as it is; copy the tensor that is made of it")
        if stream != _NO_STREAM and _stream_of(stream) != self.stream:
            text = "set Optimizer.stream to the consumer's before acquiring, or make that stream wait and give stream=-1"
            given = f"stream is {_stream_of(stream):#x}, but work that leads to these elements is in stream {self.stream:#x}"
            raise BufferError(f"{given}; {text}")
        kind = elements.numpy_dtype(self.dtype)
        return capsule_of(self, Memory(self, self.address, self.shape, None, kind, True), kind, self.__dlpack_device__())

    @property
    def native(self) -> tuple:
        """As native calls take it."""
        return self.address, self.size


def _stream_of(stream) -> int:
    """A stream as DLPack names it, for CUDA."""
    return 0 if stream in (None, _DEFAULT_STREAM) else operator.index(stream)


def device_array(data, stream: int) -> DeviceArray | None:
    """Memory of a CUDA device, whose elements are ready for what `stream` is given from now on; None for anything else."""
    if isinstance(data, DeviceArray):
        return data
    if isinstance(data, np.ndarray) or not hasattr(data, "__dlpack_device__"):
        return None
    kind, device = data.__dlpack_device__()
    if kind != _CUDA:
        return None
    capsule, tensor, writable = opened(data, stream=stream or _DEFAULT_STREAM)
    dtype = _DTYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        kind = f"elements of {tensor.bits} bits (DLPack's type {tensor.code})"
        raise TypeError(f"the {type_name(data)} has {kind}, which have no element type in libzero")
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides and not _in_rows(shape, tuple(tensor.strides[: tensor.ndim])):
        raise BufferError(f"the {type_name(data)} is not contiguous in C order; its contiguous() makes a copy that is")
    address = (tensor.data or 0) + tensor.byte_offset
    return DeviceArray(address, shape, dtype, int(device), stream=stream, owner=capsule, writable=writable)


def _in_rows(shape: tuple, strides: tuple) -> bool:
    """Whether strides, in elements, are those of C order."""
    expected = 1
    for extent, step in zip(reversed(shape), reversed(strides)):
        if extent != 1 and step != expected:
            return 0 in shape
        expected *= extent
    return True


def checked(data: DeviceArray, place: Place, dtype: Dtype, shape: tuple, *what: str) -> DeviceArray:
    """What stands for elements of a tensor, or all of it, where an optimizer takes it; `what` are words that name the tensor."""
    if data.device != place.device:
        has = f"Key.DEVICE {place.device}" if place.device >= 0 else "no Key.DEVICE"
        raise ValueError(f"the memory lies on CUDA device {data.device}, but the optimizer has {has}")
    if data.stream != place.stream:
        text = f"the memory belongs to stream {data.stream:#x}, but Optimizer.stream is {place.stream:#x}"
        raise ValueError(f"{text}; set it to the stream whose work fills the memory")
    if data.dtype != dtype:
        raise TypeError(f"the elements are {data.dtype.name.lower()}, but {' '.join(what)} is {dtype.name.lower()}")
    return elements.shaped(data, shape, *what)
