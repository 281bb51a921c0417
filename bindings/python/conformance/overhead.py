"""Nanoseconds of a call from Python, to be compared with C's (bindings/conformance/README.md)."""

import time

import libzero
import numpy as np
from libzero import Config, Group, Optimizer, Source

ROUNDS = 5
PARAMS = 1000
ELEMENTS = 16


def mean_ns(call, calls):
    start = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - start) / calls


def measure(name, call, calls):
    """The least of the rounds' means: what else the machine does only adds to one."""
    print(f"{name}: {min(mean_ns(call, calls) for _ in range(ROUNDS)):.1f}")


def main():
    with Group.local(None, 0, 1) as group, Config(overlap=0) as config, Optimizer(group, config) as optimizer:
        for i in range(PARAMS):
            optimizer.add_param(f"p{i}", (ELEMENTS,))
        optimizer.seal()
        optimizer.begin(Source.LOCAL)
        gradient = np.zeros(ELEMENTS, np.float32)

        def step():
            for param in range(PARAMS):
                optimizer.grad_ready(param, gradient)
            optimizer.step()

        gradients = optimizer.gradients({param: gradient for param in range(PARAMS)})

        def bulk_step():
            gradients.ready()
            optimizer.step()

        measure("empty-call", libzero.abi_version, 100000)
        measure("group-size", lambda: group.size, 100000)
        measure("step-1000", step, 20)
        measure("step-1000-bulk", bulk_step, 100)


main()
