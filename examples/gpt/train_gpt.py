"""A small GPT in NumPy, trained on the bytes of a file by ranks that are threads of this program; sharded by libzero.
usage: train_gpt.py FILE [STEPS [RANKS [STAGE]]]      PYTHONPATH names libzero's package (bindings/python/README.md)"""
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each rank brings its own thread
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from libzero import Config, Group, Optimizer, Source

STEPS, RANKS, STAGE = (int(given or default) for given, default in zip((sys.argv[2:] + [""] * 3)[:3], (100, 2, 3)))
BLOCKS, HEADS, WIDTH, TIME, ROWS = 2, 4, 64, 64, 4
TEXT = np.fromfile(sys.argv[1], np.uint8).astype(np.int64) if len(sys.argv) > 1 else sys.exit(__doc__)

# A layer takes x, and gives y and the way back: from the gradient of y to that of x. On the way it gives its own gradients to libzero.
def chain(*layers):
    def run(x):
        backs = []
        for layer in layers:
            x, back = layer(x)
            backs.insert(0, back)
        return x, lambda d: [d := back(d) for back in backs][-1]
    return run

def residual(*layers):
    def run(x):
        y, back = chain(*layers)(x)
        return x + y, lambda d: d + back(d)
    return run

def linear(o, name, inputs, outputs):
    w, b = o.add_param(f"{name}.weight", (inputs, outputs)), o.add_param(f"{name}.bias", (outputs,))
    def run(x):
        def back(d):
            o.grad_ready(b, d.sum((0, 1)))
            o.grad_ready(w, np.tensordot(x, d, ((0, 1), (0, 1))))
            with o.param(w) as weight: return d @ weight.T
        with o.param(w) as weight, o.param(b) as bias: return x @ weight + bias, back
    return run

def norm(x):
    scale = 1 / np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5))
    y = (x - x.mean(-1, keepdims=True)) * scale
    return y, lambda d: scale * (d - d.mean(-1, keepdims=True) - y * (d * y).mean(-1, keepdims=True))

def relu(x): return np.maximum(x, 0), lambda d: d * (x > 0)

def attention(x):
    q, k, v = x.reshape(ROWS, TIME, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
    root = np.float32(q.shape[-1] ** -0.5)
    p = np.exp(np.minimum(q @ k.swapaxes(-1, -2) * root, 60)) * np.tri(TIME, dtype=np.float32)
    p /= p.sum(-1, keepdims=True)
    def back(d):
        d = d.reshape(ROWS, TIME, HEADS, -1).swapaxes(1, 2)
        s = d @ v.swapaxes(-1, -2)
        s = p * (s - (s * p).sum(-1, keepdims=True)) * root
        return np.stack((s @ k, s.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ d)).transpose(1, 3, 0, 2, 4).reshape(x.shape)
    return (p @ v).swapaxes(1, 2).reshape(ROWS, TIME, WIDTH), back

def train(rank):
    with Group.local(f"gpt.{os.getpid()}", rank, RANKS) as group, Optimizer(group, Config(stage=STAGE, lr=3e-3, bucket_bytes=65536)) as o:
        table = o.add_param("wte", (256 + TIME, WIDTH))  # bytes, then places
        def block(i): return (residual(norm, linear(o, f"{i}.in", WIDTH, 3 * WIDTH), attention, linear(o, f"{i}.out", WIDTH, WIDTH)),
                              residual(norm, linear(o, f"{i}.fc", WIDTH, 4 * WIDTH), relu, linear(o, f"{i}.proj", 4 * WIDTH, WIDTH)))
        model = chain(*(layer for i in range(BLOCKS) for layer in block(i)), norm, linear(o, "head", WIDTH, 256))
        o.seal()
        for number, param in enumerate(o.params):
            o.init_param(number, "normal", 0, 0.05 if len(param.shape) > 1 else 0, seed=1)
        o.begin(Source.SHARDS)
        for step in range(STEPS):
            places = np.random.default_rng((step, rank)).integers(0, len(TEXT) - TIME, ROWS)[:, None] + np.arange(TIME)
            ids, targets = TEXT[places], TEXT[places + 1][..., None]
            with o.param(table) as rows: x = rows[ids] + rows[256:]
            logits, back = model(x)
            p = np.exp(logits - logits.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            loss = group.all_reduce(-np.log(np.take_along_axis(p, targets, -1)).mean(keepdims=True).ravel()) / RANKS
            np.put_along_axis(p, targets, np.take_along_axis(p, targets, -1) - 1, -1)
            d, gradient = back(p / targets.size), np.zeros((256 + TIME, WIDTH), np.float32)
            np.add.at(gradient, ids, d)
            gradient[256:] = d.sum(0)
            o.grad_ready(table, gradient)
            o.step()
            if rank == 0 and (step + 1) % 10 == 0: print(f"step {step + 1:4}  loss {loss[0]:.4f}", flush=True)

with ThreadPoolExecutor(RANKS) as threads:
    list(threads.map(train, range(RANKS)))
