"""Constants and layout, as the generated tables have them."""

import ctypes
import functools

from libzero.generated import CONSTANTS, STRUCTS


def scenarios():
    for name, value in CONSTANTS:
        yield f"constant {name}", functools.partial(format, value, "d")
    for name, struct in STRUCTS:
        yield f"field {name} *", functools.partial("{} {}".format, 0, ctypes.sizeof(struct))
        for field, _ in struct._fields_:
            place = getattr(struct, field)
            yield f"field {name} {field}", functools.partial("{} {}".format, place.offset, place.size)
