"""What owns a handle of the library."""

from __future__ import annotations

from .error import Error
from .generated import Status


class Owner:
    """An object with a handle. close(), the end of a `with` block or the end of the object gives it back, in any order among objects.

    The handle is a capsule of the native module, which gives it back when nothing refers to it any more.
    """

    def __init__(self, handle: object):
        self._handle = handle

    @property
    def native(self) -> object:
        """The handle, for calls."""
        if self._handle is None:
            raise Error(Status.E_BAD_HANDLE, "ZERO_E_BAD_HANDLE", f"the {type(self).__name__} was closed")
        return self._handle

    @property
    def closed(self) -> bool:
        return self._handle is None

    def close(self) -> None:
        """Ends the use of the object; may be called again. Arrays over its memory keep that until they are gone."""
        self._handle = None

    def __repr__(self):
        return f"{type(self).__name__}({'closed' if self.closed else self._described()})"

    def _described(self) -> str:
        """What tells an open object from others of its class."""
        return "open"

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.close()


def native_of(owner: Owner | None) -> object | None:
    """The handle of an object that may be left out."""
    return None if owner is None else owner.native
