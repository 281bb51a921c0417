"""What libzero.torch registers of a module, and its first values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .config import Config
from .generated import Sync
from .optimizer import Optimizer

_PARAMS = (torch.float32, torch.float16, torch.bfloat16)
_BUFFERS = (*_PARAMS, torch.float64, torch.int32, torch.int64, torch.uint8)


def register_params(optimizer: Optimizer, module: nn.Module, groups: list[dict]) -> dict[nn.Parameter, int]:
    """The number of each parameter of the module. What no group has, or needs no gradient, is frozen."""
    sets = {parameter: number for number, group in enumerate(groups, 1) for parameter in group["params"]}
    numbers = {}
    for name, parameter in module.named_parameters():
        _check(name, parameter)
        values = {"set": sets[parameter]} if parameter in sets else {}
        config = Config(**values, frozen=int(parameter not in sets or not parameter.requires_grad))
        numbers[parameter] = optimizer.add_param(name, parameter.shape, parameter.dtype, config)
    unknown = [tuple(parameter.shape) for parameter in sets if parameter not in numbers]
    if unknown:
        raise ValueError(f"a parameter of shape {unknown[0]} is in a parameter group, but not in the module")
    return numbers


def _check(name: str, parameter: nn.Parameter) -> None:
    if torch.nn.parameter.is_lazy(parameter):
        raise TypeError(f"parameter {name} has no shape yet: run one forward before the ShardedOptimizer is made")
    if parameter.dtype not in _PARAMS:
        raise TypeError(f"parameter {name} is {parameter.dtype}; those of libzero are float32, float16 or bfloat16")
    if parameter.device.type not in ("cpu", "meta"):
        raise TypeError(f"parameter {name} is on {parameter.device}, but this package reaches memory of the host alone; move it to cpu")


def register_buffers(optimizer: Optimizer, module: nn.Module) -> dict[int, Callable[[], torch.Tensor]]:
    """Module buffers that saves hold: by number, what returns the module's tensor of now, bool as uint8."""
    found = {}
    for prefix, owner in module.named_modules():
        for name, buffer in owner.named_buffers(recurse=False):
            dtype = torch.uint8 if buffer.dtype == torch.bool else buffer.dtype
            if name in owner._non_persistent_buffers_set or dtype not in _BUFFERS:
                continue
            number = optimizer.add_module_buffer(f"{prefix}.{name}" if prefix else name, buffer.shape, dtype, Sync.BROADCAST)
            found[number] = _reader(owner, name)
    return found


def _reader(owner: nn.Module, name: str) -> Callable[[], torch.Tensor]:
    def read():
        buffer = owner.get_buffer(name).detach()
        return buffer.view(torch.uint8) if buffer.dtype == torch.bool else buffer

    return read


@torch.no_grad()
def first_values(
    optimizer: Optimizer,
    rank: int,
    units: list[tuple[nn.Module, list[nn.Parameter]]],
    numbers: dict[nn.Parameter, int],
    init: Callable[[nn.Module], Any] | None,
    taken_over: Callable[[nn.Parameter], None] | None,
) -> None:
    """Writes the values of rank 0, module after module, so that of a module on `meta` no rank ever has the whole.

    Modules on `meta` get values on all ranks, which keeps their random numbers in step.
    """
    written = set()
    for owner, parameters in units:
        if any(parameter.is_meta for parameter in parameters):
            _make(owner, parameters, init)
        for parameter in parameters:
            if parameter in written:
                continue
            written.add(parameter)
            optimizer.write(numbers[parameter], parameter.detach().contiguous() if rank == 0 else None)
            if taken_over is not None:
                taken_over(parameter)


def _make(owner: nn.Module, parameters: list[nn.Parameter], init: Callable[[nn.Module], Any] | None) -> None:
    """Gives the parameters and buffers of a module memory and values."""
    for parameter in parameters:
        if parameter.is_meta:
            made = torch.empty_like(parameter, device="cpu")
            torch.utils.swap_tensors(parameter, nn.Parameter(made, requires_grad=parameter.requires_grad))
    mine = set(parameters)
    inside = [module for module in owner.modules() if not mine.isdisjoint(module.parameters(recurse=False))]
    for module in reversed(inside):
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.is_meta:
                setattr(module, name, torch.empty_like(buffer, device="cpu"))
        reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
        if init is not None:
            init(module)
        elif reset is not None:
            reset()
        else:
            kind = type(module).__name__
            raise TypeError(f"parameters of a {kind} are on meta, and it has no reset_parameters(): give `init`, which fills them")
