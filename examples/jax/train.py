"""A classifier of points in JAX, whose gradients and optimizer states are sharded over ranks that are threads of this program.
usage: train.py [RANKS [STAGE]]      PYTHONPATH names libzero's package (bindings/python/README.md)"""
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
from libzero import Config, Group, Optimizer, Source

RANKS, STAGE = (int(given or default) for given, default in zip((sys.argv[1:] + [""] * 2)[:2], (2, 3)))
SHAPES = {"in.weight": (2, 64), "in.bias": (64,), "out.weight": (64, 3), "out.bias": (3,)}

@jax.jit
@jax.value_and_grad
def loss_and_gradients(weights, x, y):
    hidden = jnp.tanh(x @ weights["in.weight"] + weights["in.bias"])
    logits = hidden @ weights["out.weight"] + weights["out.bias"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

def train(rank):
    with Group.local(f"jax.{os.getpid()}", rank, RANKS) as group, Optimizer(group, Config(stage=STAGE, lr=0.02)) as optimizer:
        numbers = {name: optimizer.add_param(name, shape) for name, shape in SHAPES.items()}
        optimizer.seal()
        for name, number in numbers.items():
            optimizer.init_param(number, "normal", 0, 0.5 if len(SHAPES[name]) > 1 else 0, seed=1)
        optimizer.begin(Source.SHARDS)
        for step in range(20):
            x = np.random.default_rng((step, rank)).normal(size=(64, 2)).astype(np.float32)
            y = (np.arctan2(x[:, 1], x[:, 0]) // 2.1 + 1).clip(0, 2).astype(np.int32)
            # The memory of the library is lent, so that JAX has a copy of its own.
            weights = {name: jnp.array(optimizer.param_acquire(number)) for name, number in numbers.items()}
            jax.block_until_ready(weights)
            for number in numbers.values():
                optimizer.param_release(number)
            loss, gradients = loss_and_gradients(weights, x, y)
            for name in reversed(SHAPES):
                optimizer.grad_ready(numbers[name], gradients[name])  # read where JAX has it
            optimizer.step()
            mean = group.all_reduce(np.array([loss])) / RANKS
            if rank == 0:
                print(f"step {step + 1:2}  loss {mean[0]:.4f}", flush=True)

with ThreadPoolExecutor(RANKS) as threads:
    list(threads.map(train, range(RANKS)))
