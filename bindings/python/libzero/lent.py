"""Arrays over memory of the library."""

from __future__ import annotations

import numpy as np

from .dlpack import Lent, Memory


def lent_array(handle: object, address: int, shape: tuple, kind: np.dtype, writable: bool) -> np.ndarray:
    """The elements at an address, in C order. An array that is not writable cannot be made so."""
    if address == 0:
        return np.empty(shape, kind).view(Lent)
    return np.asarray(Memory(handle, address, shape, None, kind, writable)).view(kind, Lent)
