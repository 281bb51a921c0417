"""Checkpoints: what a run needs to go on later, at any number of ranks and any stage."""

from __future__ import annotations

import os

from . import elements
from .buffer import Buffer
from .config import Config
from .generated import CheckpointResult, Export, Part, Scope
from .group import Group
from .handle import Owner, native_of
from .library import text, zero
from .names import number
from .optimizer import Optimizer
from .saving import Saving
from .structure import prepared


# Of optimizers on devices: the default one.
_STREAM = 0


class Checkpoint(Owner):
    """Things that are saved and loaded together. All ranks add the same in the same order.

    save(), load() and export() are collectives between steps. Of optimizers on devices they use the default stream.
    zero/checkpoint.h says what they promise.
    """

    def __init__(self, group: Group, config: Config | None = None):
        super().__init__(zero.zero_checkpoint_create(group.native, native_of(config)))
        self._kept = []  # arrays that load() writes into

    def add_optimizer(self, optimizer: Optimizer, prefix: str = "") -> None:
        """Adds an optimizer with all that belongs to it; `prefix` stands before its names in files."""
        zero.zero_checkpoint_add_optimizer(self.native, prefix, optimizer.native)

    def add_buffer(self, name: str, buffer: Buffer) -> None:
        """Adds a sharded buffer."""
        zero.zero_checkpoint_add_buffer(self.native, name, buffer.native)

    def add_tensor(self, name: str, array, scope: Scope | int | str = Scope.ONE) -> None:
        """Adds an array of the program, which save() reads and load() writes; the checkpoint keeps it."""
        array = elements.array(array)
        dtype = elements.array_dtype(array.dtype)
        zero.zero_checkpoint_add_tensor(self.native, name, dtype, array.shape, array, number(Scope, scope))
        self._kept.append(array)

    def __setitem__(self, key: str, value: str | None) -> None:
        """A text of the program; those of rank 0 are saved. None removes it."""
        zero.zero_checkpoint_set_text(self.native, key, value)

    def __getitem__(self, key: str) -> str:
        return text(zero.zero_checkpoint_get_text, self.native, key)

    def rename(self, in_file: str, here: str) -> None:
        """Says that a tensor of a save, or all with "old.*", has another name here."""
        zero.zero_checkpoint_rename(self.native, in_file, here)

    def save(self, folder: str | os.PathLike) -> CheckpointResult:
        """Saves everything into a folder of its own inside `folder`, which must exist."""
        result = prepared(CheckpointResult, zero.zero_checkpoint_result_init)
        zero.zero_checkpoint_save(self.native, os.fspath(folder), _STREAM, result)
        return result

    def save_async(self, folder: str | os.PathLike) -> Saving:
        """Begins save() and returns once this rank has a snapshot of what it saves; steps may follow at once.

        Key.CHECKPOINT_SNAPSHOT says what is copied. Later saves and loads of the run wait until this one has ended.
        """
        result = prepared(CheckpointResult, zero.zero_checkpoint_result_init)
        return Saving(zero.zero_checkpoint_save_async(self.native, os.fspath(folder), _STREAM, result), result)

    def load(self, folder: str | os.PathLike, part: Part | int | str = Part.ALL) -> CheckpointResult:
        """Loads the newest valid save in `folder`, or the save that `folder` is. With Part.PARAMS it may name plain safetensors."""
        result = prepared(CheckpointResult, zero.zero_checkpoint_result_init)
        zero.zero_checkpoint_load(self.native, os.fspath(folder), number(Part, part), _STREAM, result)
        return result

    def export(self, path: str | os.PathLike, dtype=None) -> CheckpointResult:
        """Writes the parameters as plain safetensors: one file if `path` ends with .safetensors, otherwise a folder.

        `dtype` is None, "f32", "f16" or "bf16"; None writes each parameter as the optimizer keeps it.
        """
        result = prepared(CheckpointResult, zero.zero_checkpoint_result_init)
        kind = Export.AS_KEPT if dtype is None else elements.dtype_of(dtype)
        zero.zero_checkpoint_export(self.native, os.fspath(path), kind, _STREAM, result)
        return result

    def skipped(self) -> list[str]:
        """The names that the last load() passed over or converted."""
        return text(zero.zero_checkpoint_skipped, self.native).splitlines()
