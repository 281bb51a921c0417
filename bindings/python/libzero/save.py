"""Saves as tools see them: one process lists, describes, verifies, compares, exports and removes them. No group is needed."""

from __future__ import annotations

import json
import os

from .generated import TextForm
from .handle import Owner
from .library import text, zero


class Save(Owner):
    """One save. zero/save.h says what its methods promise; one thread at a time uses it, except for `progress`."""

    def __init__(self, path: str | os.PathLike):
        """Opens the save at `path`, or the newest valid one if `path` is a folder of saves."""
        super().__init__(zero.zero_save_open(os.fspath(path)))

    def describe(self) -> dict:
        """The step, the run, tensors with types, shapes and slots, settings, texts and files."""
        return json.loads(text(zero.zero_save_describe, self.native, TextForm.JSON))

    def verify(self) -> None:
        """Reads all files and checks every block and every header."""
        zero.zero_save_verify(self.native)

    def compare(self, other: Save) -> list[dict]:
        """The differences to another save, each with "name", "difference", "a" and "b"."""
        zero.zero_save_compare(self.native, other.native)
        return json.loads(text(zero.zero_save_differences, self.native, TextForm.JSON))

    def export(self, path: str | os.PathLike) -> None:
        """Writes the parameters as plain safetensors: a file that ends with ".safetensors", or a new folder."""
        zero.zero_save_export(self.native, os.fspath(path))

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes that verify(), compare() or export() has processed, and bytes in total. Any thread may ask."""
        return tuple(zero.zero_save_progress(self.native))


def list_saves(folder: str | os.PathLike) -> list[dict]:
    """All saves of a folder, newest first: name, step, whether committed and valid, size, ranks, time and run."""
    return json.loads(text(zero.zero_save_list, os.fspath(folder), TextForm.JSON))


def prunable_saves(folder: str | os.PathLike, keep: int) -> list[str]:
    """Names of the committed saves beyond the `keep` newest of each run, oldest first."""
    return text(zero.zero_save_prunable, os.fspath(folder), keep).splitlines()


def remove_save(folder: str | os.PathLike, name: str) -> None:
    """Removes a save: first its commit, then its files. The newest valid save of the folder is not removed."""
    zero.zero_save_remove(os.fspath(folder), name)
