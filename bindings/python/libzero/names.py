"""Enumerations by the names that they have in C, in small letters and without what all of them begin with."""

from __future__ import annotations

import enum

from .generated import Slot


def number(kind: type[enum.IntEnum], value):
    """What stands for a value of an enumeration in a call: a name is looked up. libzero itself judges numbers."""
    if not isinstance(value, str):
        return value
    names = {member.name.lower(): member for member in kind}
    if value not in names:
        raise TypeError(f"there is no {kind.__name__.lower()} {value!r}; there are {', '.join(names)}")
    return names[value]


def slot_name(slot: int) -> str:
    """The name of a slot that is kept; those of algorithm "custom" count on from the first."""
    if slot in Slot.__members__.values():
        return Slot(slot).name.lower()
    return f"custom+{slot - Slot.CUSTOM}"
