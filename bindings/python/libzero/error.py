"""What a libzero call fails with."""

from __future__ import annotations

from .generated import Status


class Error(Exception):
    """A call that failed.

    code: a Status, or a plain number that this package does not know
    name: the code's name in C, for example "ZERO_E_TIMEOUT"
    text: what was given, what was expected and, for a group, the rank and the operation
    """

    def __init__(self, code: int, name: str, text: str):
        super().__init__(code, name, text)
        self.code = Status(code) if code in Status.__members__.values() else code
        self.name = name
        self.text = text

    def __str__(self):
        return f"{self.name}: {self.text}"


# What a call raises that did nothing. Anything else that comes out of one, such as KeyboardInterrupt, was seen behind it: the call stands.
REFUSED = (Error, TypeError, ValueError, OverflowError, BufferError)
