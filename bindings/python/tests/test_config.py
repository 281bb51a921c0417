import unittest

import libzero
import numpy as np
from failing import TestCase
from libzero import Config, Dtype, Group, Key, Optimizer, Status, Tier
from ranks import alone


class ConfigTest(TestCase):
    def test_keys_are_named_as_in_c(self):
        with Config(stage=3, algorithm="sgd", momentum=0.5, nesterov=1) as config:
            self.assertEqual(config.get(Key.STAGE), 3)
            with alone() as group, Optimizer(group, config) as optimizer:
                self.assertEqual((optimizer.get_f64(Key.MOMENTUM), optimizer.get_f64(Key.NESTEROV)), (0.5, 1))
                self.assertIn("stage 3", optimizer.describe())

    def test_keys_may_be_given_by_name(self):
        with Config() as config:
            config.set("stage", 2)
            config.set("lr", 1)
            config.set(np.int32(Key.ALGORITHM), "sgd")
            self.assertEqual((config.get(Key.STAGE), config.get("stage"), config.get("seed", 7)), (2, 2, 7))
            self.assertEqual(repr(config), "Config(stage=2, lr=1, algorithm='sgd')")
            with self.assertRaisesRegex(TypeError, "no key 'stages'; there are .*, stage,"):
                config.set("stages", 1)
        self.assertEqual(repr(config), "Config(closed)")
        self.assertEqual(libzero.bounds("stage").max_i64, 3)

    def test_numbers_of_numpy_are_numbers(self):
        with Config(stage=np.int64(2), lr=np.float32(0.5)) as config, alone() as group, Optimizer(group, config) as optimizer:
            self.assertEqual(optimizer.get_f64(Key.LR), 0.5)

    def test_an_integer_may_stand_for_a_float_but_not_the_other_way_round(self):
        with Config(lr=1) as config:
            error = self.fails(Status.E_INVALID_ARGUMENT, config.set, Key.STAGE, 1.0)
            self.assertIn("ZERO_KEY_STAGE is a key of type i64", error.text)

    def test_unknown_names_and_values_of_other_types_are_refused(self):
        with self.assertRaisesRegex(TypeError, "no key 'stages'"):
            Config(stages=1)
        with self.assertRaisesRegex(TypeError, "not list"):
            Config(stage=[1])
        with self.assertRaisesRegex(ValueError, "NUL"):
            Config(algorithm="sgd\0")

    def test_out_of_bounds(self):
        self.assertIn("must be in 0 .. 3", self.fails(Status.E_INVALID_ARGUMENT, Config, stage=4).text)
        with self.assertRaises(OverflowError):
            Config(stage=1 << 70)

    def test_objects_copy_what_they_need(self):
        config = Config(deadline_ms=1234)
        group = Group.local(None, 0, 1, config)
        config.close()
        self.assertIn("1234 ms", group.describe())
        group.close()

    def test_keys_are_remembered_by_number(self):
        with Config() as config, alone() as group:
            for key in (Key.TIER, 332, np.int32(332), np.array(332), "tier"):
                config.set(Key.TIER, Tier.HOST)
                config.set(key, np.int64(1))
                self.assertEqual(config.get(Key.TIER), Tier.DEVICE)
            for value in (2, -1, 1.0, "1"):
                self.fails(Status.E_INVALID_ARGUMENT, config.set, Key.TIER, value)
            self.assertEqual(config.get(Key.TIER), Tier.DEVICE)
            self.assertIn("ZERO_KEY_DEVICE", self.fails(Status.E_INVALID_ARGUMENT, Optimizer, group, config).text)

    def test_bounds(self):
        bounds = libzero.bounds(Key.LR)
        self.assertEqual((bounds.min_f64, bounds.default_f64), (0, 1e-3))
        self.assertIn("default_f64=0.001", repr(bounds))
        self.fails(Status.E_UNSUPPORTED, libzero.bounds, 99999)

    def test_a_closed_config_is_refused_and_never_taken_for_none(self):
        config = Config()
        config.close()
        config.close()
        self.assertTrue(config.closed)
        self.fails(Status.E_BAD_HANDLE, config.set, Key.STAGE, 1)
        self.fails(Status.E_BAD_HANDLE, Group.local, None, 0, 1, config)
        with alone() as group:
            self.fails(Status.E_BAD_HANDLE, Optimizer, group, config)


class ElementsTest(TestCase):
    def test_float32_becomes_the_nearest_bf16(self):
        bits = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
        values = libzero.from_bf16(bits)
        self.assertEqual((values.dtype, values[0x3F80], values[0xC000]), (np.float32, 1, -2))
        again = libzero.to_bf16(values)
        self.assertEqual(again.dtype, np.uint16)
        numbers = ~np.isnan(values)
        np.testing.assert_array_equal(again[numbers], bits[numbers])
        self.assertTrue(np.isnan(libzero.from_bf16(again[~numbers])).all())
        half = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x3F817FFF, 0x7F7FFFFF, 0xFFFFFFFF], np.uint32).view(np.float32)
        self.assertEqual(libzero.to_bf16(half).tolist(), [0x3F80, 0x3F82, 0x3F81, 0x3F81, 0x7F80, 0x7FC0])

    def test_bf16_keeps_shapes_and_takes_no_other_types(self):
        for shape in ((), (2, 3), (0,)):
            self.assertEqual(libzero.from_bf16(libzero.to_bf16(np.ones(shape, np.float32))).shape, shape)
        with self.assertRaisesRegex(TypeError, "float64, but what to_bf16 takes is float32"):
            libzero.to_bf16(np.zeros(3))
        with self.assertRaisesRegex(TypeError, r"float32, but what from_bf16 takes is bf16 \(uint16\)"):
            libzero.from_bf16(np.zeros(3, np.float32))
        with self.assertRaisesRegex(TypeError, "not a list"):
            libzero.to_bf16([1.0])

    def test_bytes_and_numpy_types_agree(self):
        for dtype in Dtype:
            self.assertEqual(libzero.dtype_nbytes(dtype), libzero.numpy_dtype(dtype).itemsize)

    def test_unknown_dtype(self):
        self.fails(Status.E_INVALID_ARGUMENT, libzero.dtype_nbytes, 99)


if __name__ == "__main__":
    unittest.main()
