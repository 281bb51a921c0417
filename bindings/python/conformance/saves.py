"""Runs that go on from a save, what else a save holds, and saves as tools see them."""

import functools
import os
import tempfile

import numpy as np
from libzero import Buffer, Checkpoint, Config, Key, Part, Save, Scope, list_saves, prunable_saves, remove_save

import ranks
from model import Model
from values import values
from words import hash_of, status_of

STEPS = 5
COUNT = 10
BUFFER_COUNT = 1000


def _in_folder(*worlds):
    """What the ranks of one world after the other say; each is (ranks, body), and bodies get the folder and the group."""
    with tempfile.TemporaryDirectory() as folder:
        said = [ranks.run(size, functools.partial(body, folder)) for size, body in worlds]
        return " ".join(filter(None, said))


def _words(*words):
    return " ".join(str(word) for word in words if word is not None) or None


def _train(model, steps):
    for t in steps:
        model.step(t)


def _sealed(group, stage=1):
    model = Model(group, stage=stage)
    model.optimizer.seal()
    return model


def _on_root(model, value):
    return value if model.rank == 0 else None


def _train_and_save(folder, group):
    with _sealed(group) as model:
        found = model.optimizer.resume(folder)
        model.begin()
        _train(model, range(STEPS))
        model.optimizer.save(folder)
        return _on_root(model, f"{found:d}")


def _resume_and_train(folder, group):
    with _sealed(group, 3) as model:
        found = model.optimizer.resume(folder)
        steps = model.optimizer.get_i64(Key.STEP_COUNT)
        first = model.say_result()
        _train(model, [STEPS])
        return _words(_on_root(model, f"{found:d} {steps}"), first, model.say_result())


def _tensors(checkpoint, one, each):
    checkpoint.add_tensor("one", one, Scope.ONE)
    checkpoint.add_tensor("each", each, Scope.EACH)


def _save_tensors(folder, group):
    with Checkpoint(group) as checkpoint:
        _tensors(checkpoint, values(COUNT, group.rank), values(COUNT, group.rank, np.int64))
        checkpoint["epoch"] = "3/10"
        checkpoint.save(folder)


def _load_tensors(folder, group):
    one, each = np.zeros(COUNT, np.float32), np.zeros(COUNT, np.int64)
    with Checkpoint(group) as checkpoint:
        _tensors(checkpoint, one, each)
        checkpoint.load(folder)
        texts = _words(checkpoint["epoch"], status_of(checkpoint.__getitem__, "gone")) if group.rank == 0 else None
    return _words(texts, hash_of(one), hash_of(each))


def _save_table(folder, group):
    with Buffer(group, BUFFER_COUNT) as buffer, Checkpoint(group) as checkpoint:
        checkpoint.add_buffer("table", buffer)
        buffer.write(0, values(BUFFER_COUNT if group.rank == 0 else 0, 0))
        checkpoint.save(folder)


def _load_table(folder, group):
    with Buffer(group, BUFFER_COUNT) as buffer, Checkpoint(group) as checkpoint:
        checkpoint.add_buffer("table", buffer)
        step = checkpoint.load(folder).step
        return _words(step if group.rank == 0 else None, hash_of(buffer.shard().data))


def _save_a_b(folder, group):
    with Checkpoint(group) as checkpoint:
        for series, name in enumerate("ab"):
            checkpoint.add_tensor(name, values(COUNT, series))
        checkpoint.save(folder)


def _load_b_c(folder, group):
    b, c = np.zeros(COUNT, np.float32), values(COUNT, 2)
    with Checkpoint(group) as checkpoint:
        _add(checkpoint, b=b, c=c)
        status = status_of(checkpoint.load, folder)
    with Config(checkpoint_missing=1, checkpoint_extra=1) as config, Checkpoint(group, config) as checkpoint:
        _add(checkpoint, b=b, c=c)
        result = checkpoint.load(folder)
        return _words(status, result.missing, result.extra, *checkpoint.skipped(), hash_of(b), hash_of(c))


def _add(checkpoint, **arrays):
    for name, array in arrays.items():
        checkpoint.add_tensor(name, array)


def _save_old(folder, group):
    with _sealed(group) as model, Checkpoint(group) as checkpoint:
        model.begin()
        _train(model, range(STEPS))
        checkpoint.add_optimizer(model.optimizer, "old.")
        checkpoint.save(folder)


def _load_new(folder, group):
    with _sealed(group) as model, Checkpoint(group) as checkpoint:
        checkpoint.add_optimizer(model.optimizer, "new.")
        checkpoint.rename("old.*", "new.*")
        result = checkpoint.load(folder, Part.PARAMS)
        return _words(result.missing, result.extra, model.optimizer.get_i64(Key.STEP_COUNT), model.say_result())


def _save_in_background(folder, group):
    with _sealed(group, 2) as model, Checkpoint(group) as checkpoint:
        model.begin()
        _train(model, [0])
        checkpoint.add_optimizer(model.optimizer)
        with checkpoint.save_async(folder) as saving:
            _train(model, [1, 2])
        return _on_root(model, str(saving.result.step))


def _resume_alone(folder, group):
    with _sealed(group) as model:
        found = model.optimizer.resume(folder)
        return _words(int(found), model.optimizer.get_i64(Key.STEP_COUNT), model.say_result())


def _save_twice(folder, group):
    with _sealed(group) as model:
        model.begin()
        for t in range(2):
            _train(model, [t])
            model.optimizer.save(folder)


def _compare(folder, group):
    names = [save["name"] for save in list_saves(folder)]
    with Save(os.path.join(folder, names[0])) as newest, Save(os.path.join(folder, names[1])) as older:
        verified = status_of(newest.verify)
        return _words(len(names), verified, len(newest.compare(older)), len(newest.compare(newest)))


def _remove(folder, group):
    newest, older = (save["name"] for save in list_saves(folder))
    prunable = len(prunable_saves(folder, 1))
    return _words(prunable, *(status_of(remove_save, folder, name) for name in (older, newest, older)))


def _find_nothing(folder, group):
    with _sealed(group) as model, Checkpoint(group) as checkpoint:
        checkpoint.add_optimizer(model.optimizer)
        nothing = status_of(Save, folder), status_of(checkpoint.load, folder)
        before_begin = status_of(checkpoint.save, folder)
        model.begin()
        return _words(*nothing, status_of(checkpoint.save, os.path.join(folder, "no")), before_begin)


def _stop(group):
    reasons = []
    with _sealed(group) as model:
        model.begin()
        for t in range(4):
            if t == 2 and group.rank == 1:
                model.optimizer.request_stop(7)
            model.step(t)
            reasons.append(model.result.stop_reason)
    return _words(*reasons[2:])


def scenarios():
    yield "save-resume", lambda: _in_folder((3, _train_and_save), (2, _resume_and_train))
    yield "save-tensors", lambda: _in_folder((2, _save_tensors), (3, _load_tensors))
    yield "save-buffer", lambda: _in_folder((3, _save_table), (2, _load_table))
    yield "save-names", lambda: _in_folder((1, _save_a_b), (1, _load_b_c))
    yield "save-renamed", lambda: _in_folder((1, _save_old), (1, _load_new))
    yield "save-background", lambda: _in_folder((2, _save_in_background), (1, _resume_alone))
    yield "save-compare", lambda: _in_folder((1, _save_twice), (1, _compare))
    yield "save-remove", lambda: _in_folder((1, _save_twice), (1, _remove))
    yield "save-nothing", lambda: _in_folder((1, _find_nothing))
    yield "stop", ranks.on(3, _stop)
