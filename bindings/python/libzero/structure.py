"""Structs of libzero, which calls fill."""

import ctypes


class Structure(ctypes.Structure):
    """Numbers by name, as C lays them out."""

    def __repr__(self):
        fields = (f"{name}={getattr(self, name)!r}" for name, _ in self._fields_ if name != "struct_size")
        return f"{type(self).__name__}({', '.join(fields)})"


def prepared(kind, init):
    """A struct that libzero may fill; `init` is the native function that tells it how long this build takes it to be."""
    out = kind()
    init(out, ctypes.sizeof(kind))
    return out
