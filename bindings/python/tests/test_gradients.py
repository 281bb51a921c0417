import gc
import unittest

import numpy as np
import ranks
from failing import TestCase
from libzero import Config, Error, Optimizer, Slot, Source, Status, as_bf16, to_bf16
from small_model import begun, gradient, whole

SHAPES = ((4, 3), (0,), (), (7,))


def model(group, stage):
    with Config(stage=stage, bucket_bytes=1024) as config:
        optimizer = Optimizer(group, config)
    for number, shape in enumerate(SHAPES):
        optimizer.add_param(f"p{number}", shape)
    optimizer.seal()
    optimizer.begin(Source.LOCAL)
    return optimizer


def gradients_of(rank, step):
    """The last parameter first."""
    counted = reversed(list(enumerate(SHAPES)))
    return {number: np.full(shape, (rank + 1) * (step + 2) / 8 - number, np.float32) for number, shape in counted}


def parameters(optimizer):
    return [whole(optimizer, number).tolist() for number in range(len(SHAPES))]


def single_calls(group, stage):
    with model(group, stage) as optimizer:
        for step in range(3):
            for number, grad in gradients_of(group.rank, step).items():
                optimizer.grad_ready(number, grad)
            optimizer.step()
        return parameters(optimizer)


def one_call(group, stage):
    """Arrays that are checked once and filled anew in each step."""
    with model(group, stage) as optimizer:
        arrays = gradients_of(group.rank, 0)
        gradients = optimizer.gradients(arrays)
        for step in range(3):
            for number, grad in gradients_of(group.rank, step).items():
                arrays[number][...] = grad
            gradients.ready()
            optimizer.step()
        return parameters(optimizer)


def acquired(group, stage):
    """Every second gradient, and in the last step all of them, in the library's memory."""
    with model(group, stage) as optimizer:
        for step in range(3):
            arrays = gradients_of(group.rank, step)
            for number in arrays if step == 2 else (0, 2):
                data, accumulate = optimizer.grad_acquire(number)
                assert not accumulate
                data[...] = arrays[number]
                arrays[number] = None
            optimizer.gradients(list(arrays) if step == 2 else arrays).ready()
            optimizer.step()
        return parameters(optimizer)


class GradientsTest(TestCase):
    def test_one_call_has_the_bits_of_single_calls(self):
        for stage in range(4):
            expected = ranks.run(2, lambda group: single_calls(group, stage))
            self.assertNotEqual(expected[0][3], [0.0] * 7)
            for form in (one_call, acquired):
                self.assertEqual(ranks.run(2, lambda group: form(group, stage)), expected, f"{form.__name__} in stage {stage}")

    def test_arrays_are_kept(self):
        with ranks.alone() as group, begun(group) as optimizer:
            gradients = optimizer.gradients({0: gradient(3).ravel()})
            self.assertEqual(len(gradients), 1)
            gc.collect()
            _ = [np.zeros(12, np.float32) for _ in range(1000)]
            gradients.ready()
            optimizer.reduce()
            np.testing.assert_array_equal(optimizer.read(0, np.empty((4, 3), np.float32), Slot.GRAD), gradient(3))

    def test_bf16(self):
        bits = to_bf16(gradient(1))
        with ranks.alone() as group, begun(group, dtype="bf16") as optimizer:
            with self.assertRaisesRegex(TypeError, "bf16"):
                optimizer.gradients({0: np.zeros(12, np.uint16)})
            optimizer.gradients({0: as_bf16(bits.view(np.uint16))}).ready()
            optimizer.step()

    def test_arrays_are_checked_where_they_are_named(self):
        whole_of_bytes = np.zeros(4 * 12 + 1, np.uint8)
        with ranks.alone() as group, begun(group) as optimizer:
            for wrong, error, text in (
                (np.zeros((4, 3)), TypeError, "float64, but the gradient of w is float32"),
                (np.zeros((3, 4), np.float32), ValueError, r"shape \(3, 4\), but the gradient of w has \(4, 3\)"),
                (np.zeros(11, np.float32), ValueError, "11 elements, but the gradient of w has 12"),
                (np.zeros((3, 4), np.float32).T, BufferError, "contiguous"),
                (whole_of_bytes[1:].view(np.float32), BufferError, "multiples of their 4 bytes"),
                ([1.0], TypeError, "a NumPy array is needed"),
            ):
                with self.assertRaisesRegex(error, text):
                    optimizer.gradients({0: wrong})
            self.fails(Status.E_INVALID_ARGUMENT, optimizer.gradients, {1: gradient(0)})
            self.fails(Status.E_STATE, optimizer.gradients([0]).ready)
            optimizer.gradients({}).ready()

    def test_the_call_ends_at_the_first_error(self):
        with ranks.alone() as group, model(group, 1) as optimizer:
            arrays = gradients_of(0, 0)
            optimizer.grad_ready(2, arrays[2])
            with self.assertRaisesRegex(Error, r'ids\[1\] is 2: the gradient of "p2"'):
                optimizer.gradients(arrays).ready()
            self.assertEqual(optimizer.step().unfilled_count, 12)

    def test_a_closed_optimizer(self):
        with ranks.alone() as group:
            optimizer = begun(group)
            gradients = optimizer.gradients({0: gradient(0)})
            optimizer.close()
            self.fails(Status.E_BAD_HANDLE, gradients.ready)


if __name__ == "__main__":
    unittest.main()
