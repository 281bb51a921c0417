"""Runs a program of examples/worked, and compares each number that it prints with float64 NumPy on the same inputs: 1e-5 of it.
usage: worked_examples.py NAME PROGRAM [FOLDER of images]"""

import gzip
import pathlib
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy (Debian: python3-numpy)")
    sys.exit(77)

MASK = (1 << 64) - 1


def random_next(state):
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return state, z ^ (z >> 31)


def uniform(stream, count):
    """In [-1/2, 1/2), as the programs draw them with examples/random.h."""
    _, state = random_next((random_next(1)[1] + stream) & MASK)
    values = np.empty(count)
    for i in range(count):
        state, bits = random_next(state)
        values[i] = (bits >> 40) / 2**24 - 0.5
    return values


def deep_parts():
    ranks, layers, width, samples, decay = 8, 100, 8, 4, 0.01
    values = np.concatenate([uniform(part, 20 * 72) for part in range(5)]).reshape(layers, 72)
    drawn = np.concatenate([uniform(100 + rank, samples * 2 * width) for rank in range(ranks)]).reshape(-1, 2, width)
    m, v = np.zeros_like(values), np.zeros_like(values)
    for step in range(1, 101):
        w, b = values[:, :64].reshape(layers, width, width), values[:, 64:]
        xs, tanhs = [drawn[:, 0]], []
        for layer in range(layers):
            tanhs.append(np.tanh(xs[-1] @ w[layer].T + b[layer]))
            xs.append(xs[-1] + tanhs[-1] / 10)
        error = xs[-1] - drawn[:, 1]
        loss = 0.5 * (error**2).sum() / len(drawn) + 0.5 * decay * (values**2).sum()
        if step == 1 or step % 20 == 0:
            yield step, loss
        d, gradient = error / len(drawn), np.empty_like(values)
        for layer in reversed(range(layers)):
            inner = d * (1 - tanhs[layer] ** 2) / 10
            gradient[layer] = np.concatenate([(inner.T @ xs[layer]).ravel(), inner.sum(0)])
            d = d + inner @ w[layer]
        gradient += decay * values
        m += 0.1 * (gradient - m)
        v = 0.999 * v + 0.001 * gradient**2
        values = values - 0.001 / (1 - 0.9**step) * m / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)


def wide_line():
    drawn = np.concatenate([uniform(rank, 100 * 501) for rank in range(5)]).reshape(-1, 501)
    x, y, w = drawn[:, :500], drawn[:, 500], np.zeros(500)
    for step in range(1, 51):
        error = x @ w - y
        if step == 1 or step % 10 == 0:
            yield step, 0.5 * (error**2).mean(), (w**2).sum()
        w = w - x.T @ error / len(x)


def dense_images(folder):
    def read(name, head, count):
        with gzip.open(pathlib.Path(folder) / name) as file:
            return np.frombuffer(file.read(head + count)[head:], np.uint8)

    images = read("train-images-idx3-ubyte.gz", 16, 784 * 1920).reshape(-1, 784) / 256
    labels = read("train-labels-idx1-ubyte.gz", 8, 1920)
    values = [uniform(0, 784 * 256).reshape(784, 256) * 0.125, np.zeros(256), uniform(2, 2560).reshape(256, 10) * 0.25, np.zeros(10)]
    momenta = [np.zeros_like(value) for value in values]
    for step in range(15):
        x, label = images[128 * step : 128 * step + 128], labels[128 * step : 128 * step + 128]
        hidden = np.maximum(x @ values[0] + values[1], 0)
        out = hidden @ values[2] + values[3]
        chances = np.exp(out) / np.exp(out).sum(1, keepdims=True)
        yield step + 1, -np.log(chances[np.arange(128), label]).mean()
        d = (chances - np.eye(10)[label]) / 128
        inner = d @ values[2].T * (hidden > 0)
        for value, momentum, gradient in zip(values, momenta, (x.T @ inner, inner.sum(0), hidden.T @ d, d.sum(0))):
            momentum *= 0.9
            momentum += gradient
            value -= 0.01 * momentum


def main(name, program, *folder):
    if folder and not pathlib.Path(folder[0]).is_dir():
        print(f"skipped: no images in {folder[0]} (Debian: dataset-fashion-mnist)")
        return 77
    done = subprocess.run([program, *folder], stdout=subprocess.PIPE, text=True, check=True)
    found = [[float(word) for word in line.split()[1::2]] for line in done.stdout.splitlines()]
    expected = list(globals()[name](*folder))
    worst = 0
    assert len(found) == len(expected), f"{len(found)} lines, expected {len(expected)}:\n{done.stdout}"
    for got, wanted in zip(found, expected):
        assert len(got) == len(wanted) and got[0] == wanted[0], f"{got}, expected {wanted}"
        for a, b in zip(got, wanted):
            worst = max(worst, abs(a - b) / max(abs(b), 1e-300) if b else abs(a))
    print(f"{len(found)} lines; largest relative difference {worst:.2g}")
    return 0 if worst <= 1e-5 and found[0][1] > found[-1][1] else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
