"""Assertions on errors."""

import unittest

from libzero import Error, Status


class TestCase(unittest.TestCase):
    def fails(self, code, call, *arguments, **keywords):
        """The error of a call, which must have this code and libzero's text."""
        with self.assertRaises(Error) as caught:
            call(*arguments, **keywords)
        error = caught.exception
        self.assertIs(error.code, Status(code))
        self.assertEqual(error.name, f"ZERO_{error.code.name}")
        self.assertEqual(str(error), f"{error.name}: {error.text}")
        self.assertTrue(error.text)
        return error
