"""The shard of one rank as torch keeps states: dictionaries of tensors."""

from __future__ import annotations

import torch

from .generated import Key, Slot, Source
from .optimizer import Optimizer

_SCALARS = (Key.STEP_COUNT, Key.SKIPPED_COUNT)
# Slots with one entry per so many elements.
_PER_ENTRY = {Slot.PARAM_SCALE: 256, Slot.FIRST_SCALE: 256, Slot.SECOND_SCALE: 256}


def shard_of(optimizer: Optimizer) -> dict:
    """By name and slot, the first entry of this rank's piece and the piece, a tensor of the library's memory; and scalars of the run."""
    pieces = {}
    for index in range(optimizer.view_count()):
        number = optimizer.view(index, Slot.PARAM).param
        slots = pieces.setdefault(optimizer.params[number].name, {})
        for kept in optimizer.slots(number):
            view = optimizer.view(index, kept.slot)
            offset = 0 if kept.slot == Slot.UPDATE_COUNT else view.offset // _PER_ENTRY.get(kept.slot, 1)
            data = view.data.copy() if kept.slot == Slot.UPDATE_COUNT else view.data
            slots[_name(kept.slot)] = offset, torch.from_dlpack(data)
    return {"pieces": pieces, "scalars": {key.name.lower(): optimizer.get_i64(key) for key in _SCALARS}}


def load_shard(optimizer: Optimizer, state: dict) -> None:
    """Takes the pieces that all ranks have of their own shards, and begins with them. A collective."""
    for name, value in state["scalars"].items():
        optimizer.set_i64(name, value)
    for number, param in enumerate(optimizer.params):
        pieces = state["pieces"].get(param.name, {})
        for kept in optimizer.slots(number):
            offset, data = pieces.get(_name(kept.slot), (0, None))
            optimizer.write(number, data, kept.slot, offset)
    optimizer.begin(Source.SHARDS)


def _name(slot: int) -> str:
    return slot.name.lower() if isinstance(slot, Slot) else str(slot)
