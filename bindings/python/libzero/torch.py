"""An optimizer of torch whose work and memory are shared by ranks: ZeRO, stages 0 to 3, for modules on the host.

    optimizer = ShardedOptimizer(module, stage=3, lr=1e-3)

Gradients are given to libzero as backward makes them. In stages 0 to 2 parameters lie in libzero's memory; in stage 3 torch_units.py
gathers them where modules use them. zero/optimizer.h is the manual of what happens below.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn

from . import torch_units
from .checkpoint import Checkpoint
from .config import Config
from .error import Error
from .generated import Dtype, Key, MicroStep, Slot, Source, Status, Tier, Unfilled
from .group import Group
from .handle import Owner
from .optimizer import Optimizer
from .torch_first import first_values, register_buffers, register_params
from .torch_state import load_shard, shard_of

_TORCH = {Dtype.F32: torch.float32, Dtype.F16: torch.float16, Dtype.BF16: torch.bfloat16}

# Keys of libzero by the names of torch.optim.
_HYPER = {
    "lr": (Key.LR,),
    "betas": (Key.BETA1, Key.BETA2),
    "eps": (Key.EPSILON,),
    "weight_decay": (Key.WEIGHT_DECAY,),
    "momentum": (Key.MOMENTUM,),
    "dampening": (Key.DAMPENING,),
    "nesterov": (Key.NESTEROV,),
    "lr_decay": (Key.LR_DECAY,),
    "initial_accumulator_value": (Key.INITIAL_ACCUMULATOR,),
    "ns_steps": (Key.NEWTON_SCHULZ_STEPS,),
}


class ShardedOptimizer(torch.optim.Optimizer):
    """Trains a module over the ranks of a group.

    module: its first values are those of rank 0. Parameters on `meta` are made by `init`, or else by reset_parameters() of their module
    params: what torch.optim takes; by default all parameters that require gradients. All others are frozen
    stage: what is sharded: 0 nothing, 1 optimizer states, 2 also gradients, 3 also parameters
    algorithm: "adamw", "adam", "sgd", "adagrad", "lion", "lamb" or "muon"; parameter groups may name another
    group: the ranks; by default those of the launcher (torchrun, mpirun, srun)
    whole: in stage 3, types of modules that use parameters of modules inside them, which are gathered with them
    keys: hyper-parameters by torch's names, and keys of Config (bucket_bytes=...)

    All ranks make the same module, and the same forward and backward passes in the same order.
    """

    _step_supports_amp_scaling = True  # so that step() sees a GradScaler, and can refuse it

    def __init__(
        self,
        module: nn.Module,
        params: Iterable | None = None,
        *,
        stage: int = 3,
        algorithm: str = "adamw",
        group: Group | None = None,
        whole: tuple[type, ...] = (nn.MultiheadAttention,),
        init: Callable[[nn.Module], Any] | None = None,
        **keys: Any,
    ):
        self._optimizer = None
        defaults = {name: keys.pop(name) for name in tuple(keys) if name in _HYPER}
        super().__init__(params if params is not None else [p for p in module.parameters() if p.requires_grad], defaults)
        self.group = Group.env() if group is None else group
        owned = (self.group,) if group is None else ()
        self._module = module
        self._streamed = stage == 3 or bool(keys.get("param_dtype"))
        keys = {"unfilled": Unfilled.UNTOUCHED, "grad_norm": 1, **keys, **_hyper_keys(defaults)}
        self._has_norm = bool(keys["grad_norm"])
        if keys.get("tier", Tier.HOST) != Tier.HOST:
            raise ValueError("tier is for memory of a device, but parameters of a module lie on the host here; use libzero.Optimizer")
        optimizer = Optimizer(self.group, Config(stage=stage, algorithm=algorithm, **keys))
        for param_group in self.param_groups:
            algorithm_of = {"algorithm": param_group["algorithm"]} if "algorithm" in param_group else {}
            optimizer.add_set(Config(**algorithm_of, **_hyper_keys(param_group)))
        self._numbers = register_params(optimizer, module, self.param_groups)
        self._trained = {p for param_group in self.param_groups for p in param_group["params"] if p.requires_grad}
        self._buffers = register_buffers(optimizer, module)
        optimizer.seal()
        self._optimizer = optimizer
        self._close = weakref.finalize(self, _close, optimizer, *owned)  # also when the program ends
        self._names = {p: optimizer.params[number].name for p, number in self._numbers.items()}
        self._applied = []
        self._read_hyper()
        self._given = set()  # parameters whose gradients the micro-step under way has
        self._wanted = None  # the kind of micro-step that no_sync() or accumulate() asks for
        self._open = None  # the kind of the micro-step under way
        self._reduced = None  # what clip_grad_norm_() has reduced
        self.result = None  # the StepResult of the last step
        self._backward = torch_units.Backward()
        self._weights = {}
        units = torch_units.units(module, whole)
        first_values(optimizer, self.group.rank, units, self._numbers, init, self._shard if self._streamed else None)
        optimizer.begin(Source.SHARDS)
        self._handles = [p.register_post_accumulate_grad_hook(self._take) for p in self._numbers if p in self._trained]
        if self._streamed:
            for owner, parameters in units:
                self._backward.add(torch_units.Unit(owner, [self._weights[p] for p in parameters], self._backward))
        else:
            self._attach()

    def close(self) -> None:
        """Ends the training and gives the group back. In stage 3 parameters have no values afterwards; in others they keep theirs."""
        self._backward.end()
        for handle in (*self._handles, *(handle for unit in self._backward.units for handle in unit.handles)):
            handle.remove()
        self._close()

    @property
    def optimizer(self) -> Optimizer:
        """The libzero.Optimizer below, for memory(), traffic(), describe()."""
        return self._optimizer

    def add_param_group(self, param_group: dict) -> None:
        """Only the constructor adds groups: afterwards memory is divided."""
        if self._optimizer is not None:
            raise RuntimeError("a ShardedOptimizer takes no further parameter groups; give them all as `params` when it is made")
        super().add_param_group(param_group)

    # Steps

    @torch.no_grad()
    def step(self, closure: Callable | None = None):
        """One step of all ranks. A collective. `closure` makes the loss with its backward, which step() returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if getattr(self, "grad_scale", None) is not None:
            raise RuntimeError(
                "a torch GradScaler sees no gradients of a ShardedOptimizer; make it with loss_scale_dynamic=1, call "
                "optimizer.scale(loss).backward(), and leave the GradScaler out"
            )
        self._backward.end()
        if self._reduced is None:
            self._write_hyper()
            self.result = self._optimizer.step()
        else:
            if self._applied != self._hyper():
                raise RuntimeError("hyper-parameters changed between clip_grad_norm_() and step(); change them before or after both")
            self._optimizer.apply()
            self._optimizer.gather()
            self.result = self._reduced
        self._end_step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops gradients that were given since the last step, which is then a collective; nothing is left to drop behind step()."""
        super().zero_grad(set_to_none)
        self._backward.end()
        if self._given or self._open is not None or self._reduced is not None:
            if self._reduced is None:
                self._optimizer.reduce()
            self._optimizer.gather()
            self._end_step()

    def clip_grad_norm_(self, max_norm: float) -> torch.Tensor:
        """Scales the gradients of all ranks so that their norm is at most `max_norm`, and returns the norm before. A collective.

        Call it between backward and step(), in place of torch.nn.utils.clip_grad_norm_, which sees no gradients. With the key clip_norm of
        the constructor, step() clips.
        """
        if not self._has_norm:
            raise RuntimeError("clip_grad_norm_() needs the norm, which grad_norm=0 leaves out; make the ShardedOptimizer without it")
        if self._reduced is not None:
            raise RuntimeError("clip_grad_norm_() was called twice in one step")
        self._backward.end()
        self._write_hyper()
        self._reduced = self._optimizer.reduce()
        factor = max_norm / (self._reduced.grad_norm + 1e-6)
        if factor < 1 and not self._reduced.skipped:
            for view in self._optimizer.views(Slot.GRAD):
                torch.from_dlpack(view.data).mul_(factor)
        return torch.tensor(self._reduced.grad_norm)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes that are added up on this rank. The last one of a step comes after the block.

        A full gradient per rank is kept for it; accumulate() needs less.
        """
        with self._micro_steps(MicroStep.LOCAL):
            yield

    @contextlib.contextmanager
    def accumulate(self) -> Iterator[None]:
        """Backward passes that are reduced one by one, and added up where gradients are sharded. Collectives."""
        with self._micro_steps(MicroStep.REDUCE):
            yield

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss times the loss scale, for backward (keys loss_scale, loss_scale_dynamic)."""
        return loss * self._optimizer.get_f64(Key.LOSS_SCALE)

    # Parameters

    @contextlib.contextmanager
    def gathered(self, *of: nn.Module | nn.Parameter) -> Iterator[None]:
        """In stage 3 parameters have their values within the block, for reading: those given, those of modules given, or all.

        A collective.
        """
        found = [p for item in of or (self._module,) for p in (item.parameters() if isinstance(item, nn.Module) else (item,))]
        weights = [self._weights[p] for p in dict.fromkeys(found) if p in self._weights]
        torch_units.hold(weights)
        try:
            yield
        finally:
            for weight in weights:
                weight.let_go()

    # State

    def state_dict(self) -> dict:
        """This rank's shard: for each parameter the pieces of its slots, in libzero's memory, and the parameter groups."""
        groups = [{k: [self._names[p] for p in v] if k == "params" else v for k, v in group.items()} for group in self.param_groups]
        return {"state": shard_of(self._optimizer), "param_groups": groups, "rank": self.group.rank, "size": self.group.size}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict) -> None:
        """Takes what state_dict() returned on the same rank of as many. A collective. For other numbers of ranks: save() and load()."""
        was, now = ((state_dict["rank"], state_dict["size"]), (self.group.rank, self.group.size))
        if was != now:
            here = f"this is rank {now[0]} of {now[1]}"
            raise ValueError(f"the state is that of rank {was[0]} of {was[1]}, and {here}; use save() and load()")
        with self._detached():
            load_shard(self._optimizer, state_dict["state"])
        for group, saved in zip(self.param_groups, state_dict["param_groups"]):
            group.update({k: v for k, v in saved.items() if k != "params"})

    def save(self, folder: str | os.PathLike) -> None:
        """Saves parameters, states and module buffers (those of rank 0) into a folder of its own inside `folder`. A collective."""
        os.makedirs(folder, exist_ok=True)
        self._backward.end()
        for number, read in self._buffers.items():
            torch.from_dlpack(self._optimizer.module_buffer(number)).copy_(read())
        self._optimizer.sync_module_buffers()
        self._optimizer.save(folder)

    @torch.no_grad()
    def load(self, folder: str | os.PathLike) -> bool:
        """Goes on from the newest valid save in `folder`, of any number of ranks and any stage. False where there is none. A collective."""
        with self._detached():
            found = self._optimizer.resume(folder)
        if found:
            self._read_hyper()
            for number, read in self._buffers.items():
                read().copy_(torch.from_dlpack(self._optimizer.module_buffer(number)))
        return found

    def export(self, path: str | os.PathLike) -> None:
        """Writes parameters as plain safetensors; no rank holds the whole model. A collective."""
        with Checkpoint(self.group) as checkpoint:
            checkpoint.add_optimizer(self._optimizer)
            checkpoint.export(path)

    # Inside

    def _take(self, parameter: nn.Parameter) -> None:
        """Gives the gradient that backward has just made to libzero, which copies it, and frees it."""
        gradient, parameter.grad = parameter.grad, None
        name = self._names[parameter]
        if gradient.layout != torch.strided:
            raise TypeError(f"the gradient of {name} is sparse, and libzero takes dense ones: make its nn.Embedding with sparse=False")
        number = self._numbers[parameter]
        self._next_micro_step(number, name)
        dtype = _TORCH[self._optimizer.params[number].grad_dtype]
        self._optimizer.grad_ready(number, gradient.detach().to(dtype).contiguous())
        self._given.add(number)
        self._backward.gradient_done(parameter)

    def _next_micro_step(self, number: int, name: str) -> None:
        """Begins a micro-step if this gradient belongs to another one than that under way."""
        kind = MicroStep.LAST if self._wanted is None and self._open is not None else self._wanted
        again = number in self._given
        final = self._open in (None, MicroStep.LAST)
        if self._reduced is not None or (final and (again if self._wanted is None else self._given)):
            raise RuntimeError(
                f"a gradient of {name} comes behind the last ones of this step: call step() or zero_grad() first, or make all backward "
                "passes of a step but the last in a `with optimizer.no_sync():` block"
            )
        if kind != self._open or again:
            self._optimizer.micro_step(kind)
            self._open = kind
            self._given.clear()

    @contextlib.contextmanager
    def _micro_steps(self, kind: MicroStep) -> Iterator[None]:
        before, self._wanted = self._wanted, kind
        try:
            yield
        finally:
            self._wanted = before

    def _end_step(self) -> None:
        self._given.clear()
        self._open = self._reduced = None

    def _hyper(self) -> list[dict[Key, float]]:
        return [{key: float(value) for key, value in _hyper_keys(group).items()} for group in self.param_groups]

    def _write_hyper(self) -> None:
        """What schedulers have changed since the last step."""
        hyper = self._hyper()
        for number, (new, old) in enumerate(zip(hyper, self._applied), 1):
            for key, value in new.items():
                if old.get(key) != value:
                    self._optimizer.set_f64(key, value, number)
        self._applied = hyper

    def _read_hyper(self) -> None:
        """The values of libzero: defaults of the algorithms, or those of a save."""
        for number, group in enumerate((self.defaults, *self.param_groups)):
            for name, keys in _HYPER.items():
                try:
                    values = tuple(self._optimizer.get_f64(key, number) for key in keys)
                except Error as error:
                    if error.code != Status.E_UNSUPPORTED:
                        raise
                    continue  # the algorithm has none
                group[name] = values if len(values) > 1 else values[0]
        self._applied = self._hyper()

    def _shard(self, parameter: nn.Parameter) -> None:
        """Frees the values of a parameter that libzero has taken over."""
        number = self._numbers[parameter]
        self._weights[parameter] = torch_units.Weight(self._optimizer, number, self._names[parameter], parameter)

    def _attach(self) -> None:
        """Points parameters at the memory of libzero."""
        for parameter, number in self._numbers.items():
            parameter.data = torch.from_dlpack(self._optimizer.param_acquire(number))

    @contextlib.contextmanager
    def _detached(self) -> Iterator[None]:
        """Parameters may be changed within the block: libzero takes none of them for acquired."""
        self._backward.end()
        if not self._streamed:
            for number in self._numbers.values():
                self._optimizer._give_back(number)  # its memory stays, and parameters lie in it
        yield
        if not self._streamed:
            self._attach()


def _close(*owners: Owner) -> None:
    for owner in owners:
        owner.close()


def _hyper_keys(names: dict) -> dict[str, float]:
    """Keys of Config from hyper-parameters with torch's names."""
    found = {}
    for name, keys in _HYPER.items():
        if name in names:
            values = names[name] if len(keys) > 1 else (names[name],)
            found.update({key.name.lower(): float(value) for key, value in zip(keys, values)})
    return found
