import json
import unittest

import numpy as np
import ranks
from failing import TestCase
from libzero import (
    Config,
    Divisor,
    Dtype,
    Finding,
    Initialiser,
    Key,
    Master,
    Memory,
    MicroStep,
    Operation,
    Optimizer,
    Slot,
    Source,
    Status,
    Sync,
    Unfilled,
)
from small_model import SHAPE, begun, gradient, whole


class TrainingTest(TestCase):
    def test_plain_sgd_is_what_numpy_computes(self):
        def body(group):
            with Config(algorithm="sgd", lr=0.5, stage=group.size) as config, begun(group, config) as optimizer:
                for step in range(3):
                    optimizer.grad_ready(0, gradient(group.rank, step))
                    result = optimizer.step()
                self.assertEqual((result.step, result.skipped, result.unfilled_count), (3, 0, 0))
                return whole(optimizer)

        expected = -0.5 * sum((gradient(0, step) + gradient(1, step)) / 2 for step in range(3))
        for found in ranks.run(2, body):
            self.assertEqual((found.dtype, found.tolist()), (np.float32, expected.tolist()))

    def test_adamw_of_all_stages_is_what_numpy_computes(self):
        def body(stage, group):
            with Config(stage=stage, lr=0.125) as config, begun(group, config) as optimizer:
                optimizer.grad_ready(0, gradient(group.rank))
                optimizer.step()
                return whole(optimizer)

        mean = (gradient(0) + gradient(1)) / 2
        expected = -0.125 * mean / (np.abs(mean) + 1e-8)
        for stage in range(4):
            for found in ranks.run(2, lambda group: body(stage, group)):
                np.testing.assert_allclose(found, expected, rtol=1e-6)

    def test_gradients_by_rows(self):
        def body(group):
            with Config(algorithm="sgd", lr=1, stage=1) as config, Config(rows=1) as by_rows, Optimizer(group, config) as optimizer:
                optimizer.add_param("table", (200, 2), config=by_rows)
                optimizer.seal()
                optimizer.begin(Source.LOCAL)
                with self.assertRaisesRegex(ValueError, "3 elements, but 2 rows of table have 4"):
                    optimizer.grad_ready_rows(0, [1, 2], np.ones(3, np.float32))
                with self.assertRaises(TypeError):
                    optimizer.grad_ready_rows(0, [1], np.ones(2))
                optimizer.grad_ready_rows(0, [7, group.rank, 7], np.arange(6, dtype=np.float32).reshape(3, 2))
                optimizer.step()
                out = np.empty((200, 2), np.float32)
                optimizer.read(0, out)
                return out

        expected = np.zeros((200, 2), np.float32)
        expected[7], expected[0], expected[1] = (-4, -6), (-1, -1.5), (-1, -1.5)
        for found in ranks.run(2, body):
            np.testing.assert_array_equal(found, expected)

    def test_gradients_in_the_optimizers_memory_and_in_parts(self):
        def body(group):
            with Config(algorithm="sgd", lr=1) as config, begun(group, config) as optimizer:
                data, accumulate = optimizer.grad_acquire(0)
                self.assertEqual((data.shape, data.dtype, accumulate), (SHAPE, np.float32, False))
                data[:] = gradient(group.rank)
                optimizer.grad_ready(0, count=5)
                optimizer.grad_ready(0, offset=5)
                optimizer.step()
                flat = gradient(group.rank).ravel()
                optimizer.grad_ready(0, flat[7:], offset=7)
                optimizer.grad_ready(0, flat[:7])
                optimizer.step()
                return whole(optimizer)

        np.testing.assert_array_equal(ranks.run(2, body)[0], -(gradient(0) + gradient(1)))

    def test_micro_steps_add_up(self):
        def body(group):
            with Config(algorithm="sgd", lr=1, stage=2) as config, begun(group, config) as optimizer:
                for kind in (MicroStep.LOCAL, MicroStep.REDUCE, MicroStep.LAST):
                    optimizer.micro_step(kind)
                    optimizer.grad_ready(0, gradient(0))
                optimizer.step()
                return whole(optimizer)

        np.testing.assert_array_equal(ranks.run(2, body)[1], -3 * gradient(0))

    def test_weights(self):
        def body(group):
            with Config(algorithm="sgd", lr=1, divisor=Divisor.WEIGHTS) as config, begun(group, config) as optimizer:
                optimizer.set_weight(group.rank * 2.0)
                optimizer.grad_ready(0, gradient(group.rank))
                optimizer.step()
                return whole(optimizer)

        np.testing.assert_array_equal(ranks.run(2, body)[0], -gradient(1))

    def test_an_algorithm_of_ones_own_on_views(self):
        def body(group):
            with Config(algorithm="custom", custom_slots=2, stage=2) as config, begun(group, config) as optimizer:
                optimizer.grad_ready(0, gradient(group.rank))
                self.assertEqual(optimizer.reduce().skipped, 0)
                views = [optimizer.views(slot) for slot in (Slot.GRAD, Slot.PARAM, Slot.CUSTOM + 1)]
                for grad, param, mine in zip(*views):
                    mine.data[:] = grad.data
                    param.data[:] -= 2 * mine.data
                optimizer.gather()
                self.assertEqual(len(views[0]), optimizer.view_count())
                return whole(optimizer), sum(view.data.size for view in views[0])

        (first, mine), (_, others) = ranks.run(2, body)
        np.testing.assert_array_equal(first, -(gradient(0) + gradient(1)))
        self.assertEqual(mine + others, 12)

    def test_the_parts_of_a_step(self):
        with ranks.alone() as group, Config(algorithm="sgd", lr=1, grad_norm=1) as config, begun(group, config) as optimizer:
            optimizer.grad_ready(0, gradient(0))
            self.assertAlmostEqual(optimizer.reduce().grad_norm, float(np.linalg.norm(gradient(0))), places=6)
            optimizer.apply()
            optimizer.gather()
            np.testing.assert_array_equal(whole(optimizer), -gradient(0))

    def test_parameter_sets_rates_and_scalars(self):
        with ranks.alone() as group, Config(algorithm="sgd", lr=1) as config, Optimizer(group, config) as optimizer:
            with Config(lr=0.5) as slow:
                number = optimizer.add_set(slow)
            with Config(set=number) as options:
                self.assertEqual([optimizer.add_param("a", (2,)), optimizer.add_param("b", (2,), config=options)], [0, 1])
            optimizer.set_order([1, 0])
            optimizer.set_gather_order((0, 1, 1, 0))
            optimizer.seal()
            optimizer.begin(Source.LOCAL)
            optimizer.set_f64(Key.LR, 0.25, number)
            self.assertEqual((optimizer.get_f64(Key.LR), optimizer.get_f64(Key.LR, number)), (1, 0.25))
            for param in (1, 0):
                optimizer.grad_ready(param, np.ones(2, np.float32))
            optimizer.step()
            self.assertEqual((whole(optimizer, 0)[0], whole(optimizer, 1)[0]), (-1, -0.25))
            optimizer.set_i64(Key.STEP_COUNT, 40)
            self.assertEqual(optimizer.get_i64(Key.STEP_COUNT), 40)

    def test_model_group(self):
        def body(group):
            with group.split(group.rank) as replicas, Config(algorithm="sgd", lr=1, grad_norm=1) as config:
                with Optimizer(replicas, config) as optimizer:
                    optimizer.set_model_group(group)
                    optimizer.add_param("part", (4,))
                    optimizer.seal()
                    optimizer.begin(Source.LOCAL)
                    optimizer.grad_ready(0, np.full(4, 2, np.float32))
                    return optimizer.step().grad_norm

        self.assertEqual(ranks.run(4, body), [8.0] * 4)


class ParametersTest(TestCase):
    def test_first_values_are_written_in_place_and_then_read_only(self):
        def body(group):
            with Config(stage=3) as config, Optimizer(group, config) as optimizer:
                param = optimizer.add_param("w", SHAPE)
                optimizer.seal()
                with optimizer.param(param) as data:
                    self.assertEqual((data.shape, data.dtype), (SHAPE, np.float32))
                    data[:] = gradient(group.rank)
                optimizer.begin(Source.ROOT)
                with optimizer.param(param) as data:
                    with self.assertRaises(ValueError):
                        data[0] = 1
                    with self.assertRaises(ValueError):
                        data.flags.writeable = True
                    return data.copy()

        for found in ranks.run(2, body):
            np.testing.assert_array_equal(found, gradient(0))

    def test_a_parameter_goes_into_memory_of_the_caller(self):
        def body(group):
            with Config(stage=3) as config, begun(group, config) as optimizer:
                out = np.ones(12, np.float32)
                self.assertIs(optimizer.param_acquire(0, out), out)
                again = optimizer.param_acquire(0)
                np.testing.assert_array_equal(again, np.zeros(SHAPE))
                optimizer.param_release(0)
                optimizer.param_release(0)
                self.fails(Status.E_STATE, optimizer.param_release, 0)
                self.assertEqual(optimizer._acquired, {0: []})
                return out.sum()

        self.assertEqual(ranks.run(2, body), [0, 0])

    def test_bf16_is_uint16_and_f16_float16(self):
        with ranks.alone() as group, Config(stage=1) as config:
            for dtype, kind in ((Dtype.BF16, np.uint16), ("bf16", np.uint16), (np.float16, np.float16)):
                with begun(group, config, dtype) as optimizer, optimizer.param(0) as data:
                    self.assertEqual((data.dtype, optimizer.params[0].kind), (kind, kind))
                    self.assertEqual(optimizer.grad_acquire(0)[0].dtype, kind)

    def test_gradients_have_the_type_that_was_asked_for(self):
        with ranks.alone() as group, Config(grad_dtype=Dtype.F32) as all_f32, Optimizer(group, all_f32) as optimizer:
            with Config(grad_dtype=0) as own, Config(grad_dtype=Dtype.F16) as f16, Config(tied_to=2) as tied:
                for number, config in enumerate((None, own, f16, tied)):
                    self.assertEqual(optimizer.add_param(f"p{number}", (2,), Dtype.BF16, config), number)
            optimizer.seal()
            optimizer.begin(Source.LOCAL)
            kinds = [np.float32, np.uint16, np.float16, np.float16]
            self.assertEqual([param.grad_kind for param in optimizer.params], kinds)
            for param in range(3):
                optimizer.grad_acquire(param)[0][:] = 1
                optimizer.grad_ready(param)
            optimizer.grad_ready(3, np.ones(2, np.float16))
            with self.assertRaisesRegex(TypeError, "float32, but the gradient of p3 is float16"):
                optimizer.grad_ready(3, np.ones(2, np.float32))
            self.assertEqual(optimizer.step().unfilled_count, 0)

    def test_scalars_and_empty_tensors(self):
        with ranks.alone() as group, Optimizer(group) as optimizer:
            optimizer.add_param("scalar", ())
            optimizer.add_param("empty", (3, 0))
            optimizer.seal()
            optimizer.begin(Source.LOCAL)
            self.assertEqual([whole(optimizer, 0).shape, whole(optimizer, 1).shape], [(), (3, 0)])
            data, accumulate = optimizer.grad_acquire(1)
            self.assertEqual((data.shape, accumulate), ((3, 0), False))
            optimizer.grad_ready(1)
            optimizer.grad_ready(0, np.float32(1).reshape(1))
            self.assertEqual(optimizer.step().unfilled_count, 0)

    def test_initialisers(self):
        def body(group):
            with Config(stage=3) as config, Optimizer(group, config) as optimizer:
                optimizer.add_param("constant", (500,))
                optimizer.add_param("uniform", (500,))
                optimizer.seal()
                optimizer.init_param(0, Initialiser.CONSTANT, 1.5)
                optimizer.init_param(1, Initialiser.UNIFORM, -1, 2, seed=3)
                optimizer.begin(Source.SHARDS)
                return whole(optimizer, 0), whole(optimizer, 1)

        (constant, uniform), (_, same) = ranks.run(2, body)
        np.testing.assert_array_equal(constant, np.full(500, 1.5))
        self.assertTrue(-1 <= uniform.min() < -0.9 and 1.9 < uniform.max() < 2)
        np.testing.assert_array_equal(uniform, same)

    def test_module_buffers(self):
        def body(group):
            with Optimizer(group) as optimizer:
                optimizer.add_param("w", SHAPE)
                first = optimizer.add_module_buffer("mean", (2, 2), rule=Sync.AVERAGE)
                second = optimizer.add_module_buffer("steps", (), np.int64, Sync.BROADCAST)
                self.assertEqual((first, second), (0, 1))
                optimizer.seal()
                mean, steps = optimizer.module_buffer(first), optimizer.module_buffer(second)
                mean[1] = 2 * group.rank
                steps[()] = 7 + group.rank
                optimizer.sync_module_buffers()
                return mean.tolist(), int(steps)

        self.assertEqual(ranks.run(2, body), [([[0, 0], [1, 1]], 7)] * 2)


class StateTest(TestCase):
    def test_a_run_is_saved_and_goes_on(self):
        def train(optimizer, rank, steps):
            for step in steps:
                optimizer.grad_ready(0, gradient(rank, step))
                optimizer.step()

        def saved(optimizer):
            return {kept.slot: optimizer.read(0, np.empty(kept.count, kept.kind), kept.slot) for kept in optimizer.slots(0)}

        def body(group):
            with Config(stage=2) as config:
                with begun(group, config) as through, begun(group, config) as first, begun(group, config) as second:
                    train(through, group.rank, range(4))
                    train(first, group.rank, range(2))
                    for slot, data in saved(first).items():
                        second.write(0, data if group.rank == 0 else None, slot)
                    second.set_i64(Key.STEP_COUNT, first.get_i64(Key.STEP_COUNT))
                    second.begin(Source.SHARDS)
                    train(second, group.rank, range(2, 4))
                    np.testing.assert_array_equal(whole(second), whole(through))
                    self.assertGreater(np.abs(whole(through)).min(), 0)

        ranks.run(2, body)

    def test_8_bit_slots_and_their_scales(self):
        keys = {"param_dtype": Dtype.F8_E4M3, "first_moment_dtype": Dtype.F8_E4M3, "second_moment_dtype": Dtype.F8_UE5M3}

        def body(group):
            with Config(stage=2, **keys) as config, Optimizer(group, config) as optimizer:
                optimizer.add_param("w", (1000,))
                optimizer.seal()
                optimizer.begin(Source.LOCAL)
                optimizer.grad_ready(0, np.linspace(-1, 1, 1000, dtype=np.float32))
                optimizer.step()
                self.assertEqual({kept.slot: kept.count for kept in optimizer.slots(0)}[Slot.PARAM_SCALE], 4)
                codes, scales = optimizer.read(0, np.empty(1000, np.uint8)), optimizer.read(0, np.empty(4, np.float32), Slot.PARAM_SCALE)
                views = optimizer.views(Slot.PARAM), optimizer.views(Slot.PARAM_SCALE)
                for code, scale in zip(*views):
                    self.assertEqual((code.data.dtype, scale.data.dtype), (np.uint8, np.float32))
                    np.testing.assert_array_equal(code.data, codes[code.offset :][: code.data.size])
                    np.testing.assert_array_equal(scale.data, scales[scale.offset // 256 :][: -(-code.data.size // 256)])
                return sum(view.data.size for view in views[1])

        self.assertEqual(sum(ranks.run(3, body)), 4)

    def test_updates_of_tensors_that_may_stay_untouched_are_counted(self):
        def count_of(optimizer, param):
            return optimizer.read(param, np.empty(1, np.int64), Slot.UPDATE_COUNT)[0]

        def body(group):
            with Config(stage=2, unfilled=Unfilled.UNTOUCHED) as config, Optimizer(group, config) as optimizer:
                for name in "vw":
                    optimizer.add_param(name, (1000,))
                optimizer.seal()
                optimizer.begin(Source.LOCAL)
                for step in range(3):
                    for param in (1, 0) if step == 1 else (0,):
                        optimizer.grad_ready(param, np.ones(1000, np.float32))
                    optimizer.step()
                self.assertEqual([count_of(optimizer, param) for param in range(2)], [3, 1])
                self.assertEqual({kept.slot: kept.count for kept in optimizer.slots(0)}[Slot.UPDATE_COUNT], 1)
                for view in optimizer.views("update_count"):
                    self.assertEqual((view.data.tolist(), view.data.flags.writeable), ([(3, 1)[view.param]], False))
                optimizer.set_i64("step_count", 9)
                optimizer.write(1, np.array([4]) if group.rank == 0 else None, Slot.UPDATE_COUNT)
                self.assertEqual([count_of(optimizer, param) for param in range(2)], [9, 4])

        ranks.run(2, body)

    def test_masters_have_their_own_type(self):
        with ranks.alone() as group, Config(master=Master.REMAINDER) as config, begun(group, config, Dtype.BF16) as optimizer:
            self.assertEqual(optimizer.slots(0)[1][:2], (Slot.MASTER, Dtype.U16))
            self.assertEqual(optimizer.views(Slot.MASTER)[0].data.dtype, np.uint16)
            with self.assertRaisesRegex(TypeError, "float32, but slot master of w is uint16"):
                optimizer.read(0, np.empty(12, np.float32), Slot.MASTER)

    def test_reduced_gradients_are_read_between_reduce_and_gather(self):
        with ranks.alone() as group, begun(group) as optimizer:
            out = np.empty(SHAPE, np.float32)
            self.fails(Status.E_STATE, optimizer.read, 0, out, Slot.GRAD)
            optimizer.grad_ready(0, gradient(0))
            optimizer.reduce()
            np.testing.assert_array_equal(optimizer.read(0, out, Slot.GRAD), gradient(0))
            optimizer.gather()

    def test_verify_finds_what_others_wrote(self):
        def body(group):
            with begun(group) as optimizer:
                self.assertEqual(optimizer.verify().found, Finding.NONE)
                if group.rank == 1:
                    with optimizer.param(0) as data:
                        at = data.__array_interface__["data"][0]
                    np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * 12).from_address(at))[3] = 1
                return optimizer.verify().found

        self.assertEqual(ranks.run(2, body), [Finding.REPLICAS] * 2)

    def test_statistics(self):
        with ranks.alone() as group, Config(trace_events=100) as config, begun(group, config) as optimizer:
            optimizer.grad_ready(0, gradient(0))
            optimizer.step()
            self.assertEqual(optimizer.memory(Memory.STATE).formula_nbytes, 2 * 4 * 12)
            self.assertEqual(optimizer.step_stats().step_count, 1)
            self.assertEqual(optimizer.traffic(Operation.BROADCAST).struct_size, 32)
            self.assertIn("adamw", optimizer.describe())
            self.assertGreater(len(json.loads(optimizer.trace())["traceEvents"]), 1)


if __name__ == "__main__":
    unittest.main()
