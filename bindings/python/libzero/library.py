"""The library itself: finds it, loads SWIG's module, and refuses an ABI that this package was not written for."""

from __future__ import annotations

import ctypes
import os

from .generated import ABI_MAJOR, ABI_MINOR, Feature
from .names import number

# Names the libzero.so to use instead of the one that the loader finds.
LIBRARY_VARIABLE = "ZERO_LIBRARY"


def _check_abi(found: int, where: str) -> None:
    major, minor = divmod(found, 65536)
    if major != ABI_MAJOR or minor < ABI_MINOR:
        raise ImportError(
            f"libzero: {where} has ABI {major}.{minor}, but this package needs {ABI_MAJOR}.{ABI_MINOR} or a later minor; "
            f"install a libzero of that ABI, or name one in {LIBRARY_VARIABLE}"
        )


def _preload(path: str) -> None:
    """Loads the library from `path`; SWIG's module then takes it by its SONAME."""
    try:
        abi_version = ctypes.CDLL(path).zero_abi_version
    except (OSError, AttributeError) as error:
        raise ImportError(f"libzero: {LIBRARY_VARIABLE} is {path!r}, which is no libzero.so: {error}") from error
    abi_version.restype = ctypes.c_int64
    _check_abi(abi_version(), path)


def _load():
    path = os.environ.get(LIBRARY_VARIABLE)
    if path:
        _preload(path)
    try:
        from . import zero as native
    except ImportError as error:
        raise ImportError(
            f"libzero: its extension module cannot be loaded: {error}; build it against libzero as the package's README.md says, and let "
            f"the loader find libzero.so, or name it in {LIBRARY_VARIABLE}"
        ) from error
    _check_abi(native.zero_abi_version(), "the libzero.so that the loader found")
    return native


zero = _load()


def text(call, *arguments) -> str:
    """A text of libzero: how long it is, then the text; again when it has grown in between."""
    out = None
    needed = call(*arguments, out)
    while out is None or needed > len(out):
        out = bytearray(needed)
        needed = call(*arguments, out)
    return out[: needed - 1].decode()


def version() -> str:
    """The release of the library that was loaded, for example "0.1.0"."""
    return zero.zero_version()


def abi_version() -> int:
    """The ABI of the library that was loaded: major * 65536 + minor."""
    return zero.zero_abi_version()


def has_feature(feature: Feature | int | str) -> bool:
    """Whether the library that was loaded can do something on this machine."""
    return bool(zero.zero_has_feature(number(Feature, feature)))


def status_name(status: int) -> str:
    """The name of a status code in C."""
    return zero.zero_status_name(status)


def describe() -> str:
    """Version, ABI, kernel targets, modules found, live handles."""
    return text(zero.zero_describe_library)
