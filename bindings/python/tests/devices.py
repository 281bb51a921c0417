"""Devices that the tests emulate, through the functions of tests/memory/caller_device.h: memory there, streams, copies.

A process has one CUDA module, which ZERO_CUDA_MODULE names.
"""

import ctypes
import os
import unittest

import numpy as np
from libzero import Config, DeviceArray, Dtype

_PATH = os.environ.get("ZERO_TEST_CALLER_DEVICE", "")


def _load():
    library = ctypes.CDLL(_PATH)
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    for name, result, arguments in (
        ("alloc", pointer, [integer, integer]),
        ("free", None, [pointer]),
        ("stream_create", pointer, [integer]),
        ("stream_destroy", None, [pointer]),
        ("copy", None, [pointer, pointer, pointer, integer, integer]),
        ("wait", None, [pointer]),
    ):
        function = getattr(library, f"caller_{name}")
        function.restype, function.argtypes = result, arguments
    return library


caller = _load() if _PATH else None
needed = unittest.skipIf(caller is None, "ZERO_TEST_CALLER_DEVICE names no library with devices: ctest sets it where they are built")

LATE_US = 300  # so late is what a stream does


def config_on(device=0, **keys):
    return Config(device=device, **keys)


class Stream:
    """A stream of a device, with memory that it fills and reads."""

    def __init__(self, device=0):
        self.device = device
        self.number = caller.caller_stream_create(device)
        self._pieces = []
        self._hosts = []  # what the stream may yet read or write

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wait()
        for address in self._pieces:
            caller.caller_free(address)
        caller.caller_stream_destroy(self.number)

    def wait(self):
        caller.caller_wait(self.number)
        self._hosts.clear()

    def empty(self, shape, dtype=Dtype.F32):
        """Memory that the stream's work is to fill."""
        array = DeviceArray(0x1000, shape, dtype, self.device)  # for its size
        self._pieces.append(caller.caller_alloc(self.device, max(array.nbytes, 1)))
        return DeviceArray(self._pieces[-1], shape, dtype, self.device, stream=self.number)

    def put(self, values, to=None):
        """Gives the stream a late copy of an array to the device."""
        values = values.copy()
        to = self.empty(values.shape) if to is None else to
        assert values.nbytes == to.nbytes
        self._hosts.append(values)
        caller.caller_copy(self.number, to.address, values.ctypes.data, values.nbytes, LATE_US)
        return to

    def get(self, array, kind=np.float32):
        """The elements, after all that the stream was given."""
        values = np.empty(array.shape, kind)
        caller.caller_copy(self.number, values.ctypes.data, array.address, array.nbytes, LATE_US)
        self.wait()
        return values
