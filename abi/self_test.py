#!/usr/bin/env python3
"""Proves that check.py fails when the ABI breaks: each break is made in a copy of this folder, the headers and a library.

The library is a stand-in whose functions do nothing, made from the headers, because only its surface counts here.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

import check

HERE = os.path.dirname(os.path.abspath(__file__))


class Copy:
    """A scratch copy of headers and promise, with a stand-in library to match."""

    def __init__(self, folder, options):
        self.options = options
        self.include = os.path.join(folder, "include")
        self.abi = os.path.join(folder, "abi")
        self.library = os.path.join(folder, "libzero.so.0")
        self.link_flags = []
        self.extra_source = ""
        shutil.copytree(options.include, self.include)
        shutil.copytree(HERE, self.abi, ignore=shutil.ignore_patterns("__pycache__"))

    def edit(self, path, old, new):
        full = os.path.join(self.abi if not path.startswith("zero/") else self.include, path)
        with open(full, encoding="utf-8") as file:
            text = file.read()
        if len(re.findall(old, text, flags=re.M)) != 1:
            raise SystemExit(f"self_test.py: {old!r} is not found exactly once in {path}; adapt the test")
        with open(full, "w", encoding="utf-8") as file:
            file.write(re.sub(old, new, text, flags=re.M))

    def build(self):
        text = check.header_text(self.include)
        source = os.path.join(os.path.dirname(self.library), "library.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <zero/zero.h>\n" + self.extra_source)
            # Complete types for the handles, as in the real library: they must not count.
            for name in re.findall(r"^typedef struct (\w+) \1;", text, flags=re.M):
                file.write(f"struct {name} {{ int inside; }};\n")
            for kind, rest in re.findall(r"^ZERO_API\s+([\w\s*]*?)\s*(\b\w+\s*\([^;]*\));", text, flags=re.M):
                body = "{}" if kind == "void" else "{ return 0; }"
                file.write(f'extern "C" {kind} {rest} {body}\n')
        command = [self.options.cxx, "-std=c++17", "-g", "-fPIC", "-shared", "-fvisibility=hidden", "-I", self.include, source,
                   "-o", self.library, "-static-libstdc++", "-static-libgcc", "-Wl,-soname,libzero.so.0", "-Wl,-z,nodelete",
                   f"-Wl,--version-script={self.abi}/libzero.map", *self.link_flags]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise SystemExit(f"self_test.py: the stand-in does not build:\n{result.stderr}")

    def check(self):
        """Which parts of the check failed, and the report. Old clients need a library that works."""
        command = [sys.executable, os.path.join(HERE, "check.py"), "--library", self.library, "--include", self.include, "--abi", self.abi,
                   "--cc", self.options.cc, "--cxx", self.options.cxx, "--abidiff", self.options.abidiff]
        for part in check.PARTS:
            if part != "old_clients":
                command += ["--only", part]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return re.findall(r"^abi (\w+): FAILED", result.stdout, flags=re.M), result.stdout + result.stderr


def exported_cpp_symbol(copy):
    copy.extra_source = 'namespace zero { [[gnu::visibility("default")]] int leak(int value) { return value; } }\n'
    copy.edit("libzero.map", r"^  local:", '    extern "C++" { zero::leak*; };\n  local:')
    copy.build()


def removed_function(copy):
    copy.edit("zero/group.h", r"^ZERO_API int32_t zero_group_barrier\(zero_group \*group\);\n", "")
    copy.build()


def removed_function_everywhere(copy):
    """Also from the lists: only the baseline and the signatures still know it."""
    copy.edit("zero/group.h", r"^ZERO_API int32_t zero_group_barrier\(zero_group \*group\);\n", "")
    copy.edit("libzero.map", r"^    zero_group_barrier;\n", "")
    copy.edit("symbols.txt", r"^zero_group_barrier .*\n", "")
    copy.build()


def reordered_struct(copy):
    copy.edit("zero/optimizer.h", r"^(  int64_t skipped;.*\n)(  int64_t skipped_total;.*\n)", r"\2\1")
    copy.build()


def padded_struct(copy):
    copy.edit("zero/optimizer.h", r"^  int64_t skipped;", "  int32_t skipped;")
    copy.build()


def renumbered_constant(copy):
    copy.edit("zero/config.h", r"ZERO_KEY_STAGE = 300", "ZERO_KEY_STAGE = 309")
    copy.build()


def renumbered_macro(copy):
    copy.edit("zero/group.h", r"ZERO_MPI_WORLD \(-1\)", "ZERO_MPI_WORLD (-2)")
    copy.build()


def narrowed_parameter(copy):
    copy.edit("zero/group.h", r"zero_group_set_deadline\(zero_group \*group, int64_t", "zero_group_set_deadline(zero_group *group, int32_t")
    copy.build()


def no_debug_information(copy):
    copy.build()
    subprocess.run(["strip", "--strip-debug", copy.library], check=True)


def foreign_library(copy):
    copy.link_flags = ["-Wl,--no-as-needed", "-lstdc++", "-shared-libgcc"]
    copy.build()


def executable_stack(copy):
    copy.link_flags = ["-Wl,-z,execstack"]
    copy.build()


# break -> parts that must notice it (at least these); "types" counts only where libabigail is installed.
BREAKS = [
    (exported_cpp_symbol, ["symbols"]),
    (removed_function, ["symbols", "types"]),
    (removed_function_everywhere, ["types"]),
    (reordered_struct, ["layout", "types"]),
    (padded_struct, ["layout", "types"]),
    (renumbered_constant, ["constants"]),
    (renumbered_macro, ["constants"]),
    (narrowed_parameter, ["layout", "types"]),
    (no_debug_information, ["types"]),
    (foreign_library, ["binary"]),
    (executable_stack, ["binary"]),
]


def try_break(name, make, expected, options):
    """True when the check reported what it must; None when the tools that would are not there."""
    with_types = shutil.which(options.abidiff) is not None
    expected = [part for part in expected if part != "types" or with_types]
    if not expected and make is not None:
        print(f"{name}: left out: only abidiff would notice it and it is not installed (Debian package abigail-tools)")
        return None
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(folder, options)
        if make is None:
            copy.build()
        else:
            make(copy)
        failed, report = copy.check()
    good = failed == [] if make is None else set(expected) <= set(failed)
    print(f"{name}: {'ok' if good else 'FAILED'}: parts that failed: {', '.join(failed) or 'none'}")
    if not good:
        print(report)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--include", default=os.path.join(os.path.dirname(HERE), "include"))
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--abidiff", default="abidiff")
    options = parser.parse_args()
    outcomes = [try_break("nothing broken", None, [], options)]
    outcomes += [try_break(make.__name__, make, expected, options) for make, expected in BREAKS]
    noticed = outcomes[1:].count(True)
    print(f"breaks noticed = {noticed}, breaks tried = {len(BREAKS) - outcomes.count(None)}, left out = {outcomes.count(None)}")
    if False in outcomes:
        return 1
    return check.LEFT_OUT if None in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
