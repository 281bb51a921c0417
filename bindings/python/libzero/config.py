"""Configs: what groups, buffers, optimizers and parameters are made from."""

from __future__ import annotations

import numbers
import operator

import numpy as np

from .elements import dtype_of
from .generated import Key, KeyBounds
from .handle import Owner
from .library import zero
from .names import number
from .structure import prepared

# KeyBounds.type
_F64 = 2

_DTYPES = {key for key in Key if key.name.endswith("_DTYPE")}


def bounds(key: Key | int | str) -> KeyBounds:
    """Type, bounds and default of a key."""
    found = prepared(KeyBounds, zero.zero_key_bounds_init)
    zero.zero_config_bounds(number(Key, key), found)
    return found


class Config(Owner):
    """Keys and values; what is not set has its default. Objects copy what they need: a config may be changed or closed afterwards. One
    thread at a time uses it.

    Keys are named as in C, in small letters: Config(stage=3, algorithm="adamw") sets ZERO_KEY_STAGE and ZERO_KEY_ALGORITHM.
    """

    def __init__(self, **values: int | float | str):
        super().__init__(zero.zero_config_create())
        self._values = {}
        for name, value in values.items():
            self.set(name, value)

    def set(self, key: Key | int | str, value: int | float | str) -> None:
        """Sets a key. An int may stand for a float, and a type of NumPy, torch or ml_dtypes for a Dtype."""
        key = operator.index(number(Key, key))
        if isinstance(value, (type, np.dtype)) or str(value).startswith("torch."):
            value = dtype_of(value) if key in _DTYPES else value
        if isinstance(value, str):
            call = zero.zero_config_set_str
        elif isinstance(value, numbers.Integral) and bounds(key).type != _F64:
            call = zero.zero_config_set_i64
        elif isinstance(value, numbers.Real):
            call = zero.zero_config_set_f64
        else:
            raise TypeError(f"a value is an int, a float or a str, not {type(value).__name__}")
        call(self.native, key, value)
        self._values[key] = value

    def get(self, key: Key | int | str, default=None):
        """What was set, or `default`."""
        return self._values.get(number(Key, key), default)

    def _described(self) -> str:
        return ", ".join(f"{Key(key).name.lower()}={value!r}" for key, value in self._values.items())
