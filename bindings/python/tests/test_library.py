import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import libzero
from failing import TestCase
from libzero import ABI_MAJOR, ABI_MINOR, Feature
from libzero.library import zero

PACKAGE = pathlib.Path(libzero.__file__).parent
PROJECT = pathlib.Path(__file__).resolve().parent.parent / "pyproject.toml"
COMPILER = os.environ.get("CC", "cc")


def run_program(program, **variables):
    """A new Python, whose path begins with the package's folder."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), **variables}
    return subprocess.run([sys.executable, "-c", program], cwd="/", env=environment, capture_output=True, check=False, encoding="utf-8")


def import_libzero(**variables):
    """Standard error of a program that only imports the package."""
    return run_program("import libzero", **variables).stderr


class LibraryTest(TestCase):
    def test_versions(self):
        self.assertEqual(libzero.abi_version(), ABI_MAJOR * 65536 + ABI_MINOR)
        self.assertTrue(libzero.describe().startswith(f"libzero {libzero.version()}, ABI {ABI_MAJOR}.{ABI_MINOR}\n"))
        self.assertEqual((libzero.has_feature(Feature.LOCAL), libzero.has_feature(99)), (True, False))

    def test_the_package_has_the_version_of_its_headers(self):
        version = f"{libzero.VERSION_MAJOR}.{libzero.VERSION_MINOR}.{libzero.VERSION_PATCH}"
        self.assertIn(f'\nversion = "{version}"\n', PROJECT.read_text(encoding="utf-8"))

    def test_status_names(self):
        self.assertEqual(libzero.status_name(-300), "ZERO_E_TIMEOUT")

    def test_every_public_name_is_there(self):
        for name in libzero.__all__:
            self.assertTrue(hasattr(libzero, name), name)


class ImportTest(unittest.TestCase):
    """What stands at the end of a traceback when the library cannot be used."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, source, name):
        if shutil.which(COMPILER) is None:
            self.skipTest(f"no C compiler {COMPILER}")
        path, versions = self.folder / name, self.folder / "versions"
        versions.write_text(f"ZERO_{ABI_MAJOR}.{ABI_MINOR} {{ global: *; }};\n")
        linker = f"-Wl,-soname,{name},--version-script,{versions}"
        command = [COMPILER, "-shared", "-fPIC", linker, "-x", "c", "-", "-o", str(path)]
        subprocess.run(command, input=source, check=True, encoding="utf-8")
        return str(path)

    def other_abi(self):
        functions = (name for name in dir(zero) if name.startswith("zero_") and name != "zero_abi_version")
        kinds = ("config", "group", "buffer", "optimizer", "checkpoint", "save", "request", "server")
        within = ["zero_last_error_copy", *(f"zero_{kind}_release" for kind in kinds)]
        stubs = "".join(f"void {name}(void) {{}}\n" for name in [*functions, *within])
        version = f"long long zero_abi_version(void) {{ return {(ABI_MAJOR + 7) * 65536}; }}\n"
        return self.compile(version + stubs, f"libzero.so.{ABI_MAJOR}")

    def test_a_library_of_another_abi_that_is_named(self):
        stderr = import_libzero(ZERO_LIBRARY=self.other_abi())
        self.assertRegex(stderr, rf"ImportError: libzero: .* has ABI {ABI_MAJOR + 7}.0, but this package needs {ABI_MAJOR}.{ABI_MINOR}")

    def test_a_library_of_another_abi_that_the_loader_finds(self):
        self.other_abi()
        stderr = import_libzero(LD_LIBRARY_PATH=str(self.folder), ZERO_LIBRARY="")
        self.assertRegex(stderr, rf"ImportError: libzero: the libzero.so that the loader found has ABI {ABI_MAJOR + 7}.0")

    def test_a_file_that_is_no_library(self):
        self.assertRegex(import_libzero(ZERO_LIBRARY=__file__), "ImportError: libzero: ZERO_LIBRARY is '.*', which is no libzero.so")
        self.assertRegex(import_libzero(ZERO_LIBRARY="/nonexistent/libzero.so"), "ImportError: libzero: .*nonexistent")

    def test_a_library_of_something_else(self):
        path = self.compile("int other;", "libother.so")
        self.assertRegex(import_libzero(ZERO_LIBRARY=path), "ImportError: libzero: .*zero_abi_version")

    def test_an_extension_module_that_was_not_built(self):
        shutil.copytree(PACKAGE, self.folder / "libzero", ignore=shutil.ignore_patterns("_zero*", "__pycache__"))
        stderr = import_libzero(PYTHONPATH=str(self.folder))
        self.assertRegex(stderr, "ImportError: libzero: its extension module cannot be loaded: .*README.md")

    def test_the_library_that_is_named_is_the_one_that_is_used(self):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            original = next(line.split()[-1] for line in maps if "libzero.so" in line)
        copy = self.folder / "mine.so"
        shutil.copy(original, copy)
        maps = run_program("import libzero; print(open('/proc/self/maps').read())", ZERO_LIBRARY=str(copy)).stdout
        self.assertIn(str(copy), maps)
        self.assertNotIn(original, maps)


if __name__ == "__main__":
    unittest.main()
