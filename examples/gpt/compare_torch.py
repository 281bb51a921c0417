"""The GPT of train_gpt in PyTorch: the same first values, from the raw file that the program writes, and the same batches, from the same
numbers. Compares gradients of the first step, losses, validation loss, speed and memory with those of train_gpt: for one process, and over
gloo for DistributedDataParallel, for ZeroRedundancyOptimizer and for FSDP2. Each rank of either has one thread.
usage: compare_torch.py TRAIN_GPT [--model tiny|small|gpt2] [--steps N] [--ranks N] [--batch N] [--context N] [--text PATH]
                        [--products blas|plain] [--validation-batches N] [--runs NAMES] [--repeats N]
The options are those of train_gpt. NAMES are of single, ddp, zero, fsdp2, powersgd, with commas; default: all but the last, whose loss is
its own. With repeats all runs take turns, and speeds are medians. It needs PyTorch 2.6 or newer (powersgd also NumPy):
  python3 -m venv build/peers && build/peers/bin/pip install torch
  build/peers/bin/python examples/gpt/compare_torch.py build/release/examples/train_gpt
It fails when a gradient of the first step, one of the first 20 losses or the validation loss differs by more than it may."""

import argparse
import csv
import gzip
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

MODELS = {  # blocks, heads, width, vocabulary, places, context: as examples/gpt/shape.c
    "tiny": (4, 4, 256, 256, 128, 128),
    "small": (6, 6, 384, 256, 256, 256),
    "gpt2": (12, 12, 768, 50257, 1024, 256),
}
RUNS = {  # name, and the stage of train_gpt that shards as much
    "single": ("PyTorch", 0),
    "ddp": ("PyTorch DDP", 0),
    "zero": ("PyTorch DDP, ZeroRedundancyOptimizer", 1),
    "fsdp2": ("PyTorch FSDP2", 3),
    "powersgd": ("PyTorch DDP, PowerSGD hook, rank 4", 0),
}
LOSSY = "powersgd"
MASK = (1 << 64) - 1
LR, WARM_UP, DECAY, CLIP, SEED = 1e-3, 40, 0.1, 1.0, 1


def random_next(state):
    """splitmix64, as examples/random.h."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return state, z ^ (z >> 31)


def random_stream(seed, stream):
    return random_next((random_next(seed)[1] + stream) & MASK)[1]


class Text:
    """Bytes of a file or a folder, and places in it: as examples/gpt/text.c."""

    def __init__(self, path):
        path = pathlib.Path(path)
        ends = (".txt", ".md", ".txt.gz", ".md.gz")
        files = sorted((f for f in path.iterdir() if f.name.endswith(ends)), key=lambda f: f.name.encode()) if path.is_dir() else [path]
        raw = [file.read_bytes() for file in files]
        whole = b"".join(gzip.decompress(part) if part[:2] == b"\x1f\x8b" else part for part in raw)
        self.bytes = torch.frombuffer(bytearray(whole), dtype=torch.uint8)
        self.training = len(self.bytes) - len(self.bytes) // 10

    def copy(self, places, length):
        rows = torch.stack([self.bytes[place : place + length + 1] for place in places]).long()
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def batch(self, step, rows, batch, length):
        draw = [random_next(random_stream(SEED, step * batch + row))[1] % (self.training - length) for row in rows]
        return self.copy(draw, length)

    def validation(self, rows, of, length):
        room = len(self.bytes) - self.training - length
        return self.copy([self.training + int(row / of * room) for row in rows], length)


def read_floats(path):
    return torch.frombuffer(bytearray(pathlib.Path(path).read_bytes()), dtype=torch.float32)


class Affine(nn.Module):
    """Conv1D of Hugging Face's GPT-2, or with one extent a layer norm: weight and bias."""

    def __init__(self, *extents):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(extents))
        self.bias = nn.Parameter(torch.zeros(extents[-1]))

    def forward(self, x):
        if self.weight.ndim == 1:
            return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = Affine(width)
        self.attn = nn.ModuleDict({"c_attn": Affine(width, 3 * width), "c_proj": Affine(width, width)})
        self.ln_2 = Affine(width)
        self.mlp = nn.ModuleDict({"c_fc": Affine(width, 4 * width), "c_proj": Affine(4 * width, width)})

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (part.view(rows, length, self.heads, -1).transpose(1, 2) for part in self.attn["c_attn"](self.ln_1(x)).split(width, 2))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(rows, length, width)
        x = x + self.attn["c_proj"](seen)
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, name):
        super().__init__()
        blocks, heads, width, vocabulary, places, _ = MODELS[name]
        self.wte = nn.Parameter(torch.zeros(vocabulary, width))
        self.wpe = nn.Parameter(torch.zeros(places, width))
        self.h = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.ln_f = Affine(width)

    def forward(self, ids, targets):
        x = self.wte[ids] + self.wpe[: ids.shape[1]]
        for block in self.h:
            x = block(x)
        return F.cross_entropy((self.ln_f(x) @ self.wte.T).flatten(0, 1), targets.flatten())

    def load(self, path):
        """In the order of registration, which is train_gpt's."""
        values = read_floats(path)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(values[: parameter.numel()].view(parameter.shape))
                values = values[parameter.numel() :]
        assert len(values) == 0
        return self


def rate(step, steps):
    if step < WARM_UP:
        return LR * (step + 1) / WARM_UP
    return LR * (0.1 + 0.45 * (1 + math.cos(math.pi * (step - WARM_UP) / (steps - WARM_UP) if steps > WARM_UP else math.pi)))


def groups(model):
    named = list(model.parameters())
    return [
        {"params": [p for p in named if p.ndim > 1], "weight_decay": DECAY},
        {"params": [p for p in named if p.ndim == 1], "weight_decay": 0.0},
    ]


def make(kind, options, first):
    """Model and optimizer of a run."""
    model = Gpt(options.model).load(first)
    settings = {"lr": LR, "betas": (0.9, 0.99), "eps": 1e-8}
    if kind == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        for block in model.h:
            fully_shard(block)
        fully_shard(model)
    elif kind in ("ddp", "zero"):
        model = nn.parallel.DistributedDataParallel(model)
    elif kind == LOSSY:
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1024)  # over gloo, the hook needs one bucket
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    if kind == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return model, ZeroRedundancyOptimizer(groups(model), torch.optim.AdamW, **settings)
    return model, torch.optim.AdamW(groups(model), fused=True, **settings)


def local_nbytes(tensor):
    tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return tensor.numel() * tensor.element_size()


def kept_nbytes(model, optimizer):
    """Parameters, gradients and states of this rank."""
    total = sum(local_nbytes(p) + (local_nbytes(p.grad) if p.grad is not None else 0) for p in model.parameters())
    inner = getattr(optimizer, "optim", optimizer)
    return total + sum(local_nbytes(t) for state in inner.state.values() for t in state.values() if torch.is_tensor(t))


def mean(value, size):
    if size > 1:
        dist.all_reduce(value)
    return value.item() / size


def train(rank, kind, options, size, first, out):
    """One rank of one run: its losses and figures go to a file."""
    torch.set_num_threads(1)
    if size > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
        dist.init_process_group("gloo", rank=rank, world_size=size)
    text = Text(options.text)
    each = options.batch // size
    model, optimizer = make(kind, options, first)
    losses, begun = [], 0
    for step in range(options.steps):
        begun = begun or (time.monotonic() if step == 1 else 0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step, options.steps)
        loss = model(*text.batch(step, range(rank * each, (rank + 1) * each), options.batch, options.context))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        kept = kept_nbytes(model, optimizer)
        optimizer.zero_grad(set_to_none=True)
        losses.append(mean(loss.detach().double(), size))
    taken = time.monotonic() - begun
    rows = options.validation_batches * options.batch
    with torch.no_grad():
        parts = [model(*text.validation(range(at, at + each), rows, options.context)).double() for at in range(rank * each, rows, options.batch)]
    found = {
        "losses": losses,
        "validation": mean(torch.stack(parts).mean(), size),
        "kept": kept,
        "tokens_per_second": (options.steps - 1) * options.batch * options.context / taken if options.steps > 1 else 0,
    }
    if rank == 0:
        pathlib.Path(out).write_text(json.dumps(found))
    if size > 1:
        dist.destroy_process_group()


def run_torch(kind, options, size, folder):
    """In processes of their own; an error of PyTorch's is the result."""
    out = folder / f"{kind}.json"
    options.port = 29000 + os.getpid() % 1000
    command = [sys.executable, __file__, "--rank", json.dumps([kind, vars(options), size, str(folder / "first"), str(out)])]
    ranks = [subprocess.Popen([*command, str(rank)], stderr=subprocess.PIPE, text=True) for rank in range(size)]
    errors = [rank.communicate()[1] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        last = [error.strip().splitlines()[-1] for error in errors if error.strip()]
        return {"error": last[0] if last else f"ranks ended with {', '.join(str(rank.returncode) for rank in ranks)}"}
    return json.loads(out.read_text())


def run_c(options, size, stage, folder):
    name = folder / f"zero{stage}.{size}"
    command = [options.program, "--quiet", "--ranks", size, "--stage", stage, "--mode", "processes", "--csv", f"{name}.csv"]
    command += ["--report-file", f"{name}.report", "--write-first", folder / "first", "--write-gradients", folder / "gradients"]
    for option in ("model", "steps", "batch", "context", "text", "products", "validation_batches"):
        command += [f"--{option.replace('_', '-')}", getattr(options, option)]
    if subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL).returncode:
        sys.exit("train_gpt failed with the error above")
    with open(f"{name}.csv", newline="") as file:
        losses = [float(row[2]) for row in csv.reader(file) if row[0] == "loss"]
    report = dict(line.split("=", 1) for line in pathlib.Path(f"{name}.report").read_text().splitlines())
    return {
        "losses": losses,
        "validation": float(report["validation"]),
        "kept": int(report["memory.total.now"]),
        "tokens_per_second": float(report["tokens_per_second"]),
    }


def compare_gradients(options, folder):
    """Of the first step, with PyTorch's in float64: each tensor's norm of the difference over its norm, or over the global one where the
    true gradient is zero, as it is of key biases."""
    torch.manual_seed(0)
    model = Gpt(options.model).load(folder / "first").double()
    model(*Text(options.text).batch(0, range(options.batch), options.batch, options.context)).backward()
    mine = read_floats(folder / "gradients").double()
    whole = math.sqrt(sum(p.grad.square().sum().item() for p in model.parameters()))
    worst, worst_zero = (0, ""), (0, "")
    for name, parameter in model.named_parameters():
        found = mine[: parameter.numel()].view(parameter.shape)
        mine = mine[parameter.numel() :]
        parts = [("", found, parameter.grad)]
        if name.endswith("c_attn.bias"):
            parts = [(f" [{what}]", a, b) for what, a, b in zip(("query", "key", "value"), found.chunk(3), parameter.grad.chunk(3))]
        for what, a, b in parts:
            difference, norm = (a - b).norm().item(), b.norm().item()
            if norm < 1e-12 * whole:
                worst_zero = max(worst_zero, (difference / whole, name + what))
            else:
                worst = max(worst, (difference / norm, name + what))
    print(f"gradients of step 1: largest relative difference {worst[0]:.2g} ({worst[1]}); where the true one is zero, {worst_zero[0]:.2g} of the norm of all")
    return worst[0] <= 1e-5 and worst_zero[0] <= 1e-7


def print_row(name, size, result, expected):
    """Whether the run ended, with the losses expected."""
    if "error" in result:
        print(f"{name:37} {size:5} | {result['error'][:110]}")
        return False
    first = max(abs(a - b) for a, b in zip(result["losses"][:20], expected["losses"][:20]))
    last = abs(result["validation"] - expected["validation"])
    print(
        f"{name:37} {size:5} | {result['kept'] / 1e6:9.2f} | {result['tokens_per_second']:8.0f} | {result['losses'][-1]:9.5f} |"
        f" {result['validation']:10.5f} | {first:8.2g} {last:10.2g}"
    )
    return first <= 1e-4 and last <= 0.02


def rows_of(options, folder):
    """By name and ranks: what makes a run. The first is what the others are compared with."""
    rows = {("train_gpt", 1): lambda: run_c(options, 1, 0, folder)}
    for kind in options.runs:
        name, stage = RUNS[kind]
        size = 1 if kind == "single" else options.ranks
        if kind != "single":
            rows[f"train_gpt, stage {stage}", size] = lambda size=size, stage=stage: run_c(options, size, stage, folder)
        rows[name, size] = lambda kind=kind, size=size: run_torch(kind, options, size, folder)
    return rows


def compare_runs(options, folder):
    print(f"{'run':37} {'ranks':5} | {'MB/rank':>9} | {'tokens/s':>8} | {'last loss':>9} | {'validation':>10} | difference: first 20 losses, validation")
    rows = rows_of(options, folder)
    results = {row: [] for row in rows}
    good = True
    for repeat in range(options.repeats):
        for row, run in rows.items():
            results[row].append(run())
            if repeat + 1 < options.repeats:
                continue
            found = next((run for run in results[row] if "error" in run), results[row][0])
            found["tokens_per_second"] = statistics.median(run.get("tokens_per_second", 0) for run in results[row])
            agrees = print_row(*row, found, results["train_gpt", 1][0])
            good &= agrees or (row[0] == RUNS[LOSSY][0] and "error" not in found)
            sys.stdout.flush()
    return good


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("program")
    parser.add_argument("--model", choices=MODELS, default="tiny")
    parser.add_argument("--text", default="/usr/share/doc/anarchism/markdown")
    parser.add_argument("--products", choices=("blas", "plain"), default="blas")
    parser.add_argument("--runs", type=lambda names: names.split(","), default=[run for run in RUNS if run != LOSSY])
    for name, default in (("steps", 20), ("ranks", 2), ("batch", 8), ("context", 0), ("validation-batches", 8), ("repeats", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    options.context = options.context or MODELS[options.model][5]
    if unknown := set(options.runs) - set(RUNS):
        parser.error(f"--runs {','.join(sorted(unknown))}: expected some of {','.join(RUNS)}")
    counts = (options.steps, options.ranks, options.batch, options.context, options.validation_batches, options.repeats)
    if min(counts) < 1 or options.batch % options.ranks:
        parser.error("numbers are at least 1, and --batch is a multiple of --ranks")
    return options


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as name:
        good = compare_runs(options, pathlib.Path(name))
        good &= compare_gradients(options, pathlib.Path(name))
    sys.exit(0 if good else "the runs differ by more than they may")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        told, number = json.loads(sys.argv[2]), int(sys.argv[3])
        train(number, told[0], argparse.Namespace(**told[1]), told[2], told[3], told[4])
    else:
        main()
