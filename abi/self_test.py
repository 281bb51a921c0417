#!/usr/bin/env python3
"""Proves that check.py fails when the ABI breaks: each break is made in a copy of this folder and the
headers, and, where it says so, in a library made anew from them.

The library is a stand-in whose functions do nothing, because only its surface counts here.
"""
import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile

import check

HERE = os.path.dirname(os.path.abspath(__file__))
# Old clients need a library that works.
PARTS = [part for part in check.PARTS if part != "old_clients"]


@dataclasses.dataclass
class Break:
    """Edits (file, pattern, replacement) and the parts of the check that must notice them.

    "types" counts only where libabigail is installed.
    """
    name: str
    parts: list
    edits: list = ()
    rebuild: bool = False
    link_flags: list = ()
    extra_source: str = ""
    strip: bool = False


def both(first, second, pattern, replacement):
    """The same edit in two files: whoever makes it knows that one must follow the other."""
    return [(first, pattern, replacement), (second, pattern, replacement)]


REORDERED = ("zero/optimizer.h", r"^(  int64_t skipped;.*\n)(  int64_t skipped_total;.*\n)", r"\2\1")
NARROWED = ("zero/group.h", r"zero_group_set_deadline\(zero_group \*group, int64_t", "zero_group_set_deadline(zero_group *group, int32_t")
WITHOUT_BARRIER = ("zero/group.h", r"^ZERO_API int32_t zero_group_barrier\(zero_group \*group\);\n", "")

# The library stays as it is: what disagrees with it is an edit of the headers, or of the headers
# and what this folder says of today's.
EDITS = [
    Break("constant renumbered", ["constants", "frozen"], [("zero/config.h", "ZERO_KEY_STAGE = 300", "ZERO_KEY_STAGE = 309")]),
    Break("constant renumbered, also in constants.txt", ["frozen"],
          both("zero/config.h", "constants.txt", "ZERO_KEY_STAGE = 300", "ZERO_KEY_STAGE = 309")),
    Break("status renumbered, also in constants.txt", ["frozen"],
          both("zero/status.h", "constants.txt", "ZERO_E_TIMEOUT = -300", "ZERO_E_TIMEOUT = -390")),
    Break("macro renumbered", ["constants", "frozen"], [("zero/group.h", r"ZERO_MPI_WORLD \(-1\)", "ZERO_MPI_WORLD (-2)")]),
    Break("macro renumbered, also in constants.txt", ["frozen"], [("zero/group.h", r"ZERO_MPI_WORLD \(-1\)", "ZERO_MPI_WORLD (-2)"),
                                                                  ("constants.txt", "ZERO_MPI_WORLD = -1", "ZERO_MPI_WORLD = -2")]),
    Break("constants swapped, also in constants.txt", ["frozen"],
          both("zero/group.h", "constants.txt", "ZERO_REDUCE_SUM = 1(.*\n *)ZERO_REDUCE_AVG = 2",
               r"ZERO_REDUCE_SUM = 2\1ZERO_REDUCE_AVG = 1")),
    Break("constant removed", ["constants", "frozen"], [("zero/group.h", r",.*\n  ZERO_OPERATION_RECV = 11", "")]),
    Break("constant removed, also from constants.txt", ["frozen"],
          [("zero/group.h", r",.*\n  ZERO_OPERATION_RECV = 11", ""), ("constants.txt", "ZERO_OPERATION_RECV = 11\n", "")]),
    Break("constant renamed, also in constants.txt", ["frozen"],
          both("zero/group.h", "constants.txt", "ZERO_OPERATION_RECV = 11", "ZERO_OPERATION_RECEIVE = 11")),
    Break("constant added to the header alone", ["constants"],
          [("zero/group.h", "ZERO_OPERATION_RECV = 11", "ZERO_OPERATION_RECV = 11,\n  ZERO_OPERATION_NEW = 12")]),
    Break("ABI version without functions", ["constants"], [("zero/zero.h", "ZERO_ABI_MINOR 1", "ZERO_ABI_MINOR 2")]),
    Break("field from int64 to double", ["frozen"], [("zero/optimizer.h", "int64_t skipped;", "double skipped;")]),
    Break("field from int64 to uint64", ["frozen"], [("zero/optimizer.h", "int64_t skipped;", "uint64_t skipped;")]),
    Break("field from double to int64", ["frozen"], [("zero/optimizer.h", "double grad_norm;", "int64_t grad_norm;")]),
    Break("field from uint64 to int64", ["frozen"],
          [("zero/stats.h", r"uint64_t struct_size;( .*\n  int64_t now_nbytes)", r"int64_t struct_size;\1")]),
    Break("field from int64 to pointer", ["frozen"], [("zero/optimizer.h", "int64_t skipped;", "void *skipped;")]),
    Break("field from int64 to int32", ["layout", "frozen"], [("zero/optimizer.h", "int64_t skipped;", "int32_t skipped;")]),
    Break("field renamed, also in layout.c", ["frozen"],
          [("zero/optimizer.h", "int64_t skipped;", "int64_t left_out;"), ("layout.c", "step_result, skipped,", "step_result, left_out,")]),
    Break("fields reordered", ["layout", "frozen"], [REORDERED]),
    Break("fields reordered, also in layout.c", ["frozen"],
          [REORDERED, ("layout.c", "result, skipped, 16", "result, skipped, 24"),
           ("layout.c", "result, skipped_total, 24", "result, skipped_total, 16")]),
    Break("field removed, also from layout.c", ["frozen"],
          [("zero/stats.h", r"^  int64_t constant_nbytes;.*\n", ""), ("layout.c", "40, constant_nbytes", "32, formula_nbytes"),
           ("layout.c", r"^.*stats, constant_nbytes, 32.*\n", "")]),
    Break("field inserted, also in layout.c", ["frozen"],
          [("zero/stats.h", r"^  int64_t call_count;", "  int64_t new_count;\n  int64_t call_count;"),
           ("layout.c", "traffic_stats, 32", "traffic_stats, 40"), ("layout.c", "call_count, 8", "call_count, 16"),
           ("layout.c", "sent_elements, 16", "sent_elements, 24"),
           ("layout.c", "traffic_stats, sent_nbytes, 24", "traffic_stats, sent_nbytes, 32")]),
    Break("struct grown", ["layout"], [("zero/stats.h", r"^\} zero_traffic_stats;", "  int64_t new_count;\n} zero_traffic_stats;")]),
    Break("parameter narrowed", ["layout", "frozen"], [NARROWED]),
    Break("parameter narrowed, also in signatures.c", ["frozen"], both("zero/group.h", "signatures.c", *NARROWED[1:])),
    Break("parameter removed, also in signatures.c", ["frozen"],
          both("zero/group.h", "signatures.c", r"zero_group_abort\(zero_group \*group, const char \*reason\)",
               "zero_group_abort(zero_group *group)")),
    Break("parameters swapped, also in signatures.c", ["frozen"],
          both("zero/group.h", "signatures.c", r"zero_group_send\(zero_group \*group, const void \*send, int64_t send_count,\s+int32_t dtype",
               "zero_group_send(zero_group *group, const void *send, int32_t dtype, int64_t send_count")),
    Break("result changed, also in signatures.c", ["frozen"],
          both("zero/zero.h", "signatures.c", r"int64_t zero_has_feature", "int32_t zero_has_feature")),
    Break("callback changed, also in signatures.c", ["frozen"],
          both("zero/config.h", "signatures.c", r"zero_alloc_fn\)\(uint64_t nbytes, uint64_t alignment",
               "zero_alloc_fn)(uint64_t nbytes, uint32_t alignment")),
    Break("handle of another type", ["frozen"], [("zero/request.h", "typedef struct zero_group zero_group;", "typedef void zero_group;")]),
    Break("function removed from the headers", ["symbols", "frozen"], [WITHOUT_BARRIER]),
    Break("function added to the headers alone", ["symbols"],
          [("zero/group.h", r"^(ZERO_API int32_t zero_group_barrier)(\(.*\n)", r"\1\2\1_new\2")]),
    Break("function renamed everywhere but in the library", ["symbols", "frozen"],
          [*both("zero/group.h", "signatures.c", r"zero_group_quiet\(const", "zero_group_silent(const"),
           ("libzero.map", "zero_group_quiet", "zero_group_silent"), ("symbols.txt", "zero_group_quiet", "zero_group_silent")]),
]

# The library is made from the edited headers, or is not what it may be.
BUILDS = [
    Break("constant renumbered everywhere, library made anew", ["frozen"],
          both("zero/config.h", "constants.txt", "ZERO_KEY_STAGE = 300", "ZERO_KEY_STAGE = 309"), rebuild=True),
    Break("function removed, library made anew", ["symbols", "types", "frozen"], [WITHOUT_BARRIER], rebuild=True),
    Break("function removed from all lists, library made anew", ["types", "frozen"],
          [WITHOUT_BARRIER, ("libzero.map", r"^    zero_group_barrier;\n", ""), ("symbols.txt", r"^zero_group_barrier .*\n", "")],
          rebuild=True),
    Break("fields reordered, library made anew", ["layout", "types", "frozen"], [REORDERED], rebuild=True),
    Break("parameter narrowed, library made anew", ["layout", "types", "frozen"], [NARROWED], rebuild=True),
    Break("exported C++ symbol", ["symbols"], [("libzero.map", r"^  local:", '    extern "C++" { zero::leak*; };\n  local:')], rebuild=True,
          extra_source='namespace zero { [[gnu::visibility("default")]] int leak(int value) { return value; } }\n'),
    Break("no debug information", ["types"], rebuild=True, strip=True),
    Break("foreign library", ["binary"], rebuild=True, link_flags=["-Wl,--no-as-needed", "-lstdc++", "-shared-libgcc"]),
    Break("executable stack", ["binary"], rebuild=True, link_flags=["-Wl,-z,execstack"]),
]


class Copy:
    """A scratch copy of headers and promise, with a library to match."""

    def __init__(self, folder, options, library=None):
        self.options = options
        self.include = os.path.join(folder, "include")
        self.abi = os.path.join(folder, "abi")
        self.library = library or os.path.join(folder, "libzero.so.0")
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

    def build(self, extra_source="", link_flags=(), strip=False):
        text = check.header_text(self.include)
        source = os.path.join(os.path.dirname(self.library), "library.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <zero/zero.h>\n" + extra_source)
            # Complete types for the handles, as in the real library: they must not count.
            for name in re.findall(r"^typedef struct (\w+) \1;", text, flags=re.M):
                file.write(f"struct {name} {{ int inside; }};\n")
            for kind, rest in re.findall(r"^ZERO_API\s+([\w\s*]*?)\s*(\b\w+\s*\([^;]*\));", text, flags=re.M):
                body = "{}" if kind == "void" else "{ return 0; }"
                file.write(f'extern "C" {kind} {rest} {body}\n')
        command = [self.options.cxx, "-std=c++17", "-g", "-fPIC", "-shared", "-fvisibility=hidden", "-I", self.include, source,
                   "-o", self.library, "-static-libstdc++", "-static-libgcc", "-Wl,-soname,libzero.so.0", "-Wl,-z,nodelete",
                   f"-Wl,--version-script={self.abi}/libzero.map", *link_flags]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise SystemExit(f"self_test.py: the stand-in does not build:\n{result.stderr}")
        if strip:
            subprocess.run(["strip", "--strip-debug", self.library], check=True)

    def failures(self, parts):
        """part -> why it failed."""
        options = check.parse_options(["--library", self.library, "--include", self.include, "--abi", self.abi, "--cc", self.options.cc,
                                       "--cxx", self.options.cxx, "--abidiff", self.options.abidiff])
        found = {}
        for part in parts:
            try:
                getattr(check, f"check_{part}")(options)
            except check.Failure as failure:
                found[part] = str(failure)
        return found


def try_break(broken, intact, options):
    """True when the parts that must notice the break did; None when the tools that would are not there."""
    parts = [part for part in broken.parts if part != "types" or shutil.which(options.abidiff) is not None]
    if not parts:
        print(f"{broken.name}: left out: only abidiff would notice it and it is not installed (Debian package abigail-tools)")
        return None
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(folder, options, None if broken.rebuild else intact)
        for edit in broken.edits:
            copy.edit(*edit)
        if broken.rebuild:
            copy.build(broken.extra_source, broken.link_flags, broken.strip)
        failed = copy.failures(parts)
    missed = [part for part in parts if part not in failed]
    print(f"{broken.name}: {'FAILED: not noticed by: ' + ', '.join(missed) if missed else 'ok: noticed by: ' + ', '.join(failed)}")
    if options.verbose:
        print("".join(f"    {part}: {text}\n" for part, text in failed.items()), end="")
    return not missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--include", default=os.path.join(os.path.dirname(HERE), "include"))
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--abidiff", default="abidiff")
    parser.add_argument("--verbose", action="store_true", help="print what the check says of each break")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        intact = Copy(folder, options)
        intact.build()
        failed = intact.failures(PARTS)
        print(f"nothing broken: {'FAILED: ' + str(failed) if failed else 'ok'}")
        outcomes = [try_break(broken, intact.library, options) for broken in EDITS + BUILDS]
    left_out = outcomes.count(None)
    print(f"breaks noticed = {outcomes.count(True)}, breaks tried = {len(outcomes) - left_out}, left out = {left_out}")
    if failed or False in outcomes:
        return 1
    return check.LEFT_OUT if None in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
