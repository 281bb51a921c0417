"""The parameters `w` and `b` that optimizer scenarios train, on one rank."""

import numpy as np
from libzero import Config, Dtype, Optimizer, Source, numpy_dtype

from values import upper_halves, values
from words import hash_of

W, B = 0, 1
COUNTS = (600, 7)


class Model:
    """An optimizer with both parameters, not sealed."""

    def __init__(self, group, dtype=Dtype.F32, stage=1, **keys):
        self.rank = group.rank
        self.dtype = dtype
        self.result = None  # of the last step
        self.skipped = None  # result of a step that was meant to be skipped
        with Config(stage=stage, bucket_bytes=1024, **keys) as config:
            self.optimizer = Optimizer(group, config)
        self.optimizer.add_param("w", (20, 30), dtype)
        self.optimizer.add_param("b", (7,), dtype)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.optimizer.close()

    def values(self, param, series):
        """v(i, series) with the parameter's shape and type."""
        found = values(COUNTS[param], series)
        return (upper_halves(found) if self.dtype == Dtype.BF16 else found).reshape(self.optimizer.params[param].shape)

    def gradient(self, param, t):
        return self.values(param, 10 * t + 3 * param + self.rank)

    def begin(self):
        """First values of rank 0."""
        for param in (W, B) if self.rank == 0 else ():
            with self.optimizer.param(param) as data:
                data[:] = self.values(param, param)
        self.optimizer.begin(Source.ROOT)

    def give_gradients(self, t):
        for param in (B, W):
            data, accumulate = self.optimizer.grad_acquire(param)
            if accumulate:
                data += self.gradient(param, t)
            else:
                data[:] = self.gradient(param, t)
            self.optimizer.grad_ready(param)

    def step(self, t):
        """A whole step, gradients in the optimizer's memory."""
        self.give_gradients(t)
        self.end_step()

    def end_step(self):
        self.result = self.optimizer.step()

    def say_result(self):
        """The hash of both parameters, read by rank 0."""
        kind = numpy_dtype(self.dtype)
        outs = [self.optimizer.read(param, np.empty(COUNTS[param], kind) if self.rank == 0 else None) for param in (W, B)]
        return " ".join(map(hash_of, outs)) if self.rank == 0 else None
