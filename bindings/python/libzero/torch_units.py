"""Parameters of torch that have values only while they are used, and the modules that use them. Stage 3 of libzero.torch.

A parameter keeps one torch storage for life, which is emptied and filled again. What autograd saves of it for backward (the parameter
itself, or views of it) shares that storage, and so has values again once a backward hook has gathered the parameter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import torch
from torch import nn
from torch.autograd.graph import register_multi_grad_hook

from .optimizer import Optimizer

# What a parameter without values still answers.
_METHODS = {"size", "dim", "numel", "stride", "element_size", "is_contiguous", "is_floating_point", "is_complex", "requires_grad_"}
_METHODS |= {"register_hook", "register_post_accumulate_grad_hook", "data_ptr", "untyped_storage"}
_OF_VALUES = {"data", "T", "H", "mT", "mH", "real", "imag"}


class Released(nn.Parameter):
    """The class of a parameter while it has a shape but no storage: torch would read address 0 in some operations."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = function.__name__
        described = name in ("__get__", "__set__") and function.__self__.__name__ not in _OF_VALUES
        if not described and name not in _METHODS:
            given = [leaf for leaf in tensors((args, kwargs)) if isinstance(leaf, Released)]
            raise RuntimeError(
                f"{name} uses {', '.join(leaf.zero_name for leaf in given)}, which is sharded and has values only within the forward and "
                "backward of the module that owns it. Name the type of the module that uses it in `whole` of ShardedOptimizer, or "
                "use it in a `with optimizer.gathered(parameter):` block. State goes to files with optimizer.save()"
            )
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))

    def __repr__(self):
        return f"Released({self.zero_name}, shape={tuple(self.shape)}, dtype={self.dtype})"


class Weight:
    """One parameter: its storage, and how many modules use it now."""

    def __init__(self, optimizer: Optimizer, number: int, name: str, parameter: nn.Parameter):
        self.name = name
        self.parameter = parameter
        self.holds = 0
        self._optimizer = optimizer
        self._number = number
        self._class = type(parameter)
        parameter.data = torch.empty(parameter.shape, dtype=parameter.dtype)
        parameter.zero_name = name
        self._data = parameter.data
        self._nbytes = self._data.untyped_storage().nbytes()
        self._empty()

    def hold(self) -> None:
        """Gathers the parameter into its storage if nobody has it. A collective then."""
        if self.holds == 0 and self._nbytes:
            self._data.untyped_storage().resize_(self._nbytes)
            self._optimizer.param_acquire(self._number, self._data)
            self.parameter.__class__ = self._class
        self.holds += 1

    def let_go(self) -> None:
        """Ends one hold(); the last one frees the storage."""
        if self.holds == 1 and self._nbytes:
            self._empty()
            self._optimizer.param_release(self._number)
        self.holds -= 1

    def _empty(self) -> None:
        try:
            self._data.untyped_storage().resize_(0)
        except RuntimeError:
            raise BufferError(
                f"parameter {self.name} cannot be released, because its memory was given away as an array (for example by numpy()); give a "
                f"copy away instead: {self.name}.detach().clone().numpy()"
            ) from None
        if self._nbytes:
            self.parameter.__class__ = Released


class Unit:
    """A module whose parameters are gathered for its forward, and again for its backward.

    Backward releases them once all its trainable parameters have their gradients and all its inputs have theirs: until then something may
    still read them. What then is still held, because a parameter was not used, is released when backward ends.
    """

    def __init__(self, module: nn.Module, weights: list[Weight], backward: Backward):
        self.weights = weights
        self._backward = backward
        self._calls = []  # forward calls under way, the innermost last
        self._held = False
        self._inputs = 0  # calls of this backward whose inputs have no gradients yet
        self._without_gradient = set()  # trainable parameters of this backward that have none yet
        self.handles = [
            module.register_forward_pre_hook(self._before_forward, prepend=True, with_kwargs=True),
            module.register_forward_hook(self._after_forward, always_call=True),
        ]

    def _before_forward(self, module, args, kwargs):
        call = _Call(self)
        if torch.is_grad_enabled():
            inputs = [tensor for tensor in tensors((args, kwargs)) if tensor.requires_grad]
            call.has_inputs = bool(inputs)
            if inputs:
                handle = register_multi_grad_hook(inputs, call.inputs_done)
                if any(tensor.is_leaf for tensor in inputs):
                    self._backward.handles.append(handle)  # no graph frees the hooks of leaves
        hold(self.weights)
        self._calls.append(call)

    def _after_forward(self, module, args, output):
        if not self._calls:
            return  # the forward failed before its parameters were there
        call = self._calls.pop()
        for weight in self.weights:
            weight.let_go()
        if torch.is_grad_enabled():
            for tensor in tensors(output):
                if tensor.grad_fn is not None:
                    tensor.register_hook(call.begin)

    def begin(self, call: _Call) -> None:
        """Backward has reached the outputs of a call."""
        self._backward.begin()
        if not self._held:
            hold(self.weights)
            self._held = True
            self._without_gradient = {weight.parameter for weight in self.weights if weight.parameter.requires_grad}
        self._inputs += call.has_inputs

    def inputs_done(self) -> None:
        self._inputs -= 1
        self._release_if_done()

    def gradient_done(self, parameter: nn.Parameter) -> None:
        self._without_gradient.discard(parameter)
        self._release_if_done()

    def end(self) -> None:
        """Backward has ended."""
        if self._held:
            self._held = False
            for weight in self.weights:
                weight.let_go()
        self._inputs = 0

    def _release_if_done(self) -> None:
        if self._inputs == 0 and not self._without_gradient:
            self.end()


class _Call:
    """One forward of a unit. Backward may come by several times, or never."""

    def __init__(self, unit: Unit):
        self.has_inputs = False
        self._unit = unit
        self._backward = None  # the number of the backward that has reached the outputs

    def begin(self, _gradient) -> None:
        if self._backward != self._unit._backward.number:
            self._backward = self._unit._backward.number
            self._unit.begin(self)

    def inputs_done(self, _gradients) -> None:
        if self._backward == self._unit._backward.number:
            self._unit.inputs_done()


class Backward:
    """The backward pass under way, and the units that hold parameters for it."""

    def __init__(self):
        self.number = 0
        self.units = []
        self.handles = []  # of hooks that end with it
        self._of = {}  # units by parameter
        self._under_way = False

    def add(self, unit: Unit) -> None:
        self.units.append(unit)
        for weight in unit.weights:
            self._of.setdefault(weight.parameter, []).append(unit)

    def begin(self) -> None:
        if not self._under_way:
            torch.autograd.Variable._execution_engine.queue_callback(self.end)
            self._under_way = True

    def end(self) -> None:
        """Also after a backward that failed, which calls nobody."""
        self._under_way = False
        self.number += 1
        for unit in self.units:
            unit.end()
        while self.handles:
            self.handles.pop().remove()

    def gradient_done(self, parameter: nn.Parameter) -> None:
        for unit in self._of.get(parameter, ()):
            unit.gradient_done(parameter)


def hold(weights: list[Weight]) -> None:
    """All of them or, when one fails, none."""
    held = []
    try:
        for weight in weights:
            weight.hold()
            held.append(weight)
    except BaseException:
        for weight in held:
            weight.let_go()
        raise


def units(module: nn.Module, whole: tuple[type, ...]) -> list[tuple[nn.Module, list[nn.Parameter]]]:
    """Modules whose forward uses parameters, with these: their own and those of lists, or of all modules below for the types `whole`."""
    found, left = {}, [module]
    while left:
        owner = left.pop()
        if owner in found:
            continue
        children = list(owner.children())
        lists = [child for child in children if isinstance(child, (nn.ParameterList, nn.ParameterDict))]
        if isinstance(owner, whole):
            found[owner] = list(owner.parameters())
            continue
        found[owner] = [*owner.parameters(recurse=False), *(parameter for child in lists for parameter in child.parameters())]
        left.extend(child for child in reversed(children) if child not in lists)
    return [(owner, list(dict.fromkeys(parameters))) for owner, parameters in found.items() if parameters]


def tensors(value) -> Iterator[torch.Tensor]:
    """The tensors in what modules take and return."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors(getattr(value, field.name))
