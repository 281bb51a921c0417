"""Saves in the background: steps go on while files are written."""

from __future__ import annotations

from .error import Error
from .generated import CheckpointResult
from .handle import Owner
from .library import zero


class Saving(Owner):
    """A save that save_async() began. It holds the state at the time of that call.

    A `with` block waits for the save at its end and raises its error. close(), or the end of the object, waits too, but raises nothing.
    One thread at a time uses the object. The optimizer, the checkpoint and the group may be closed meanwhile.
    """

    def __init__(self, request: object, result: CheckpointResult | None = None):
        super().__init__(request)
        self.result = result  # of Checkpoint.save_async(), filled at the end of the save; Optimizer.save_async() has none

    def done(self) -> bool:
        """Whether the save has ended. Never waits."""
        try:
            return bool(zero.zero_request_test(self.native))
        except Error:
            if self.closed:
                raise
            return True  # wait() raises it

    def wait(self) -> CheckpointResult | None:
        """Waits until all ranks have committed the save, and returns `result`."""
        zero.zero_request_wait(self.native)
        return self.result

    def __exit__(self, kind, error, traceback):
        try:
            if kind is None and not self.closed:
                self.wait()
        finally:
            self.close()
