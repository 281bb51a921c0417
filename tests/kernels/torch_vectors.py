#!/usr/bin/env python3
"""Writes torch_vectors.h: what PyTorch's CPU optimizers compute, for torch_vectors_test.cpp.

usage: python3 torch_vectors.py > torch_vectors.h        (needs torch and numpy)

Inputs come from a generator that the test repeats, so only hashes of the outputs are stored, with a few values in the open. The for-loop
and the foreach implementation must agree; so must the fused one for the rows that say so.

libzero's square roots are correctly rounded. PyTorch's are not everywhere: builds for x86-64 from PyPI
take them from Intel MKL (but for the fused implementations), whose code depends on the processor. With
torch 2.15.0, roots that are off by one unit in the last place:
  0.6 %   MKL's AVX-512 code, on an Intel processor
  none    MKL's AVX2 code, on that processor: MKL_CBWR=AVX2, which this script sets
  17 %    MKL's code for all processors: MKL_CBWR=COMPATIBLE; about 20 % on an AMD processor without it
Builds without MKL round correctly; Debian's libtorch 1.13 was tried. The script ends where roots are off.
"""
import inspect
import os
import sys

os.environ["MKL_CBWR"] = "AVX2"

import numpy as np
import torch

COUNT = 1003
STEPS = (1, 2, 10)
SHOWN = 8

ADAM_SETS = [
    dict(lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01),
    dict(lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0),
    dict(lr=3e-4, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1),
    dict(lr=0.1, beta1=0.5, beta2=0.9, epsilon=1e-3, weight_decay=0.3),
    dict(lr=1e-2, beta1=0.3, beta2=0.99, epsilon=1e-6, weight_decay=0.02),
    dict(lr=1e-2, beta1=0.0, beta2=0.99, epsilon=1e-6, weight_decay=0.0),
    dict(lr=1e-2, beta1=0.51, beta2=0.0, epsilon=1e-10, weight_decay=0.05),
    dict(lr=7e-3, beta1=0.99, beta2=0.4, epsilon=0.0, weight_decay=1.0),
]
SGD_SETS = [
    dict(lr=0.1, momentum=0.0, dampening=0.0, nesterov=0, weight_decay=0.0),
    dict(lr=0.1, momentum=0.0, dampening=0.0, nesterov=0, weight_decay=0.01),
    dict(lr=0.03, momentum=0.9, dampening=0.0, nesterov=0, weight_decay=0.0),
    dict(lr=0.03, momentum=0.9, dampening=0.0, nesterov=0, weight_decay=5e-4),
    dict(lr=0.03, momentum=0.9, dampening=0.1, nesterov=0, weight_decay=5e-4),
    dict(lr=0.01, momentum=0.95, dampening=0.7, nesterov=0, weight_decay=0.0),
    dict(lr=0.01, momentum=0.9, dampening=0.0, nesterov=1, weight_decay=0.0),
    dict(lr=0.07, momentum=0.8, dampening=0.0, nesterov=1, weight_decay=0.02),
]


ADAGRAD_SETS = [
    dict(lr=1e-2, epsilon=1e-10),
    dict(lr=1e-2, epsilon=1e-10, weight_decay=0.01),
    dict(lr=0.1, epsilon=1e-6, lr_decay=0.1),
    dict(lr=0.03, epsilon=0.0, weight_decay=0.3, lr_decay=1e-3, initial_accumulator=0.5),
]
LION_SETS = [
    dict(lr=1e-4, beta1=0.9, beta2=0.99),
    dict(lr=1e-3, beta1=0.95, beta2=0.98, weight_decay=1.0),
    dict(lr=0.1, beta1=0.3, beta2=0.0, weight_decay=0.01),
]


# Compared in float64, within a derived bound: (algorithm, rows, columns, hyper-parameters).
FLOAT64_SETS = [
    ("lamb", 17, 59, dict(lr=1e-2, beta1=0.9, beta2=0.999, epsilon=1e-6, weight_decay=0.01)),
    ("lamb", 1, 300, dict(lr=3e-2, beta1=0.3, beta2=0.9, epsilon=1e-8, weight_decay=0.0)),
    ("lamb", 40, 40, dict(lr=1e-3, beta1=0.9, beta2=0.95, epsilon=1e-3, weight_decay=0.3)),
    ("muon", 16, 16, dict(lr=1e-2, momentum=0.95, nesterov=1, epsilon=1e-7, weight_decay=0.1)),
    ("muon", 8, 31, dict(lr=2e-2, momentum=0.9, nesterov=0, epsilon=1e-7, weight_decay=0.0)),
    ("muon", 31, 8, dict(lr=1e-3, momentum=0.4, nesterov=1, epsilon=1e-7, weight_decay=1.0)),
]


class Lamb(torch.optim.Optimizer):
    """Algorithm 2 of You et al., "Large Batch Optimization for Deep Learning", 2020, as its authors' code: phi is the identity, bias is
    corrected, the ratio is 1 when a norm is 0."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for param in group["params"]:
                state = self.state[param]
                first = state.setdefault("exp_avg", torch.zeros_like(param))
                second = state.setdefault("exp_avg_sq", torch.zeros_like(param))
                state["step"] = state.get("step", 0) + 1
                first.copy_(beta1 * first + (1 - beta1) * param.grad)
                second.copy_(beta2 * second + (1 - beta2) * param.grad.square())
                corrected_first = first / (1 - beta1 ** state["step"])
                corrected_second = second / (1 - beta2 ** state["step"])
                update = corrected_first / (corrected_second.sqrt() + group["eps"]) + group["weight_decay"] * param
                param_norm, update_norm = param.norm(), update.norm()
                ratio = param_norm / update_norm if param_norm > 0 and update_norm > 0 else 1.0
                param.sub_(group["lr"] * ratio * update)


def use_float64_in_muon():
    """torch.optim.Muon rounds to bf16 before its matrix products; here its own code runs in float64."""
    module = sys.modules["torch.optim._muon"]
    source = inspect.getsource(module._zeropower_via_newtonschulz)
    if source.count("torch.bfloat16") != 1:
        sys.exit("torch.optim.Muon is no longer the code that this script knows")
    exec(source.replace("torch.bfloat16", "torch.float64"), module.__dict__)


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, with the tensor operations of its authors."""

    def __init__(self, params, lr, betas, weight_decay):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for param in group["params"]:
                moment = self.state[param].setdefault("exp_avg", torch.zeros_like(param))
                param.mul_(1 - group["lr"] * group["weight_decay"])
                direction = moment * beta1 + param.grad * (1 - beta1)
                param.add_(direction.sign(), alpha=-group["lr"])
                moment.mul_(beta2).add_(param.grad, alpha=1 - beta2)


class Generator:
    """splitmix64 (Steele, Lea and Flood, 2014)."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    def values(self, count, largest_shift):
        """Multiples of 2^-23 in [-1, 1), each divided by 2^k, k in 0 .. largest_shift."""
        out = np.empty(count, np.float32)
        for i in range(count):
            bits = self.next()
            out[i] = np.ldexp(float((bits >> 40) - (1 << 23)), -23 - (bits & 0xFF) % (largest_shift + 1))
        return out


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & ((1 << 64) - 1)
    return value


def make_optimizer(algorithm, hyper, param, **kind):
    if algorithm == "sgd":
        return torch.optim.SGD([param], lr=hyper["lr"], momentum=hyper["momentum"], dampening=hyper["dampening"],
                               nesterov=bool(hyper["nesterov"]), weight_decay=hyper["weight_decay"], **kind)
    if algorithm == "adagrad":
        return torch.optim.Adagrad([param], lr=hyper["lr"], lr_decay=hyper.get("lr_decay", 0), weight_decay=hyper.get("weight_decay", 0),
                                   initial_accumulator_value=hyper.get("initial_accumulator", 0), eps=hyper["epsilon"], **kind)
    if algorithm == "lion":
        return Lion([param], lr=hyper["lr"], betas=(hyper["beta1"], hyper["beta2"]), weight_decay=hyper.get("weight_decay", 0))
    cls = torch.optim.Adam if algorithm == "adam" else torch.optim.AdamW
    return cls([param], lr=hyper["lr"], betas=(hyper["beta1"], hyper["beta2"]), eps=hyper["epsilon"],
               weight_decay=hyper["weight_decay"], **kind)


def slots(algorithm, hyper, param, state):
    result = [param]
    if algorithm == "adagrad":
        result.append(state["sum"])
    elif algorithm == "lion":
        result.append(state["exp_avg"])
    elif algorithm != "sgd":
        result += [state["exp_avg"], state["exp_avg_sq"]]
    elif hyper["momentum"] != 0:
        result.append(state["momentum_buffer"])
    return [slot.detach().numpy().copy() for slot in result]


def run(algorithm, hyper, seed, **kind):
    generator = Generator(seed)
    param = torch.nn.Parameter(torch.from_numpy(generator.values(COUNT, 3)))
    optimizer = make_optimizer(algorithm, hyper, param, **kind)
    kept = {}
    for step in range(1, STEPS[-1] + 1):
        param.grad = torch.from_numpy(generator.values(COUNT, 12))
        optimizer.step()
        if step in STEPS:
            kept[step] = slots(algorithm, hyper, param, optimizer.state[param])
    return kept


def same(a, b):
    return all(np.array_equal(x.view(np.uint32), y.view(np.uint32)) for step in STEPS for x, y in zip(a[step], b[step]))


def row(algorithm, hyper, seed):
    kept = run(algorithm, hyper, seed, foreach=False, fused=False)
    if not same(kept, run(algorithm, hyper, seed, foreach=True, fused=False)):
        sys.exit(f"torch's for-loop and foreach implementations differ: {algorithm} {hyper}")
    fused = same(kept, run(algorithm, hyper, seed, foreach=False, fused=True))
    names = ("lr", "momentum", "dampening", "nesterov", "beta1", "beta2", "epsilon", "weight_decay")
    values = ", ".join([repr(float(hyper.get(name, 0))) for name in names] + ["0"])
    if algorithm == "adagrad":
        values += f", 0, {hyper.get('lr_decay', 0)!r}, {hyper.get('initial_accumulator', 0)!r}"
    hashes = [[fnv1a(slot.tobytes()) for slot in kept[step]] for step in STEPS]
    hashes = [line + [0] * (3 - len(line)) for line in hashes]
    text = ",\n      ".join("{" + ", ".join(f"0x{value:016x}" for value in line) + "}" for line in hashes)
    shown = ", ".join(f"0x{value:08x}" for value in kept[STEPS[-1]][0].view(np.uint32)[:SHOWN])
    return (f'    // fused: {"the same bits" if fused else "other bits"}\n'
            f'    {{"{algorithm}", {{{values}}}, {seed},\n     {{{text}}},\n     {{{shown}}}}},')


def float64_row(algorithm, rows, columns, hyper, seed):
    generator = Generator(seed)
    param = torch.nn.Parameter(torch.from_numpy(generator.values(rows * columns, 3)).double().reshape(rows, columns))
    if algorithm == "lamb":
        optimizer = Lamb([param], lr=hyper["lr"], betas=(hyper["beta1"], hyper["beta2"]), eps=hyper["epsilon"],
                         weight_decay=hyper["weight_decay"])
    else:
        optimizer = torch.optim.Muon([param], lr=hyper["lr"], momentum=hyper["momentum"], nesterov=bool(hyper["nesterov"]),
                                     eps=hyper["epsilon"], weight_decay=hyper["weight_decay"])
    lines = []
    for step in range(1, STEPS[-1] + 1):
        param.grad = torch.from_numpy(generator.values(rows * columns, 12)).double().reshape(rows, columns)
        optimizer.step()
        if step in STEPS:
            lines.append("{" + ", ".join(float(value).hex() for value in param.detach().flatten()[:SHOWN]) + "}")
    names = ("lr", "momentum", "dampening", "nesterov", "beta1", "beta2", "epsilon", "weight_decay")
    values = ", ".join([repr(float(hyper.get(name, 0))) for name in names] + ["0"])
    joined = ",\n      ".join(lines)
    return f'    {{"{algorithm}", {{{values}}}, {seed}, {rows}, {columns},\n     {{{joined}}}}},'


def check_square_root():
    values = Generator(1).values(100000, 30) ** 2
    off = np.count_nonzero(torch.from_numpy(values).sqrt().numpy() != np.sqrt(values))
    if off:
        sys.exit(f"torch's square root is off in {off} of {values.size} elements here: take an Intel processor or a torch without MKL")


def main():
    torch.set_num_threads(1)
    check_square_root()
    rows = []
    for algorithm, sets in (("sgd", SGD_SETS), ("adam", ADAM_SETS), ("adamw", ADAM_SETS), ("adagrad", ADAGRAD_SETS),
                            ("lion", LION_SETS)):
        rows += [row(algorithm, hyper, 1000 + len(rows) + i) for i, hyper in enumerate(sets)]
    print(f"""/// @file Written by torch_vectors.py: results of PyTorch's CPU optimizers, for Lion of its authors'
/// formula in PyTorch. torch {torch.__version__}, CPU capability {torch.backends.cpu.get_cpu_capability()}, with MKL's correctly rounded
/// square root (MKL_CBWR=AVX2 on an Intel processor). Other builds agree where theirs is correctly
/// rounded: torch_vectors.py says which. Hyper-parameters in the order of HyperParameters.
#pragma once

#include "kernels/kernels.h"

#include <cstdint>

namespace zero::kernels::torch {{

inline constexpr int64_t kCount = {COUNT};
inline constexpr int64_t kSteps[] = {{{", ".join(map(str, STEPS))}}};
inline constexpr int kShown = {SHOWN};

struct Vector {{
  const char *algorithm;
  HyperParameters hyper;
  uint64_t seed;
  /// FNV-1a of the bytes, by kSteps and by slot (parameter, states); 0 where there is no slot.
  uint64_t hash[3][3];
  uint32_t param[kShown];  ///< bits of the first parameters after the last step
}};

inline constexpr Vector kVectors[] = {{""")
    print("\n".join(rows))
    print("""};

/// Algorithms on whole tensors, in float64: LAMB by its authors' formula, Muon by
/// torch.optim.Muon's code.
struct Float64Vector {
  const char *algorithm;
  HyperParameters hyper;
  uint64_t seed;
  int64_t rows;
  int64_t columns;
  double param[3][kShown];  ///< the first parameters, by kSteps
};

inline constexpr Float64Vector kFloat64Vectors[] = {""")
    use_float64_in_muon()
    for i, (algorithm, height, width, hyper) in enumerate(FLOAT64_SETS):
        print(float64_row(algorithm, height, width, hyper, 2000 + i))
    print("};\n\n}  // namespace zero::kernels::torch")


if __name__ == "__main__":
    main()
