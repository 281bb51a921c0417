"""Small modules of torch, and what plain torch makes of them: the reference of libzero.torch."""

import copy
import importlib
import unittest

import numpy as np
import ranks

try:
    torch = importlib.import_module("torch")
except ImportError:
    raise unittest.SkipTest("no torch is installed") from None
from libzero.torch import ShardedOptimizer  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

torch.set_num_threads(1)
STAGES = (0, 1, 2, 3)


class Transformer(nn.Module):
    """With tied weights, a parameter of its own, and a module that uses parameters of the one inside it."""

    def __init__(self, words=32, width=16, length=8):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 2, 32, 0.0, batch_first=True) for _ in range(2))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight
        self.wrap = lambda layer, x: layer(x)

    def forward(self, x):
        x = self.words(x) + self.places
        for layer in self.layers:
            x = self.wrap(layer, x)
        return self.head(x)


class Adapted(nn.Module):
    """A linear layer whose base is frozen, with a trainable correction of low rank (LoRA)."""

    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(2, base.in_features) / 4)
        self.b = nn.Parameter(torch.zeros(base.out_features, 2))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


def network():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(inplace=True), nn.LayerNorm(16), nn.Linear(16, 3))


def words(rank, step):
    return torch.tensor(np.random.default_rng((rank, step)).integers(0, 32, (4, 8)))


def word_loss(model, rank, step):
    x = words(rank, step)
    return functional.cross_entropy(model(x).flatten(0, 1), x.roll(1, 1).flatten())


def point_loss(model, rank, step):
    x = torch.tensor(np.random.default_rng((rank, step)).normal(size=(5, 6)), dtype=torch.float32)
    return model(x.to(next(model.parameters()).dtype)).float().square().mean()


def close(a, b, tolerance=1e-5):
    return all(torch.allclose(x.float(), y.float(), rtol=0, atol=tolerance) for x, y in zip(a, b))


def made(make, seed=0):
    """The same module for all ranks, which are threads with one generator."""
    torch.manual_seed(seed)
    return make()


def plain(model, loss, steps, size=2, optimizer=None, each=None):
    """Losses of plain torch on the mean of all ranks' losses."""
    optimizer = optimizer or torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        values = [loss(model, rank, step) for rank in range(size)]
        (sum(values) / size).backward()
        if each is not None:
            each(optimizer, model)
        optimizer.step()
        losses.append([value.item() for value in values])
    return losses


def sharded(model, loss, steps, stage, size=2, each=None, then=None, backward=None, **keys):
    """Per rank the losses, the whole parameters at the end, and what then(optimizer, module) returns."""

    def body(group):
        mine = copy.deepcopy(model)
        optimizer = ShardedOptimizer(mine, stage=stage, group=group, **{"lr": 1e-2, **keys})
        losses = []
        for step in range(steps):
            optimizer.zero_grad()
            value = loss(mine, group.rank, step)
            (backward or torch.Tensor.backward)(value)
            if each is not None:
                each(optimizer, mine)
            optimizer.step()
            losses.append(value.item())
        with optimizer.gathered():
            values = [p.detach().clone() for p in mine.parameters()]
        found = then(optimizer, mine) if then is not None else None
        optimizer.close()
        return losses, values, found

    return ranks.run(size, body)
