import contextlib
import importlib
import unittest

import numpy as np
import ranks
from failing import TestCase
from libzero import Buffer, Config, Dtype, Optimizer, Slot, Source, Status, as_bf16, from_bf16, numpy_dtype, to_bf16
from small_model import SHAPE, begun, gradient, whole


class Tensor:
    """What another package's tensor shows of itself."""

    def __init__(self, data, device=1):
        self.data = data
        self.device = device

    def __dlpack__(self):
        return self.data.__dlpack__()

    def __dlpack_device__(self):
        return self.device, 0


class Copied(Tensor):
    """Asks for a copy."""

    def __dlpack__(self):
        return self.data.__dlpack__(copy=True)


def package(name):
    """A package that is no part of what libzero needs."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise unittest.SkipTest(f"no {name} is installed") from None


class Bf16Test(TestCase):
    def test_plain_uint16_is_refused_everywhere(self):
        bits = np.full(12, 0x3F80, np.uint16)
        with ranks.alone() as group:
            for call in (group.all_reduce, group.broadcast, lambda bits: group.all_gather(bits, bits.copy())):
                with self.assertRaisesRegex(TypeError, "uint16 elements are not taken for bf16"):
                    call(bits)
            with self.assertRaisesRegex(TypeError, "uint16 elements are not taken for bf16"):
                Buffer(group, 3, np.uint16)
            with self.assertRaisesRegex(TypeError, "int16 have no element type in libzero; those that have one are (?!.*uint16)"):
                group.broadcast(bits.view(np.int16))
            with begun(group, dtype="bf16") as optimizer:
                with self.assertRaisesRegex(TypeError, "the array is uint16, but the gradient of w is bf16"):
                    optimizer.grad_ready(0, bits)
                optimizer.grad_ready(0, as_bf16(bits))
                optimizer.step()
                with self.assertRaisesRegex(TypeError, "the array is uint16, but slot param of w is bf16"):
                    optimizer.read(0, np.empty(12, np.uint16))

    def test_the_mark_stays_with_memory(self):
        values = to_bf16(np.ones(SHAPE, np.float32))
        with ranks.alone() as group:
            for kept in (values, values[1:], values.reshape(-1), values.copy(), np.empty_like(values), np.zeros(3, numpy_dtype(Dtype.BF16))):
                group.broadcast(np.ascontiguousarray(kept))
            with self.assertRaisesRegex(TypeError, "uint16"):
                group.broadcast(values.astype(np.uint32).astype(np.uint16))
        self.assertEqual(from_bf16(np.array([0x3F80], np.uint16)).tolist(), [1])

    def test_types_of_ml_dtypes_are_what_they_say(self):
        ml_dtypes = package("ml_dtypes")
        with ranks.alone() as group, begun(group, dtype=ml_dtypes.bfloat16) as optimizer:
            self.assertEqual(optimizer.params[0].dtype, Dtype.BF16)
            optimizer.grad_ready(0, gradient(0).astype(ml_dtypes.bfloat16))
            optimizer.step()
            sums = group.all_reduce(np.ones(3, ml_dtypes.bfloat16))
            self.assertEqual(from_bf16(sums).tolist(), [1, 1, 1])


class DlpackTest(TestCase):
    def test_tensors_are_read_where_they_lie(self):
        def train(tensor_of):
            def body(group):
                with begun(group, Config(stage=2, algorithm="sgd", lr=1.0)) as optimizer:
                    optimizer.grad_ready(0, tensor_of(gradient(group.rank)))
                    optimizer.step()
                    return whole(optimizer).tolist()

            return ranks.run(2, body)

        self.assertEqual(train(Tensor), train(lambda array: array))

    def test_results_are_written_where_they_are_wanted(self):
        with ranks.alone() as group, begun(group) as optimizer:
            out = np.ones(12, np.float32)
            self.assertEqual(optimizer.read(0, Tensor(out)).ctypes.data, out.ctypes.data)
            self.assertEqual(out.tolist(), [0] * 12)
            sums = np.empty(2, np.int64)
            group.all_reduce(Tensor(np.array([1, 2])), Tensor(sums))
            self.assertEqual(sums.tolist(), [1, 2])

    def test_a_parameter_is_not_released_while_an_exported_tensor_lives(self):
        for stage in (0, 1, 2, 3):
            with ranks.alone() as group, begun(group, Config(stage=stage)) as optimizer:
                with self.assertRaisesRegex(BufferError, "parameter w cannot be released: a tensor that was exported"), optimizer.param(0) as data:
                    exported = np.from_dlpack(data[1:])
                piece = exported[1:]
                del exported, data
                with self.assertRaisesRegex(BufferError, "parameter w"):
                    optimizer.param_release(0)
                optimizer.param_acquire(0)
                optimizer.param_release(0)  # one of two
                del piece
                optimizer.param_release(0)
                self.fails(Status.E_STATE, optimizer.param_release, 0)
                with optimizer.param(0) as data:
                    np.from_dlpack(data)
                optimizer.step()

    def test_8_bit_floats_are_named_by_their_types_where_the_library_has_them(self):
        types = [package("ml_dtypes").float8_e4m3fn]
        given = [np.ones(3, types[0])]
        with contextlib.suppress(unittest.SkipTest):
            torch = package("torch")
            types.append(torch.float8_e4m3fn)
            given.append(torch.ones(3).to(torch.float8_e4m3fn))
        codes = []
        for kind in types:
            config = Config(algorithm="sgd", lr=1.0, param_dtype=kind)
            with ranks.alone() as group, Optimizer(group, config) as optimizer:
                optimizer.add_param("w", (256,))
                optimizer.seal()
                optimizer.init_param(0, "normal", 0, 1, seed=3)
                optimizer.begin(Source.SHARDS)
                codes.append(optimizer.read(0, np.empty(256, types[0]), Slot.PARAM).tolist())
        self.assertEqual(codes, codes[:1] * len(types))
        with self.assertRaisesRegex(TypeError, "int32|an int, a float"):
            Config(lr=np.int32)
        with ranks.alone() as group:
            for values in given:
                self.fails(Status.E_INVALID_ARGUMENT, group.all_reduce, values)

    def test_steps_between_elements_are_kept(self):
        table = np.arange(12, dtype=np.float32).reshape(3, 4)
        with ranks.alone() as group:
            with self.assertRaisesRegex(BufferError, "not contiguous"):
                group.all_reduce(Tensor(table.T))
            self.assertEqual(group.all_reduce(Tensor(table[1:])).tolist(), table[1:].tolist())
            self.assertEqual(group.all_reduce(Tensor(table[:0])).shape, (0, 4))

    def test_what_has_no_element_type_or_lies_elsewhere_is_refused(self):
        with ranks.alone() as group:
            with self.assertRaisesRegex(TypeError, "the test_dlpack.Tensor lies on a device"):
                group.all_reduce(Tensor(np.ones(3, np.float32), device=2))
            for kind in (np.complex64, np.int16):
                with self.assertRaisesRegex(TypeError, "no element type in libzero"):
                    group.all_reduce(Tensor(np.ones(3, kind)))
            with self.assertRaisesRegex(TypeError, "uint16 elements are not taken for bf16"):
                group.all_reduce(Tensor(np.ones(3, np.uint16)))

    def test_memory_of_the_library_is_given_without_a_copy(self):
        with ranks.alone() as group, begun(group) as optimizer, optimizer.param(0) as data:
            self.assertFalse(data.flags.writeable)
            self.assertEqual(np.from_dlpack(data).ctypes.data, data.ctypes.data)
            self.assertEqual(np.from_dlpack(data).shape, SHAPE)
            self.assertNotEqual(np.from_dlpack(Copied(data)).ctypes.data, data.ctypes.data)
            with self.assertRaisesRegex(BufferError, "lies on the host"):
                data.__dlpack__(dl_device=(2, 0))
            acquired, _ = optimizer.grad_acquire(0)
            group.all_reduce(np.ones(SHAPE, np.float32), Tensor(acquired))
            self.assertEqual(acquired.tolist(), np.ones(SHAPE).tolist())
            optimizer.grad_ready(0)

    def test_bf16_memory_is_told_as_bf16(self):
        with ranks.alone() as group, begun(group, dtype="bf16") as optimizer, optimizer.param(0) as data:
            with self.assertRaises((RuntimeError, BufferError, TypeError)):
                np.from_dlpack(data)  # NumPy has no such type
            self.assertEqual(group.all_reduce(Tensor(data)).dtype.metadata, {"libzero": "BF16"})


class TorchTest(TestCase):
    def test_tensors_of_torch_train_without_a_copy(self):
        torch = package("torch")
        for dtype, name in ((torch.float32, Dtype.F32), (torch.bfloat16, Dtype.BF16), (torch.float16, Dtype.F16)):
            with ranks.alone() as group, Config(algorithm="sgd", lr=1.0) as config, Optimizer(group, config) as optimizer:
                weight = optimizer.add_param("weight", SHAPE, dtype)
                self.assertEqual(optimizer.params[weight].dtype, name)
                optimizer.seal()
                first = torch.arange(12, dtype=torch.float32).reshape(SHAPE).to(dtype)
                torch.from_dlpack(optimizer.param_acquire(weight)).copy_(first)
                optimizer.param_release(weight)
                optimizer.begin(Source.LOCAL)
                optimizer.grad_ready(weight, torch.ones(SHAPE, dtype=dtype))
                optimizer.step()
                with optimizer.param(weight) as data:
                    tensor = torch.from_dlpack(data)
                    self.assertEqual((tensor.data_ptr(), tensor.dtype), (data.ctypes.data, dtype))
                    self.assertTrue(torch.equal(tensor, first - 1))
                    del tensor
                out = torch.zeros(SHAPE, dtype=dtype)
                optimizer.param_acquire(weight, out)
                optimizer.param_release(weight)
                self.assertTrue(torch.equal(out, first - 1))

    def test_a_tensor_that_is_part_of_a_graph_is_torchs_error(self):
        torch = package("torch")
        with ranks.alone() as group, self.assertRaisesRegex(Exception, "detach"):
            group.all_reduce(torch.ones(3, requires_grad=True))


class JaxTest(TestCase):
    def test_arrays_of_jax_are_read_and_never_written(self):
        jax = package("jax")
        with ranks.alone() as group:
            for dtype in (jax.numpy.float32, jax.numpy.bfloat16):
                self.assertEqual(group.all_reduce(jax.numpy.ones(3, dtype)).shape, (3,))
            with self.assertRaisesRegex(BufferError, "read-only"):
                group.broadcast(jax.numpy.ones(3))


if __name__ == "__main__":
    unittest.main()
