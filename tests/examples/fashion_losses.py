#!/usr/bin/env python3
"""Trains the model of examples/train_fashion with PyTorch for 200 steps and writes fashion_losses.txt beside this file.

It draws the same first values and batches from the same integers (examples/random.h). Written are the float32 loss of each step
and how far train_fashion may lie from it.

How far. A float32 run differs from the exact one by its rounding, and rounding depends on the order in which sums are taken, which no two
programs share. Training amplifies these differences, so the spread is measured: float32 runs that differ from each other only in that order
are compared with a float64 run. In some the samples of a batch are permuted, which leaves their mean as it is; in some the gradient is also
added up sample by sample, as train_fashion does. Let e(s) be the largest distance |loss32 - loss64| of any of these runs at any step up to
s, and no less than one unit in the last place of the float32 loss. PyTorch's own run lies within e(s) of the float64 run by construction.
train_fashion is one more float32 run; what the measured ones do not show is that it adds the 784 pixels of an image in one chain where
PyTorch's kernels add them in 16 lanes: the error of a chain of n additions grows like sqrt(n), of n / 16 additions in each of 16 lanes and
then those like sqrt(n / 16 + 16), and sqrt(784) / sqrt(784 / 16 + 16) < 4. So its distance from the float64 run is taken as up to 4 e(s),
and |loss(train_fashion) - loss(PyTorch)| <= (4 + 1) e(s).

The learning rate is low, because at the example's own rate AdamW doubles a difference every few steps and nothing could be told apart.
"""
import gzip
import os
import platform
import sys

import numpy
import torch

SEED, BATCH, RATE, EPOCHS, STEPS, CHAIN = 1, 192, 0.0003, 8, 200, 4
WHOLE_RUNS, SINGLE_RUNS = 6, 1
DATA = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/datasets/fashion-mnist"
SHAPES = [(3, 3, 1, 8), (8,), (3, 3, 8, 16), (16,), (784, 64), (64,), (64, 10), (10,)]
GAMMA, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def stream(seed, number):
    return mix((((mix((seed + GAMMA) & MASK) + number) & MASK) + GAMMA) & MASK)


def draws(state, count):
    for _ in range(count):
        state = (state + GAMMA) & MASK
        yield mix(state)


def first_values():
    """Tensors as train_fashion stores them: [kernel row][kernel column][input][output], [input][output]."""
    tensors = []
    for number, shape in enumerate(SHAPES):
        count = int(numpy.prod(shape))
        values = numpy.zeros(count, numpy.float32)
        if len(shape) > 1:
            bound = numpy.float32(numpy.sqrt(6.0 / (count // shape[-1])))
            raw = numpy.array([z >> 40 for z in draws(stream(SEED, number), count)], numpy.float32)
            values = (raw / numpy.float32(8388608) - numpy.float32(1)) * bound
        tensors.append(values.reshape(shape))
    return tensors


def epoch_order(count, epoch):
    order = list(range(count))
    state = draws(stream(SEED, (1 << 32) + epoch), count - 1)
    for i in range(count - 1, 0, -1):
        j = next(state) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def read_idx(name, header):
    with gzip.open(os.path.join(DATA, name + ".gz")) as file:
        return numpy.frombuffer(file.read(), numpy.uint8)[header:].copy()


def to_torch(values, dtype):
    """Convolutions want [output][input][row][column]; dense layers are used as they are."""
    tensor = torch.from_numpy(values).to(dtype)
    tensor = tensor.permute(3, 2, 0, 1).contiguous() if values.ndim == 4 else tensor
    return tensor.requires_grad_()


def forward(p, x):
    x = torch.relu(torch.max_pool2d(torch.conv2d(x, p[0], p[1], padding=1), 2))
    x = torch.relu(torch.max_pool2d(torch.conv2d(x, p[2], p[3], padding=1), 2))
    x = x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)
    return torch.relu(x @ p[4] + p[5]) @ p[6] + p[7]


def step_loss(params, x, y, piece):
    """The mean loss of a batch; gradients are added up over pieces of it."""
    total = 0.0
    for first in range(0, len(x), piece):
        part = slice(first, first + piece)
        loss = torch.nn.functional.cross_entropy(forward(params, x[part]), y[part], reduction="sum") / len(x)
        loss.backward()
        total += loss.item()
    return total


def train(images, labels, order, dtype, shuffle=0, piece=BATCH):
    """Losses of STEPS steps; shuffle (of samples within their batch) and piece change only how sums are rounded."""
    params = [to_torch(values, dtype) for values in first_values()]
    optimizer = torch.optim.AdamW(params, lr=RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    in_all = EPOCHS * ((len(order) + BATCH - 1) // BATCH)
    random = numpy.random.default_rng(shuffle)
    losses = []
    for step in range(STEPS):
        batch = numpy.array(order[step * BATCH : (step + 1) * BATCH])
        batch = random.permutation(batch) if shuffle else batch
        x = torch.from_numpy(images[batch]).reshape(-1, 1, 28, 28).to(dtype) / 256
        optimizer.param_groups[0]["lr"] = RATE * (1.0 - step / in_all)
        optimizer.zero_grad()
        losses.append(step_loss(params, x, torch.from_numpy(labels[batch]).long(), piece))
        optimizer.step()
    return numpy.array(losses, numpy.float64)


def cpu_name():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def main():
    torch.set_num_threads(1)
    images = read_idx("train-images-idx3-ubyte", 16).reshape(-1, 784)
    labels = read_idx("train-labels-idx1-ubyte", 8)
    order = epoch_order(len(images), 0)
    exact = train(images, labels, order, torch.float64)
    runs = [train(images, labels, order, torch.float32, shuffle) for shuffle in range(WHOLE_RUNS)]
    runs += [train(images, labels, order, torch.float32, 100 + shuffle, 1) for shuffle in range(SINGLE_RUNS)]
    spread = numpy.max([numpy.abs(run - exact) for run in runs], axis=0)
    spread = numpy.maximum(spread, numpy.spacing(exact.astype(numpy.float32)))
    bound = (CHAIN + 1) * numpy.maximum.accumulate(spread)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fashion_losses.txt")
    with open(path, "w", encoding="ascii") as file:
        file.write("# Losses of the first %d steps of examples/train_fashion by PyTorch, made by fashion_losses.py\n" % STEPS)
        file.write("# torch %s, %s, capability %s\n" % (torch.__version__, cpu_name(), torch.backends.cpu.get_cpu_capability()))
        file.write("# seed %d, batch %d, lr %g falling to 0 over %d epochs of %d images\n" % (SEED, BATCH, RATE, EPOCHS, len(order)))
        file.write("# float32 loss, tolerance, float64 loss\n")
        for row in zip(runs[0], bound, exact):
            file.write("%.9g %.3g %.17g\n" % row)


main()
