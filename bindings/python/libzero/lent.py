"""Arrays over memory of the library."""

from __future__ import annotations

import numpy as np


class _Lent:
    """What NumPy makes an array of. The array refers to it, and so keeps the handle whose memory this is."""

    __slots__ = ("handle", "__array_interface__")

    def __init__(self, handle: object, interface: dict):
        self.handle = handle
        self.__array_interface__ = interface


def lent_array(handle: object, address: int, shape: tuple, kind: np.dtype, writable: bool) -> np.ndarray:
    """The elements at an address, in C order. An array that is not writable cannot be made so."""
    if address == 0:
        return np.empty(shape, kind)
    interface = {"version": 3, "shape": shape, "typestr": kind.str, "data": (address, not writable)}
    return np.asarray(_Lent(handle, interface))
