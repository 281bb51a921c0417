#!/usr/bin/env python3
"""Proof that a change of the C interface is noticed: by the generator, and by the search for functions that no language uses."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_bound
from interface import Interface

HERE = pathlib.Path(__file__).parent
# What SWIG writes of a function with one parameter, as far as interface.py reads it.
DECLARATION = """<cdecl><attributelist>
  <attribute name="name" value="{name}"/><attribute name="kind" value="function"/><attribute name="type" value="int32_t"/>
  <attribute name="decl" value="f(p.q(const).{type})."/>{feature}
  <parmlist><parm><attributelist><attribute name="type" value="p.q(const).{type}"/><attribute name="name" value="it"/></attributelist></parm>
  </parmlist></attributelist></cdecl>"""
BLOCKING = '<attribute name="feature_zero_blocking" value="nothing"/>'


def tree(*declarations):
    header = '<include><attributelist><attribute name="name" value="zero/x.h"/></attributelist>'
    return f"<top>{header}{''.join(declarations)}</include></top>"


def declaration(name, feature="", of="void"):
    return DECLARATION.format(name=name, feature=feature, type=of)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class InterfaceTest(Files):
    def parse(self, *declarations):
        return Interface(self.write("tree.xml", tree(*declarations)))

    def test_reads_a_function(self):
        (function,) = self.parse(declaration("zero_f")).functions
        self.assertEqual((function.name, function.header, function.result), ("zero_f", "zero/x.h", "int32_t"))
        self.assertEqual([(p.name, p.type) for p in function.parameters], [("it", "const void *")])

    def test_a_twin_needs_the_mark_and_the_mark_a_twin(self):
        self.parse(declaration("zero_f", BLOCKING), declaration("zero_f_async"))
        for wrong in ([declaration("zero_f"), declaration("zero_f_async")], [declaration("zero_f", BLOCKING)]):
            with self.assertRaisesRegex(SystemExit, "zero_f: marked as blocking"):
                self.parse(*wrong)

    def test_a_type_that_is_new_to_the_generator_stops_it(self):
        with self.assertRaisesRegex(SystemExit, "does not know: p.q"):
            self.parse(declaration("zero_f", of="a(3).int"))


class BoundTest(Files):
    LAYERS = ("go/a.go", "julia/LibZero/src/a.jl", "python/libzero/a.py", "rust/libzero/src/deep/a.rs")

    def check(self, left_out=""):
        symbols = self.write("symbols.txt", "# name node since\nzero_f ZERO_0.1 0.1\nzero_g ZERO_0.1 0.1\n")
        self.write("left_out.txt", left_out)
        command = [sys.executable, str(HERE / "check_bound.py"), str(symbols), str(self.folder)]
        done = subprocess.run(command, capture_output=True, check=False, encoding="utf-8")
        return done.returncode, done.stdout + done.stderr

    def test_every_language_must_use_a_function_or_say_why_not(self):
        for layer in self.LAYERS:
            self.write(layer, "Zero_f() zero_g()")
        self.assertEqual(self.check()[0], 0)
        for layer in self.LAYERS:
            language = layer.partition("/")[0]
            self.write(layer, "zero_f() zero_g_async()")
            status, output = self.check()
            self.assertEqual((status, f"{language}: zero_g is neither used nor left out" in output), (1, True), output)
            self.assertEqual(self.check(f"{language} zero_* a reason\n")[0], 0)
            self.assertEqual(self.check(f"{language} zero_*\n")[0], 1, "a reason is needed")
            self.write(layer, "zero_f zero_g")

    def test_a_line_that_leaves_nothing_out_is_refused(self):
        for layer in self.LAYERS:
            self.write(layer, "zero_f zero_g")
        status, output = self.check("rust zero_h it is gone\n")
        self.assertEqual((status, "zero_h is left out, but" in output), (1, True), output)

    def test_generated_files_do_not_count(self):
        self.write("julia/LibZero/src/generated.jl", "zero_f zero_g")
        self.assertEqual(check_bound.used(self.folder, check_bound.LAYERS["julia"]), set())


if __name__ == "__main__":
    unittest.main()
