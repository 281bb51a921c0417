"""Words of the lines: what every language prints alike."""

import struct

import libzero

_MASK = (1 << 64) - 1


def hash_of(array):
    """`#` and the FNV-1a hash (64 bits) of an array's bytes."""
    value = 0xCBF29CE484222325
    for byte in array.tobytes():
        value = (value ^ byte) * 0x100000001B3 & _MASK
    return f"#{value:016x}"


def double(value):
    """The bits of an IEEE 754 double."""
    return struct.pack(">d", value).hex()


def error_of(call, *arguments):
    """The error of a call, with its text."""
    try:
        call(*arguments)
    except libzero.Error as error:
        return f"{error.name}: {error.text}"
    return "ZERO_OK"


def status_of(call, *arguments):
    """The name of a call's status."""
    return error_of(call, *arguments).partition(":")[0]
