"""ZeRO optimizers: parameters, gradients and states of a model, sharded over the ranks of a group."""

from __future__ import annotations

import contextlib
import math
import operator
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from . import device, elements
from .config import Config
from .device import DeviceArray, Place
from .dlpack import memory_of
from .error import REFUSED, Error
from .generated import (
    Dtype,
    Initialiser,
    Key,
    Memory,
    MemoryStats,
    MicroStep,
    Operation,
    Slot,
    Source,
    Status,
    StepResult,
    StepStats,
    Sync,
    Tier,
    TrafficStats,
    VerifyResult,
)
from .gradients import Gradients
from .group import Group
from .handle import Owner, native_of
from .lent import lent_array
from .library import text, zero
from .names import number, slot_name
from .param import KeptSlot, Param, Params, View
from .saving import Saving
from .structure import prepared

# Slots with one entry per so many elements.
_SCALES = (Slot.PARAM_SCALE, Slot.FIRST_SCALE, Slot.SECOND_SCALE)
_ELEMENTS_PER_SCALE = 256


def _native(data: np.ndarray | DeviceArray | None) -> np.ndarray | tuple | None:
    """Memory as native calls take it."""
    return data.native if isinstance(data, DeviceArray) else data


class Optimizer(Owner):
    """Life: add_param() ..., seal(), first values, begin(); then for each step parameters, gradients, step().

    Parameters and module buffers are named by the numbers that adding them returns. Arrays that the optimizer hands out lie in its memory
    and have the shape and type of their parameter. zero/optimizer.h says which calls are collectives, and what each means.

    With Key.DEVICE, gradients and `dst` may lie on that CUDA device: a DeviceArray, or a tensor of another package with DLPack. With
    Tier.DEVICE parameters, gradients and views are DeviceArrays; module buffers, read() and write() stay on the host.
    """

    def __init__(self, group: Group, config: Config | None = None):
        super().__init__(zero.zero_optimizer_create(group.native, native_of(config)))
        self._params = Params(config.get(Key.GRAD_DTYPE, 0) if config is not None else 0)
        self._module_buffers = {}  # shape and NumPy type by number
        self._slots = {}  # by parameter, after seal: its kept slots by slot
        self._acquired = {}  # by holder: the caller's arrays that stand for parameters until they are released, None for the library's
        self._lent = {}  # by holder: of what the library's memory that stands for it now was made
        self._begun = False
        self._device = config.get(Key.DEVICE, -1) if config is not None else -1
        self._lends_device = config is not None and config.get(Key.TIER, Tier.HOST) == Tier.DEVICE
        self._stream = 0

    @property
    def stream(self) -> int:
        """The stream of the device (a cudaStream_t as an integer) that calls are made with from now on; 0: its default stream.

        Memory of the device is read and written after all work that the stream was given before a call. What it is given after a call sees
        the results. A stream exists for as long as a parameter that was acquired with it is held.
        """
        return self._stream

    @stream.setter
    def stream(self, stream: int) -> None:
        self._stream = operator.index(stream)

    def _described(self) -> str:
        names = ", ".join(param.name for param in self.params)
        return f"parameters {names}" if names else "no parameters"

    def add_set(self, config: Config) -> int:
        """Makes a parameter set; the number is the value of Key.SET for its parameters."""
        return zero.zero_optimizer_add_set(self.native, config.native)

    def set_model_group(self, group: Group) -> None:
        """Names the ranks over which the model is cut."""
        zero.zero_optimizer_set_model_group(self.native, group.native)

    def add_param(self, name: str, shape: Sequence[int] | int, dtype=Dtype.F32, config: Config | None = None) -> int:
        """Registers a tensor: F32, F16 or BF16. Returns its number."""
        shape, dtype = elements.shape_of(shape), elements.dtype_of(dtype)
        param = zero.zero_optimizer_add_param(self.native, native_of(config), name, dtype, shape)
        self._params.add(param, name, shape, dtype, config)
        return param

    @property
    def params(self) -> tuple[Param, ...]:
        """What was registered, by number."""
        return tuple(self._params)

    def set_order(self, params: Sequence[int]) -> None:
        """The order in which gradients become ready."""
        zero.zero_optimizer_set_order(self.native, params)

    def set_gather_order(self, params: Sequence[int]) -> None:
        """The order in which the first step of stage 3 acquires parameters."""
        zero.zero_optimizer_set_gather_order(self.native, params)

    def add_module_buffer(self, name: str, shape: Sequence[int] | int, dtype=Dtype.F32, rule: Sync | int | str = Sync.NONE) -> int:
        """Registers a tensor that is no parameter. Returns its number, counted apart from parameters."""
        shape, dtype = elements.shape_of(shape), elements.dtype_of(dtype)
        buffer = zero.zero_optimizer_add_module_buffer(self.native, name, dtype, shape, number(Sync, rule))
        self._module_buffers[buffer] = shape, elements.numpy_dtype(dtype)
        return buffer

    def seal(self) -> None:
        """Cuts parameters into shards, agrees with all ranks and allocates."""
        zero.zero_optimizer_seal(self.native)

    def begin(self, source: Source | int | str) -> None:
        """Takes first values, or edited ones, over. From then on acquired parameters are read-only."""
        before, self._begun = self._begun, True
        try:
            zero.zero_optimizer_begin(self.native, number(Source, source))
        except REFUSED:
            self._begun = before
            raise

    def init_param(self, param: int, initialiser: Initialiser | int | str, a: float = 0.0, b: float = 0.0, seed: int = 0) -> None:
        """Fills what this rank updates of a parameter with first values."""
        zero.zero_optimizer_init_param(self.native, param, number(Initialiser, initialiser), a, b, seed)

    def module_buffer(self, number: int) -> np.ndarray:
        """A module buffer, for reading and writing."""
        address, _ = zero.zero_optimizer_module_buffer(self.native, number)
        shape, kind = self._module_buffers[number]
        return lent_array(self._handle, address, shape, kind, writable=True)

    def sync_module_buffers(self) -> None:
        """Brings all module buffers in line by their rules."""
        zero.zero_optimizer_sync_module_buffers(self.native, self._stream)

    def param_acquire(self, param: int, dst=None) -> np.ndarray | DeviceArray:
        """The whole parameter, until param_release(); after that the array must not be used. `dst` is filled instead when given.

        Writable before begin(), read-only afterwards.
        """
        known = self._known(param)
        if dst is not None:
            dst = self._of_tensor(dst, known.dtype, known.shape, known.name)
            if isinstance(dst, DeviceArray) and not dst.writable:
                raise BufferError("the memory is read-only, but the call writes to it")
        acquired = self._acquired.setdefault(known.holder, [])
        acquired.append(dst)
        try:
            address = zero.zero_optimizer_param_acquire(self.native, param, _native(dst), self._stream)
        except REFUSED:
            acquired.pop()
            raise
        if dst is not None:
            return dst
        lent = self._lend(address, known.shape, known.dtype, not self._begun)
        if known.count:
            self._lent.setdefault(known.holder, []).append(weakref.ref(memory_of(lent)))
        return lent

    def param_release(self, param: int) -> None:
        """Ends one param_acquire(). A tensor of another package that was made of the array must be gone before the last one ends."""
        known = self._known(param)
        alive = [memory for memory in (lent() for lent in self._lent.get(known.holder, ())) if memory is not None and memory.in_use]
        if alive and len(self._acquired.get(known.holder, ())) == 1:
            text = "cannot be released: a tensor that was exported by DLPack still uses its memory; delete it"
            raise BufferError(f"parameter {known.name} {text}")
        self._give_back(param)

    def _give_back(self, param: int) -> None:
        """param_release() of memory that others may go on to use, because it stays."""
        zero.zero_optimizer_param_release(self.native, param)
        holder = self._known(param).holder
        self._acquired[holder].pop()
        if not self._acquired[holder]:
            self._lent.pop(holder, None)

    @contextlib.contextmanager
    def param(self, param: int) -> Iterator[np.ndarray | DeviceArray]:
        """The whole parameter during a `with` block."""
        data = self.param_acquire(param)
        try:
            yield data
        finally:
            self.param_release(param)

    def grad_acquire(self, param: int) -> tuple[np.ndarray | DeviceArray, bool]:
        """Memory for the parameter's gradient until it was given to grad_ready(), and whether to add to it instead of overwriting it.

        Acquired again before that, it says True also when nothing was written.
        """
        known = self._known(param)
        address, accumulate = zero.zero_optimizer_grad_acquire(self.native, param, self._stream)
        return self._lend(address, known.shape, known.grad_dtype, writable=True), bool(accumulate)

    def grad_ready(self, param: int, grad=None, offset: int = 0, count: int | None = None) -> None:
        """Says that elements of the gradient are final: those of `grad`, which are copied, or of acquired memory when it is None.

        With Tier.DEVICE, memory of the device may be read until what the stream was given so far has ended: it stays until then.

        `count` is for acquired memory: elements from `offset` on, all by default.
        """
        known = self._known(param)
        if grad is not None:
            grad = self._of_gradient(known, grad)
            if count not in (None, grad.size):
                raise ValueError(f"count is {count}, but grad has {grad.size} elements")
            count = grad.size
        elif count is None:
            count = known.count - offset
        zero.zero_optimizer_grad_ready(self.native, param, _native(grad), offset, count, self._stream)

    def grad_ready_rows(self, param: int, rows, values) -> None:
        """Gives the whole gradient by rows, of a parameter with Key.ROWS: `values` has one for each number in `rows`; others are zero.

        A row that is given several times is added up.
        """
        known = self._known(param)
        numbers = np.ascontiguousarray(rows, np.int64).ravel()
        values = elements.typed(values, known.grad_dtype, "the gradient of", known.name)
        expected = numbers.size * math.prod(known.shape[1:])
        if values.size != expected:
            raise ValueError(f"values has {values.size} elements, but {numbers.size} rows of {known.name} have {expected}")
        zero.zero_optimizer_grad_ready_rows(self.native, param, numbers, values, numbers.size, self._stream)

    def gradients(self, grads: Mapping[int, object] | Sequence[int]) -> Gradients:
        """Gradients that become ready in one call, gradients.ready(), in each of many steps: by parameter its whole gradient.

        Arrays are checked here and kept, and each step reads what they then hold. None, or parameters alone, mean acquired memory.
        """
        pairs = grads.items() if isinstance(grads, Mapping) else ((param, None) for param in grads)
        return Gradients(self, [(param, self._whole_gradient(param, grad)) for param, grad in pairs])

    def set_weight(self, weight: float) -> None:
        """This rank's weight of the step under way, or behind micro_step() of that micro-step; only with Divisor.WEIGHTS."""
        zero.zero_optimizer_set_weight(self.native, weight)

    def micro_step(self, kind: MicroStep | int | str) -> None:
        """Begins a micro-step."""
        zero.zero_optimizer_micro_step(self.native, number(MicroStep, kind), self._stream)

    def step(self) -> StepResult:
        """One step: reduces gradients, votes, applies, gathers."""
        result = prepared(StepResult, zero.zero_step_result_init)
        zero.zero_optimizer_step(self.native, self._stream, result)
        return result

    def sync(self) -> StepResult:
        """Brings replicas together, before a save or an evaluation; nothing where they are together already."""
        result = prepared(StepResult, zero.zero_step_result_init)
        zero.zero_optimizer_sync(self.native, self._stream, result)
        return result

    def reduce(self) -> StepResult:
        """The first part of a step: sums gradients and votes."""
        result = prepared(StepResult, zero.zero_step_result_init)
        zero.zero_optimizer_reduce(self.native, self._stream, result)
        return result

    def request_stop(self, reason: int) -> None:
        """Asks all ranks to stop: the next step() or reduce() of all of them has the largest reason as stop_reason."""
        zero.zero_optimizer_request_stop(self.native, reason)

    def save(self, folder: str | os.PathLike) -> None:
        """Saves the optimizer with all that belongs to it into a folder of its own inside `folder`, which must exist."""
        zero.zero_optimizer_save(self.native, os.fspath(folder), self._stream)

    def save_async(self, folder: str | os.PathLike) -> Saving:
        """Begins save() and returns once this rank has a copy of what it saves; steps may follow at once."""
        return Saving(zero.zero_optimizer_save_async(self.native, os.fspath(folder), self._stream))

    def resume(self, folder: str | os.PathLike) -> bool:
        """Loads the newest valid save in `folder`, instead of begin(); False where there is none."""
        found = zero.zero_optimizer_resume(self.native, os.fspath(folder), self._stream) != 0
        self._begun = self._begun or found
        return found

    def apply(self) -> None:
        """The second part: updates this rank's shard, in stage 0 everything. Algorithm "custom" updates views() instead."""
        zero.zero_optimizer_apply(self.native, self._stream)

    def gather(self) -> None:
        """The last part: makes new parameters visible and ends the step."""
        zero.zero_optimizer_gather(self.native, self._stream)

    def view_count(self) -> int:
        """The number of pieces that this rank updates."""
        return zero.zero_optimizer_view_count(self.native)

    def view(self, index: int, slot: Slot | int | str) -> View:
        """One piece in one slot, for reading and writing where it lies."""
        slot = number(Slot, slot)
        param, offset, count, address = zero.zero_optimizer_view(self.native, index, slot)
        if slot in _SCALES:
            count = math.ceil(count / _ELEMENTS_PER_SCALE)
        elif slot == Slot.UPDATE_COUNT:
            count = 1
        dtype = self._slot_dtype(param, slot)
        return View(param, offset, self._lend(address, (count,), dtype, writable=slot != Slot.UPDATE_COUNT))

    def views(self, slot: Slot | int | str) -> list[View]:
        """All pieces in one slot; the same order in every slot."""
        return [self.view(index, slot) for index in range(self.view_count())]

    def set_f64(self, key: Key | int | str, value: float, param_set: int = 0) -> None:
        """Sets a hyper-parameter of a parameter set from the next step on; not between reduce() and gather()."""
        zero.zero_optimizer_set_f64(self.native, param_set, number(Key, key), value)

    def get_f64(self, key: Key | int | str, param_set: int = 0) -> float:
        return zero.zero_optimizer_get_f64(self.native, param_set, number(Key, key))

    def set_i64(self, key: Key | int | str, value: int) -> None:
        """Sets a scalar of the run."""
        zero.zero_optimizer_set_i64(self.native, number(Key, key), value)

    def get_i64(self, key: Key | int | str) -> int:
        return zero.zero_optimizer_get_i64(self.native, number(Key, key))

    def slots(self, param: int) -> list[KeptSlot]:
        """What is kept of a parameter from one step to the next."""
        indices = range(zero.zero_optimizer_slot_count(self.native, param))
        found = (zero.zero_optimizer_slot(self.native, param, index) for index in indices)
        known = Slot.__members__.values()
        return [KeptSlot(Slot(slot) if slot in known else slot, Dtype(dtype), count) for slot, dtype, count in found]

    def read(self, param: int, out=None, slot: Slot | int | str = Slot.PARAM, offset: int = 0) -> np.ndarray | None:
        """Fills `out` with entries of a slot, whoever holds them. A rank that wants none gives None."""
        slot = number(Slot, slot)
        out = self._of_slot(param, slot, out)
        zero.zero_optimizer_read(self.native, param, slot, offset, out, self._stream)
        return out

    def write(self, param: int, data=None, slot: Slot | int | str = Slot.PARAM, offset: int = 0) -> None:
        """Writes entries of a slot, whoever holds them. A rank that has none gives None."""
        slot = number(Slot, slot)
        zero.zero_optimizer_write(self.native, param, slot, offset, self._of_slot(param, slot, data), self._stream)

    def verify(self) -> VerifyResult:
        """Tells whether memory holds what libzero wrote."""
        result = prepared(VerifyResult, zero.zero_verify_result_init)
        zero.zero_optimizer_verify(self.native, self._stream, result)
        return result

    def memory(self, category: Memory | int | str = Memory.TOTAL) -> MemoryStats:
        """Bytes on this rank."""
        stats = prepared(MemoryStats, zero.zero_memory_stats_init)
        zero.zero_stats_optimizer_memory(self.native, number(Memory, category), stats)
        return stats

    def traffic(self, operation: Operation | int | str) -> TrafficStats:
        """What this rank moved in one kind of collective."""
        stats = prepared(TrafficStats, zero.zero_traffic_stats_init)
        zero.zero_stats_optimizer_traffic(self.native, number(Operation, operation), stats)
        return stats

    def step_stats(self) -> StepStats:
        """Time and stalls since seal()."""
        stats = prepared(StepStats, zero.zero_step_stats_init)
        zero.zero_stats_optimizer_step(self.native, stats)
        return stats

    def describe(self) -> str:
        """What was chosen and why, as a text."""
        return text(zero.zero_describe_optimizer, self.native)

    def trace(self) -> str:
        """What was done and when, as JSON in the Chrome trace format; needs Key.TRACE_EVENTS."""
        return text(zero.zero_stats_optimizer_trace, self.native)

    def _known(self, param: int) -> Param:
        """What was registered under a number. For any other number libzero says what is wrong, unless its add_param() was interrupted."""
        known = self._params.get(param)
        if known is None:
            zero.zero_optimizer_slot_count(self.native, param)
            text = f"parameter {param}: its add_param was interrupted before its shape was known here; make the optimizer anew"
            raise Error(Status.E_STATE, "ZERO_E_STATE", text)
        return known

    def _lend(self, address: int, shape: tuple, dtype: Dtype, writable: bool) -> np.ndarray | DeviceArray:
        """Memory of the library where its tier has it."""
        if self._lends_device:
            return DeviceArray(address, shape, dtype, self._device, stream=self._stream, owner=self._handle, writable=writable)
        return lent_array(self._handle, address, shape, elements.numpy_dtype(dtype), writable)

    def _of_tensor(self, data, dtype: Dtype, shape: tuple, *what: str) -> np.ndarray | DeviceArray:
        """Memory of the caller, of the host or the device, that stands for elements of a tensor."""
        there = device.device_array(data, self._stream)
        if there is not None:
            return device.checked(there, Place(self._device, self._stream), dtype, shape, *what)
        return elements.shaped(elements.typed(data, dtype, *what), shape, *what)

    def _of_gradient(self, known: Param, grad) -> np.ndarray | DeviceArray:
        return self._of_tensor(grad, known.grad_dtype, known.shape, "the gradient of", known.name)

    def _whole_gradient(self, param: int, grad) -> np.ndarray | DeviceArray | None:
        known = self._known(param)
        if grad is None:
            return None
        grad = self._of_gradient(known, grad)
        if grad.size != known.count:
            raise ValueError(f"the array has {grad.size} elements, but the gradient of {known.name} has {known.count}")
        return grad if isinstance(grad, DeviceArray) else elements.in_place(grad)

    def _slot_dtype(self, param: int, slot: int) -> Dtype | None:
        """The type of a slot's entries; None for a slot that is not kept, which libzero refuses."""
        if slot == Slot.GRAD:
            return self._known(param).grad_dtype
        if param not in self._slots:
            self._slots[param] = {kept.slot: kept.dtype for kept in self.slots(param)}
        return self._slots[param].get(slot)

    def _of_slot(self, param: int, slot: int, data) -> np.ndarray | None:
        dtype = self._slot_dtype(param, slot)
        if data is None or dtype is None:
            return data
        known = self._known(param)
        what = "slot", slot_name(slot), "of", known.name
        data = elements.typed(data, dtype, *what)
        return data if slot in (*_SCALES, Slot.UPDATE_COUNT) else elements.shaped(data, known.shape, *what)
