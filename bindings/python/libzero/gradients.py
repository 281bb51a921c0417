"""Gradients of many parameters that are checked once and given in one call per step."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .device import DeviceArray
from .handle import Owner
from .library import zero


class Gradients:
    """What Optimizer.gradients() returns: parameters and where their gradients lie."""

    def __init__(self, optimizer: Owner, grads: Iterable[tuple[int, np.ndarray | DeviceArray | None]]):
        """`grads`: by number of the parameter the whole gradient in C order, or None for acquired memory."""
        pairs = list(grads)
        self._optimizer = optimizer
        self._arrays = [grad for _, grad in pairs]  # keeps the memory that the addresses name
        addresses = map(_address, self._arrays)
        # As the native call takes them: a row of numbers, a row of addresses.
        self._rows = np.array([[param for param, _ in pairs], list(addresses)], np.int64)

    def __len__(self):
        return len(self._arrays)

    def ready(self) -> None:
        """Says that all these gradients are final for this step, in their order. Where it fails at one, those before it are ready."""
        zero.zero_optimizer_grads_ready(self._optimizer.native, self._rows, self._optimizer.stream)


def _address(grad: np.ndarray | DeviceArray | None) -> int:
    if grad is None:
        return 0
    return grad.address if isinstance(grad, DeviceArray) else grad.ctypes.data
