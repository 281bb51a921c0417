"""Training runs of five steps, and what can be asked of an optimizer afterwards."""

import functools

import numpy as np
from libzero import (
    Config,
    Divisor,
    Dtype,
    Feature,
    Initialiser,
    Key,
    Memory,
    MicroStep,
    Operation,
    Optimizer,
    Slot,
    Source,
    Sync,
    Tier,
    has_feature,
)

import ranks
from model import B, COUNTS, W, Model
from values import values
from words import double, error_of, hash_of

STEPS = 5
SKIPPED_STEP = 2


def _train(begin, step, say, keys, group):
    with Model(group, **keys) as model:
        model.optimizer.seal()
        begin(model)
        for t in range(STEPS):
            step(model, t)
        return say(model)


def _training(begin=Model.begin, step=Model.step, say=Model.say_result, **keys):
    """The usual run, but for what is given."""
    return ranks.on(3, functools.partial(_train, begin, step, say, keys))


def _on_device():
    """Keys that put everything into a device's memory, if there is a device."""
    return {"device": 0, "tier": Tier.DEVICE} if has_feature(Feature.CUDA) else {}


def _private_step(model, t):
    """Gradients from memory of its own: `b`, then `w` in two halves of which the second comes first."""
    w = model.gradient(W, t).ravel()
    model.optimizer.grad_ready(B, model.gradient(B, t))
    model.optimizer.grad_ready(W, w[300:], offset=300)
    model.optimizer.grad_ready(W, w[:300])
    model.end_step()


def _bulk_step(model, t):
    """Gradients from memory of its own, of both parameters in one call."""
    model.optimizer.gradients({param: model.gradient(param, t) for param in (B, W)}).ready()
    model.end_step()


def _micro_step(model, t):
    model.optimizer.micro_step(MicroStep.LOCAL)
    model.give_gradients(t)
    model.optimizer.micro_step(MicroStep.LAST)
    model.step(t)


def _rate_step(model, t):
    model.optimizer.set_f64(Key.LR, 0.01 / (t + 1))
    model.step(t)


def _skip_step(model, t):
    """In one step the gradient of `b` on rank 1 holds a NaN."""
    b = model.gradient(B, t)
    if t == SKIPPED_STEP and model.rank == 1:
        b[0] = np.nan
    model.optimizer.grad_ready(B, b)
    model.optimizer.grad_ready(W, model.gradient(W, t))
    model.end_step()
    if t == SKIPPED_STEP:
        model.skipped = model.result


def _say_skipped(model):
    result = model.say_result()
    return result and f"{model.skipped.step} {model.skipped.skipped} {model.result.skipped_total} {result}"


def _weighted_step(model, t):
    model.optimizer.set_weight(model.rank)
    model.step(t)


def _replica_step(model, t):
    """The period ends in steps 1 and 3, and the run behind step 4."""
    model.step(t)
    model.synced = [*getattr(model, "synced", []), model.result.synced]
    if t == STEPS - 1:
        model.result = model.optimizer.sync()


def _say_synced(model):
    result = model.say_result()
    synced = " ".join(str(each) for each in [*model.synced, model.result.synced])
    return result and f"{synced} {double(model.result.spread)} {result}"


def _custom_step(model, t):
    """slot += gradient, parameter -= 0.125 slot."""
    optimizer = model.optimizer
    model.give_gradients(t)
    optimizer.reduce()
    for gradient, slot, param in zip(*map(optimizer.views, (Slot.GRAD, Slot.CUSTOM, Slot.PARAM))):
        slot.data[:] += gradient.data
        param.data[:] -= np.float32(0.125) * slot.data
    optimizer.gather()


def _init_normal(model):
    for param in (W, B):
        model.optimizer.init_param(param, Initialiser.NORMAL, 0.5, 2, 7 + param)
    model.optimizer.begin(Source.SHARDS)


def _no_step(model, t):
    pass


def _say_norm(model):
    result = model.say_result()
    return result and f"{double(model.result.grad_norm)} {result}"


def _say_views(model):
    views = model.optimizer.views(Slot.PARAM)
    return ",".join(f"{view.param}:{view.offset}:{view.data.size}" for view in views) or "-"


def _say_acquired(model):
    with model.optimizer.param(W) as data:
        return hash_of(data)


def _say_slots(model):
    if model.rank == 0:
        return " ".join(f"{kept.slot:d}:{kept.dtype:d}:{kept.count}" for kept in model.optimizer.slots(W))


def _say_scalars(model):
    if model.rank == 0:
        return f"{double(model.optimizer.get_f64(Key.LR))} {model.optimizer.get_i64(Key.STEP_COUNT)}"


def _say_moments(model):
    out = np.empty(COUNTS[W], np.float32) if model.rank == 0 else None
    model.optimizer.read(W, out, Slot.SECOND_MOMENT)
    return None if out is None else hash_of(out)


def _say_verified(model):
    result = model.optimizer.verify()
    if model.rank == 0:
        return f"{result.found} {result.chunk_count}"


def _say_traffic(model):
    operations = (Operation.REDUCE_SCATTER, Operation.ALL_GATHER)
    return "/".join(str(model.optimizer.traffic(operation).sent_elements) for operation in operations)


def _say_formula(model):
    return str(model.optimizer.memory(Memory.TOTAL).formula_nbytes)


def _say_described(model):
    if model.rank == 0:
        return str(int(len(model.optimizer.describe().encode()) > 100))


def _module_buffer(group):
    with Model(group) as model:
        number = model.optimizer.add_module_buffer("m", (9,), Dtype.F32, Sync.AVERAGE)
        model.optimizer.seal()
        data = model.optimizer.module_buffer(number)
        data[:] = values(9, group.rank)
        model.optimizer.sync_module_buffers()
        return hash_of(data)


def _table(group):
    """A table of which gradients are given by rows, begun with zeros."""
    with Config(stage=1, bucket_bytes=1024) as config, Config(rows=1) as by_rows:
        optimizer = Optimizer(group, config)
        optimizer.add_param("t", (40, 10), config=by_rows)
    optimizer.seal()
    optimizer.begin(Source.LOCAL)
    return optimizer


def _rows(group):
    with _table(group) as optimizer:
        optimizer.grad_ready_rows(0, [group.rank, 7, group.rank], values(30, group.rank))
        optimizer.step()
        out = np.empty(400, np.float32) if group.rank == 0 else None
        optimizer.read(0, out)
        return None if out is None else hash_of(out)


def _rows_error(group):
    with _table(group) as optimizer:
        return error_of(optimizer.grad_ready_rows, 0, [40], values(10, 0))


def scenarios():
    for stage in range(4):
        yield f"train-stage{stage}", _training(stage=stage)
    yield "train-sgd", _training(algorithm="sgd", momentum=0.9)
    yield "train-private", _training(step=_private_step)
    for stage in range(4):
        yield f"train-bulk{stage}", _training(step=_bulk_step, stage=stage)
    yield "train-device", _training(_init_normal, _private_step, stage=2, **_on_device())
    yield "train-clip", _training(say=_say_norm, clip_norm=1)
    yield "train-micro", _training(step=_micro_step, stage=2)
    yield "train-rate", _training(step=_rate_step)
    yield "train-skip", _training(step=_skip_step, say=_say_skipped)
    yield "train-weights", _training(step=_weighted_step, divisor=Divisor.WEIGHTS)
    yield "train-replicas", _training(
        step=_replica_step, say=_say_synced, replica_ranks=1, sync_period=2, outer_lr=0.7, outer_momentum=0.9
    )
    yield "train-custom", _training(step=_custom_step, algorithm="custom", custom_slots=1)
    yield "train-custom-views", _training(step=_custom_step, say=_say_views, algorithm="custom", custom_slots=1)
    yield "train-acquired", _training(say=_say_acquired, stage=3)
    yield "precision-bf16", _training(dtype=Dtype.BF16)
    yield "slots", _training(say=_say_slots, dtype=Dtype.BF16)
    yield "scalars", _training(say=_say_scalars)
    yield "moments", _training(say=_say_moments)
    yield "init-normal", _training(begin=_init_normal, step=_no_step)
    yield "rows", ranks.on(3, _rows)
    yield "rows-error", ranks.on(1, _rows_error)
    yield "module-buffer", ranks.on(3, _module_buffer)
    yield "verify", _training(say=_say_verified)
    yield "traffic", _training(say=_say_traffic, overlap=0)
    yield "memory-formula", _training(say=_say_formula)
    yield "describe", _training(say=_say_described)
