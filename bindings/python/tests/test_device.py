import gc
import tempfile
import unittest

import devices
import numpy as np
import ranks
from devices import Stream, config_on
from failing import TestCase
from libzero import Config, DeviceArray, Dtype, Optimizer, Slot, Source, Status, Tier
from libzero.dlpack import opened
from small_model import SHAPE, begun, gradient, whole

SHAPES = ((30, 20), (7,), (0,))
STEPS = 4


def values_of(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def first_values(rank, param):
    return values_of(SHAPES[param], param) if rank == 0 else np.zeros(SHAPES[param], np.float32)


def gradient_of(rank, step, param):
    return values_of(SHAPES[param], 100 * step + 10 * rank + param + 7)


class HostRun:
    """A training whose memory is the host's."""

    def __init__(self, group, config):
        self.optimizer = Optimizer(group, config)
        self.rank = group.rank
        for param, shape in enumerate(SHAPES):
            self.optimizer.add_param(f"p{param}", shape)
        self.optimizer.seal()

    def write_first(self, param, values):
        with self.optimizer.param(param) as data:
            data[...] = values

    def give(self, step):
        for param in range(len(SHAPES)):
            self.optimizer.grad_ready(param, gradient_of(self.rank, step, param))

    def whole(self, param):
        return whole(self.optimizer, param)

    def view(self, view):
        return view.data.copy()

    def run(self):
        for param in range(len(SHAPES)):
            self.write_first(param, first_values(self.rank, param))
        self.optimizer.begin(Source.ROOT)
        for step in range(STEPS):
            self.give(step)
            self.optimizer.step()
        params = [self.whole(param) for param in range(len(SHAPES))]
        moments = [(view.param, view.offset, self.view(view).tobytes()) for view in self.optimizer.views(Slot.SECOND_MOMENT)]
        slots = [self.optimizer.read(param, np.empty(SHAPES[param], np.float32), Slot.FIRST_MOMENT) for param in range(len(SHAPES))]
        return [values.tobytes() for values in params + slots], moments


class DeviceRun(HostRun):
    """The same, with gradients and parameters on a device, in the caller's memory or in the library's."""

    def __init__(self, group, config, stream, manner):
        super().__init__(group, config)
        self.stream, self.manner = stream, manner
        self.optimizer.stream = stream.number
        self.on_device = config.get("tier") == Tier.DEVICE

    def write_first(self, param, values):
        if not self.on_device:
            return super().write_first(param, values)
        with self.optimizer.param(param) as data:
            self.stream.put(values, data)

    def give(self, step):
        arrays = {param: gradient_of(self.rank, step, param) for param in range(len(SHAPES))}
        if self.manner == "bulk":
            self.optimizer.gradients({param: self.stream.put(array) for param, array in arrays.items()}).ready()
        for param, array in arrays.items():
            if self.manner == "given":
                self.optimizer.grad_ready(param, self.stream.put(array))
            elif self.manner == "dlpack":
                self.optimizer.grad_ready(param, Tensor(self.stream.put(array)))
            elif self.manner == "host":
                self.optimizer.grad_ready(param, array)
            elif self.manner == "acquired":
                memory, accumulate = self.optimizer.grad_acquire(param)
                assert isinstance(memory, DeviceArray) and not accumulate
                self.stream.put(array, memory)
                self.optimizer.grad_ready(param)

    def whole(self, param):
        if self.on_device and self.manner != "given":
            with self.optimizer.param(param) as data:
                assert data.device == self.stream.device and not data.writable and data.stream == self.stream.number
                return self.stream.get(data)
        dst = self.stream.empty(SHAPES[param])
        assert self.optimizer.param_acquire(param, dst) is dst
        self.optimizer.param_release(param)
        return self.stream.get(dst)

    def view(self, view):
        return self.stream.get(view.data) if self.on_device else super().view(view)


class Tensor:
    """A tensor of another package on a device. It notes the streams that it is asked for."""

    def __init__(self, memory, kind=2, export=None):
        self.memory, self.kind, self.export = memory, kind, export or {}
        self.streams = []

    def __dlpack_device__(self):
        return self.kind, self.memory.device

    def __dlpack__(self, *, stream, max_version=None):
        self.streams.append(stream)
        return self.memory.__dlpack__(stream=stream)


@devices.needed
class TrainingTest(TestCase):
    def compare(self, stage, size, tier, manner):
        keys = {"stage": stage, "lr": 0.01, "bucket_bytes": 1024}

        def host(group):
            return HostRun(group, Config(**keys)).run()

        def on_device(group):
            device = group.rank % 2
            with Stream(device) as stream:
                run = DeviceRun(group, config_on(device, tier=tier, **keys), stream, manner)
                outcome = run.run()
                run.optimizer.close()
                return outcome

        self.assertEqual(ranks.run(size, on_device), ranks.run(size, host))

    def test_memory_of_a_device_trains_with_the_bits_of_the_host(self):
        for stage in (0, 1, 2, 3):
            for tier, manners in ((Tier.HOST, ("given", "bulk", "dlpack")), (Tier.DEVICE, ("given", "bulk", "dlpack", "acquired", "host"))):
                for manner in manners:
                    with self.subTest(stage=stage, tier=tier, manner=manner):
                        self.compare(stage, 2 + stage % 2, tier, manner)

    def test_bf16(self):
        bits = np.arange(12, dtype=np.uint16) * 37 + 0x3F80
        for tier in Tier:
            with ranks.alone() as group, Stream() as stream:
                with begun(group, config_on(tier=tier, algorithm="sgd", lr=1.0), "bf16") as optimizer:
                    optimizer.stream = stream.number
                    optimizer.grad_ready(0, stream.put(bits, stream.empty(SHAPE, "bf16")))
                    optimizer.reduce()
                    kept = optimizer.read(0, np.empty(SHAPE, optimizer.params[0].grad_kind), Slot.GRAD)
                    self.assertEqual(kept.view(np.uint16).ravel().tolist(), bits.tolist())
                    optimizer.gather()


    def test_a_run_on_a_device_is_saved_and_resumed_on_the_host(self):
        with tempfile.TemporaryDirectory() as folder, ranks.alone() as group, Stream() as stream:
            with begun(group, config_on(tier=Tier.DEVICE)) as optimizer:
                optimizer.stream = stream.number
                optimizer.grad_ready(0, stream.put(gradient(0)))
                optimizer.step()
                optimizer.save(folder)
                optimizer.grad_ready(0, stream.put(gradient(1)))
                optimizer.step()
                expected = optimizer.read(0, np.empty(SHAPE, np.float32)).tolist()
            with Optimizer(group) as optimizer:
                optimizer.add_param("w", SHAPE)
                optimizer.seal()
                self.assertTrue(optimizer.resume(folder))
                optimizer.grad_ready(0, gradient(1))
                optimizer.step()
                self.assertEqual(whole(optimizer).tolist(), expected)


@devices.needed
class MisuseTest(TestCase):
    def test_memory_that_does_not_fit_the_optimizer(self):
        with ranks.alone() as group, Stream() as stream, Stream(1) as other:
            with begun(group) as optimizer:
                with self.assertRaisesRegex(ValueError, "lies on CUDA device 0, but the optimizer has no Key.DEVICE"):
                    optimizer.grad_ready(0, stream.empty(SHAPE))
                with self.assertRaisesRegex(ValueError, "no Key.DEVICE"):
                    optimizer.param_acquire(0, Tensor(DeviceArray(1 << 20, SHAPE)))
                optimizer.stream = stream.number
                self.fails(Status.E_UNSUPPORTED, optimizer.step)
            with begun(group, config_on(tier=Tier.DEVICE)) as optimizer:
                with self.assertRaisesRegex(ValueError, "lies on CUDA device 1, but the optimizer has Key.DEVICE 0"):
                    optimizer.grad_ready(0, other.empty(SHAPE))
                with self.assertRaisesRegex(ValueError, "belongs to stream 0x[0-9a-f]+, but Optimizer.stream is 0x0; set it"):
                    optimizer.grad_ready(0, stream.empty(SHAPE))
                claimed = DeviceArray(other.empty(SHAPE).address, SHAPE)
                self.assertIn("device 1", self.fails(Status.E_INVALID_ARGUMENT, optimizer.grad_ready, 0, claimed).text)
                optimizer.stream = other.number
                self.fails(Status.E_INVALID_ARGUMENT, optimizer.param_acquire, 0)
                optimizer.stream = stream.number
                with self.assertRaisesRegex(TypeError, "elements are bf16, but the gradient of w is f32"):
                    optimizer.grad_ready(0, stream.empty(SHAPE, "bf16"))
                with self.assertRaisesRegex(ValueError, r"shape \(3, 4\), but the gradient of w has \(4, 3\)"):
                    optimizer.gradients({0: stream.empty((3, 4))})
                with self.assertRaisesRegex(ValueError, "11 elements, but the gradient of w has 12"):
                    optimizer.gradients({0: stream.empty(11)})
                self.fails(Status.E_INVALID_ARGUMENT, optimizer.param_acquire, 0, stream.empty(11))
                with optimizer.param(0) as data, self.assertRaisesRegex(BufferError, "read-only"):
                    optimizer.param_acquire(0, data)
                self.assertEqual(optimizer._acquired.get(0, []), [])

    def test_calls_of_the_host_refuse_memory_of_a_device(self):
        with ranks.alone() as group, Stream() as stream, begun(group, config_on()) as optimizer:
            there = stream.empty(SHAPE)
            for call in (group.all_reduce, lambda data: optimizer.read(0, data), lambda data: optimizer.write(0, data)):
                with self.assertRaisesRegex(TypeError, "DeviceArray lies on a device, but this call takes memory of the host"):
                    call(there)

    def test_addresses_that_cannot_be(self):
        with self.assertRaisesRegex(BufferError, "multiples of their 4 bytes"):
            DeviceArray(6, 3)
        with self.assertRaisesRegex(ValueError, "address is 0, but 3 elements lie somewhere"):
            DeviceArray(0, 3)
        self.assertEqual(DeviceArray(0, (3, 0)).nbytes, 0)
        self.assertEqual(repr(DeviceArray(4096, (2, 3), "bf16", 1)), "DeviceArray((2, 3) of bf16 at 0x1000 on device 1)")


class DlpackTest(TestCase):
    def test_other_packages_take_the_memory_where_it_lies(self):
        for dtype, code, bits in ((Dtype.F32, 2, 32), (Dtype.BF16, 4, 16), (Dtype.U8, 1, 8)):
            array = DeviceArray(1 << 20, (2, 3), dtype, 5, stream=7)
            self.assertEqual(array.__dlpack_device__(), (2, 5))
            capsule, tensor, _ = opened(array, stream=7)
            self.assertEqual((tensor.data, tensor.device_type, tensor.device_id), (1 << 20, 2, 5))
            self.assertEqual((tensor.code, tensor.bits, tensor.lanes, tuple(tensor.shape[:2])), (code, bits, 1, (2, 3)))
            del capsule  # whose tensor that was

    def test_streams_are_those_of_the_array_api(self):
        default, own = DeviceArray(1 << 20, 3), DeviceArray(1 << 20, 3, stream=48)
        for array, stream in ((default, None), (default, 1), (default, -1), (own, 48), (own, -1)):
            array.__dlpack__(stream=stream)
        for array, stream in ((default, 2), (default, 48), (own, None), (own, 1), (own, 2)):
            with self.assertRaisesRegex(BufferError, "but work that leads to these elements is in stream"):
                array.__dlpack__(stream=stream)
        with self.assertRaisesRegex(BufferError, "not moved elsewhere"):
            default.__dlpack__(dl_device=(1, 0))
        with self.assertRaisesRegex(BufferError, "copy the tensor"):
            default.__dlpack__(copy=True)

    @devices.needed
    def test_producers_are_told_the_stream_of_the_call(self):
        with ranks.alone() as group, Stream() as stream, begun(group, config_on()) as optimizer:
            tensor = Tensor(stream.put(gradient(0)))
            optimizer.stream = stream.number
            optimizer.grad_ready(0, tensor)
            optimizer.step()
            optimizer.stream = 0
            plain = Tensor(DeviceArray(stream.put(gradient(0)).address, SHAPE))
            stream.wait()
            optimizer.grad_ready(0, plain)
            self.assertEqual((tensor.streams, plain.streams), ([stream.number], [1]))

    @devices.needed
    def test_a_parameter_is_not_released_while_an_exported_tensor_lives(self):
        with ranks.alone() as group, begun(group, config_on(tier=Tier.DEVICE)) as optimizer:
            data = optimizer.param_acquire(0)
            exported = data.__dlpack__(stream=1)
            del data
            gc.collect()
            with self.assertRaisesRegex(BufferError, "parameter w cannot be released"):
                optimizer.param_release(0)
            del exported
            optimizer.param_release(0)

    @devices.needed
    def test_tensors_that_cannot_be_taken(self):
        class Turned(Tensor):
            def __dlpack__(self, *, stream, max_version=None):
                capsule = super().__dlpack__(stream=stream)
                opened(Capsule(capsule))[1].strides = (opened(Capsule(capsule))[1].strides._type_ * 2)(1, 4)
                return capsule

        class Capsule:
            def __init__(self, capsule):
                self.capsule = capsule

            def __dlpack__(self):
                return self.capsule

        with ranks.alone() as group, begun(group, config_on()) as optimizer:
            with self.assertRaisesRegex(BufferError, "not contiguous in C order"):
                optimizer.grad_ready(0, Turned(DeviceArray(1 << 20, SHAPE)))
            with self.assertRaisesRegex(TypeError, "elements are f64, but the gradient of w is f32"):
                optimizer.grad_ready(0, Tensor(DeviceArray(1 << 20, SHAPE, "f64")))
            with self.assertRaisesRegex(TypeError, "lies on a device, but this call takes memory of the host"):
                optimizer.grad_ready(0, Tensor(DeviceArray(1 << 20, SHAPE), kind=10))  # ROCm


if __name__ == "__main__":
    unittest.main()
