"""What is known of registered parameters: shapes and element types, which libzero's calls take for granted."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from . import elements
from .config import Config
from .device import DeviceArray
from .generated import Dtype, Key, Slot


class Param(NamedTuple):
    """A parameter as it was registered."""

    name: str
    shape: tuple
    dtype: Dtype
    grad_dtype: Dtype
    kind: np.dtype  # of its elements in NumPy
    grad_kind: np.dtype
    holder: int  # the parameter whose memory this one has: itself, or what it is tied to

    @property
    def count(self) -> int:
        return math.prod(self.shape)


class KeptSlot(NamedTuple):
    """One slot that is kept of a parameter from step to step."""

    slot: Slot | int  # those of algorithm "custom" beyond Slot.CUSTOM have numbers only
    dtype: Dtype
    count: int  # entries: elements, or for scales one per 256 elements

    @property
    def kind(self) -> np.dtype:
        return elements.numpy_dtype(self.dtype)


class View(NamedTuple):
    """A piece of a parameter that this rank updates, in one slot."""

    param: int
    offset: int  # its first element within the parameter
    data: np.ndarray | DeviceArray


class Params:
    """The parameters of an optimizer, by the numbers that libzero gave: what interrupts a registration shifts no other."""

    def __init__(self, grad_dtype: int):
        self._grad_dtype = grad_dtype  # of all that say nothing else; 0: that of the parameter
        self._params = {}

    def add(self, number: int, name: str, shape: tuple, dtype: int, config: Config | None) -> None:
        """Records what libzero has registered under a number."""
        tied_to = config.get(Key.TIED_TO) if config is not None else None
        if tied_to is not None:
            param = self._params[tied_to]._replace(name=name, holder=tied_to)
        else:
            wanted = config.get(Key.GRAD_DTYPE, self._grad_dtype) if config is not None else self._grad_dtype
            grad_dtype = wanted or dtype
            kinds = map(elements.numpy_dtype, (dtype, grad_dtype))
            param = Param(name, shape, Dtype(dtype), Dtype(grad_dtype), *kinds, holder=number)
        self._params[number] = param

    def get(self, number: int) -> Param | None:
        """None for a number that was not given."""
        return self._params.get(number)

    def __iter__(self):
        return iter(self._params.values())
