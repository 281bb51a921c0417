#!/usr/bin/env python3
"""What compare.py says of programs that agree, differ or fail."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

COMPARE = pathlib.Path(__file__).with_name("compare.py")
LINES = "version: 1\nplaces: 0/2 1/2\nconstant A: 1\nconstant B: 2\n"


class CompareTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compare(self, *outputs):
        commands = []
        for number, output in enumerate(outputs):
            path = self.folder / f"p{number}"
            path.write_text(output, encoding="utf-8")
            commands.append(f"p{number}=cat '{path}'")
        return self.run_compare(*commands)

    def run_compare(self, *arguments):
        done = subprocess.run([sys.executable, str(COMPARE), *arguments], capture_output=True, check=False, encoding="utf-8")
        return done.returncode, done.stdout + done.stderr

    def test_equal(self):
        code, text = self.compare(LINES, LINES, LINES)
        self.assertEqual(code, 0)
        self.assertIn("2 scenarios and 2 constants and fields, 3 programs: 0 differences from p0", text)
        self.assertRegex(text, r"\nconstant \* +2 +equal +equal +equal\n")

    def test_both_texts_of_a_difference_are_shown(self):
        code, text = self.compare(LINES, LINES.replace("1/2", "1/3"))
        self.assertEqual(code, 1)
        self.assertRegex(text, r"\nplaces +1 +equal +different\n")
        self.assertIn("\np1: places\n  expected: 0/2 1/2\n  printed:  0/2 1/3\n", text)

    def test_missing_and_extra_lines(self):
        code, text = self.compare(LINES, LINES.replace("version: 1", "release: 1"))
        self.assertEqual(code, 1)
        self.assertIn("\np1: version\n  missing\n", text)
        self.assertIn("\np1: release\n  extra: 1\n", text)
        self.assertIn(": 2 differences", text)

    def test_order(self):
        code, text = self.compare(LINES, "".join(sorted(LINES.splitlines(True), reverse=True)))
        self.assertEqual(code, 1)
        self.assertIn("another place", text)

    def test_programs_that_cannot_be_compared(self):
        for command, reason in (
            ("false", "ended with 1"),
            ("/nonexistent", "No such file"),
            ("true", "printed nothing"),
            ("echo text", "a line without a text"),
            (r"printf 'a: 1\na: 1\n'", "a is printed twice"),
        ):
            code, text = self.run_compare("p0=echo a: 1", f"p1={command}")
            self.assertEqual(code, 1)
            self.assertRegex(text, f"compare.py: p1: .*{reason}")

    def test_usage(self):
        for arguments in ([], ["a=true"], ["a=true", "a=true"], ["a=true", "b"]):
            code, text = self.run_compare(*arguments)
            self.assertEqual(code, 1)
            self.assertIn("usage:", text)


if __name__ == "__main__":
    unittest.main()
