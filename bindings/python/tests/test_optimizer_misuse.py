import ctypes
import unittest

import numpy as np
import ranks
from failing import TestCase
from libzero import Buffer, Config, Dtype, Memory, Optimizer, Slot, Source, Status, Sync
from libzero.library import zero
from small_model import SHAPE, begun, gradient, whole


class MisuseTest(TestCase):
    def test_numbers_that_were_not_given(self):
        with ranks.alone() as group, begun(group) as optimizer:
            for number in (-1, 1, 1 << 40):
                for call in (optimizer.param_acquire, optimizer.grad_acquire, optimizer.grad_ready, optimizer.read, optimizer.slots):
                    self.fails(Status.E_INVALID_ARGUMENT, call, number)
            self.fails(Status.E_INVALID_ARGUMENT, optimizer.module_buffer, 0)
            self.fails(Status.E_INVALID_ARGUMENT, optimizer.view, 99, Slot.PARAM)
            self.fails(Status.E_UNSUPPORTED, optimizer.read, 0, np.empty(12, np.float32), 99)
            self.fails(Status.E_INVALID_ARGUMENT, optimizer.begin, 9)
            with self.assertRaises(TypeError):
                optimizer.param_acquire("w")

    def test_arrays_of_wrong_type_or_size(self):
        with ranks.alone() as group, begun(group) as optimizer:
            with self.assertRaisesRegex(TypeError, "float64, but the gradient of w is float32"):
                optimizer.grad_ready(0, np.zeros(12))
            with self.assertRaisesRegex(TypeError, "float16, but w is float32"):
                optimizer.param_acquire(0, np.zeros(12, np.float16))
            with self.assertRaisesRegex(BufferError, "read-only"):
                optimizer.param_acquire(0, np.frombuffer(bytes(48), np.float32))
            with self.assertRaisesRegex(BufferError, "contiguous"):
                optimizer.grad_ready(0, np.zeros((3, 4), np.float32).T)
            with self.assertRaisesRegex(ValueError, "count is 11"):
                optimizer.grad_ready(0, gradient(0), count=11)
            self.fails(Status.E_INVALID_ARGUMENT, optimizer.param_acquire, 0, np.zeros(11, np.float32))
            self.fails(Status.E_INVALID_ARGUMENT, optimizer.grad_ready, 0, np.zeros(13, np.float32))
            self.fails(Status.E_INVALID_ARGUMENT, optimizer.grad_ready, 0, gradient(0), 1)
            self.fails(Status.E_INVALID_ARGUMENT, optimizer.write, 0, np.zeros(13, np.float32))
            self.fails(Status.E_STATE, optimizer.grad_ready, 0)
            self.assertEqual(optimizer._acquired.get(0, []), [])

    def test_arrays_of_another_shape(self):
        turned = np.zeros((3, 4), np.float32)
        with ranks.alone() as group, begun(group) as optimizer:
            for call, what in (
                (lambda: optimizer.grad_ready(0, turned), "the gradient of w"),
                (lambda: optimizer.param_acquire(0, turned), "w"),
                (lambda: optimizer.read(0, turned), "slot param of w"),
                (lambda: optimizer.write(0, turned, Slot.FIRST_MOMENT), "slot first_moment of w"),
            ):
                with self.assertRaisesRegex(ValueError, rf"shape \(3, 4\), but {what} has \(4, 3\)"):
                    call()
            self.assertEqual(optimizer._acquired.get(0, []), [])
            for good in (gradient(0), gradient(0).ravel()):
                optimizer.write(0, good)
                np.testing.assert_array_equal(optimizer.read(0, np.empty_like(good)), good)
                optimizer.begin(Source.SHARDS)
                optimizer.grad_ready(0, good)
                optimizer.step()
            optimizer.write(0, np.ones((2, 3), np.float32), offset=3)  # a part has no shape
            optimizer.param_acquire(0, np.empty(12, np.float32))

    def test_16_bit_types_are_named_as_libzero_does(self):
        with ranks.alone() as group, begun(group, dtype="bf16") as optimizer:
            self.assertEqual(optimizer.params[0].dtype, Dtype.BF16)
            with self.assertRaisesRegex(TypeError, r"float32, but the gradient of w is bf16 \(uint16\)"):
                optimizer.grad_ready(0, gradient(0))

    def test_calls_in_the_wrong_phase(self):
        with ranks.alone() as group, Optimizer(group) as optimizer:
            self.fails(Status.E_STATE, optimizer.step)
            self.fails(Status.E_STATE, optimizer.begin, Source.LOCAL)
            optimizer.add_param("w", SHAPE)
            optimizer.seal()
            self.fails(Status.E_STATE, optimizer.add_param, "v", SHAPE)
            self.fails(Status.E_STATE, optimizer.trace)
            self.assertEqual(len(optimizer.params), 1)

    def test_registration(self):
        with ranks.alone() as group, Optimizer(group) as optimizer:
            self.fails(Status.E_UNSUPPORTED, optimizer.add_param, "w", SHAPE, np.float64)
            self.fails(Status.E_INVALID_ARGUMENT, optimizer.add_param, "w", SHAPE, 99)
            self.fails(Status.E_INVALID_ARGUMENT, optimizer.add_param, "", SHAPE)
            self.fails(Status.E_UNSUPPORTED, optimizer.add_module_buffer, "m", SHAPE, np.int32, Sync.AVERAGE)
            for bad in (1.5, (1.5,), ("x",)):
                with self.assertRaises(TypeError):
                    optimizer.add_param("w", bad)
            with self.assertRaises(TypeError):
                optimizer.add_param("w", SHAPE, complex)

    def test_objects_of_another_kind(self):
        with ranks.alone() as group, Config() as config, Optimizer(group) as optimizer:
            for call, text in (
                (lambda: Optimizer(config), "a zero_group is needed, not a zero_config"),
                (lambda: optimizer.add_param("w", SHAPE, config=group), "a zero_config is needed, not a zero_group"),
                (lambda: optimizer.add_set(optimizer), "a zero_config is needed, not a zero_optimizer"),
            ):
                with self.assertRaisesRegex(TypeError, text):
                    call()
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
        with self.assertRaisesRegex(TypeError, "a zero_group is needed, not a capsule without a name"):
            zero.zero_group_rank(new(1, None, None))

    def test_names_stand_for_values_and_an_integer_for_a_shape(self):
        with ranks.alone() as group, Optimizer(group, Config(lr=0.25)) as optimizer:
            self.assertEqual(repr(optimizer), "Optimizer(no parameters)")
            optimizer.add_param("w", 3, "f16")
            optimizer.add_param("b", np.int64(2))
            optimizer.add_module_buffer("m", 4, "u8", "broadcast")
            self.assertEqual([param.shape for param in optimizer.params], [(3,), (2,)])
            self.assertEqual([param.dtype for param in optimizer.params], [Dtype.F16, Dtype.F32])
            self.assertEqual(repr(optimizer), "Optimizer(parameters w, b)")
            optimizer.seal()
            with self.assertRaisesRegex(TypeError, "no source 'locl'; there are local, root, shards"):
                optimizer.begin("locl")
            optimizer.init_param(1, "constant", 2)
            optimizer.begin("shards")
            optimizer.micro_step("last")
            optimizer.step()
            self.assertEqual((optimizer.get_f64("lr"), optimizer.get_i64("step_count")), (0.25, 1))
            self.assertEqual(optimizer.memory("param").now_nbytes, optimizer.memory(Memory.PARAM).now_nbytes)
            self.assertEqual(sum(view.data.size for view in optimizer.views("first_moment")), 5)
            self.assertEqual(optimizer.read(1, np.empty(2, np.float32), "second_moment").tolist(), [0, 0])
            self.assertIn("slot=<Slot.MASTER: 3>", repr(optimizer.slots(0)))
            self.assertGreater(optimizer.traffic("all_gather").struct_size, 0)
        self.assertEqual(repr(optimizer), "Optimizer(closed)")

    def test_extents_of_any_integer_type_are_integers(self):
        with ranks.alone() as group, Optimizer(group) as optimizer, Buffer(group, True) as buffer:
            optimizer.add_param("big", np.array([1 << 16, 1 << 16], np.int32))
            self.assertEqual(optimizer.params[0].count, 1 << 32)
            with buffer.whole() as data:
                self.assertEqual(data.tolist(), [0])
        with ranks.alone() as group, Optimizer(group) as optimizer:
            optimizer.add_param("w", (True, 2))
            optimizer.add_module_buffer("m", True)
            optimizer.seal()
            self.assertEqual((whole(optimizer).tolist(), optimizer.module_buffer(0).tolist()), ([[0, 0]], [0]))

    def test_an_order_is_what_it_was_when_the_call_began(self):
        class Changing:
            def __index__(self):
                ids[1] = 7
                return 0

        with ranks.alone() as group, Optimizer(group) as optimizer:
            optimizer.add_param("w", SHAPE)
            optimizer.add_param("b", SHAPE)
            ids = [Changing(), 1]
            optimizer.set_order(ids)

    def test_the_slots_of_ones_own_algorithm_have_names(self):
        with ranks.alone() as group, Config(algorithm="custom", custom_slots=2) as config, begun(group, config) as optimizer:
            self.assertEqual([kept.slot for kept in optimizer.slots(0)], [Slot.PARAM, Slot.CUSTOM, Slot.CUSTOM + 1])
            with self.assertRaisesRegex(TypeError, r"float64, but slot custom\+1 of w is float32"):
                optimizer.read(0, np.empty(12), Slot.CUSTOM + 1)

    def test_a_step_with_a_nan_is_skipped_by_all(self):
        def body(group):
            with begun(group) as optimizer:
                optimizer.grad_ready(0, gradient(0) * (np.nan if group.rank else 1))
                result = optimizer.step()
                return result.skipped, result.step, float(np.abs(whole(optimizer)).sum())

        self.assertEqual(ranks.run(2, body), [(1, 0, 0.0)] * 2)

    def test_use_after_close(self):
        with ranks.alone() as group:
            optimizer = begun(group)
            optimizer.close()
            for call in (optimizer.step, optimizer.describe, optimizer.view_count):
                self.fails(Status.E_BAD_HANDLE, call)
            self.fails(Status.E_BAD_HANDLE, optimizer.grad_ready, 0, gradient(0))


if __name__ == "__main__":
    unittest.main()
