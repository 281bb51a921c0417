"""Handles of the library, and what owns them."""

from __future__ import annotations

from .error import Error
from .generated import Status


class Handle:
    """One native handle, given back when nothing refers to it any more."""

    __slots__ = ("value", "_release")

    def __init__(self, value: int, release):
        self.value = value
        self._release = release

    def __del__(self):
        self._release(self.value)


class Owner:
    """An object with a handle. close(), the end of a `with` block or the end of the object gives it back, in any order among objects."""

    def __init__(self, handle: Handle):
        self._handle = handle

    @property
    def native(self) -> int:
        """The handle's value, for calls."""
        if self._handle is None:
            raise Error(Status.E_BAD_HANDLE, "ZERO_E_BAD_HANDLE", f"the {type(self).__name__} was closed")
        return self._handle.value

    @property
    def closed(self) -> bool:
        return self._handle is None

    def close(self) -> None:
        """Ends the use of the object; may be called again. Arrays over its memory keep that until they are gone."""
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.close()


def native_of(owner: Owner | None) -> int | None:
    """The handle of an object that may be left out."""
    return None if owner is None else owner.native
