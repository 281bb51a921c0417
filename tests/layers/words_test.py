"""Proof that tools/words.py finds each kind of fault: a small tree that has none, and one planted fault after another."""
import contextlib
import io
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import words

HEADER = "include/zero/x.h"
CLEAN = {
    "README.md": "# Title\n\nA short sentence. Is it clean? Where is the fault?\n\n| a | b |\n|---|---|\n| " + "cell " * 30 + "|\n\n"
                 "```c\n" + "int x; " * 30 + "\n```\n\nSee [a page](https://example.org/" + "x" * 120 + ").\n",
    HEADER: "/**\n * @file\n * Types.\n *\n * @code\n * what(is, code); " + "f(1); " * 8 + "\n * @endcode\n */\n#ifndef ZERO_X_H\n#define ZERO_X_H\n"
            "#include <stdint.h>\n/** An object. */\ntypedef struct zero_x zero_x;\n/** A function to call. */\n"
            "typedef void *(*zero_x_fn)(void *user);\n#define ZERO_X_LIMIT 4 /**< A limit, 1 .. 4 bytes. */\n/** Values. */\n"
            "enum zero_kind {\n  ZERO_KIND_A = 1, /**< The first. */\n  /** The second, which has\n      a text of two lines. */\n"
            "  ZERO_KIND_B = -2,\n  ZERO_KIND_C = 3 ///< Nothing else.\n};\n/** A result. */\ntypedef struct zero_result {\n"
            "  uint64_t struct_size; /**< [in] Its size. */\n  /** A number. */\n  double value;\n} zero_result;\n"
            "/**\n * Returns the size.\n *\n * @param[in]  x    The object.\n * @param[out] out  Receives the size.\n * @return ZERO_OK.\n */\n"
            "ZERO_API int32_t zero_x_size(const zero_x *x,\n                             int64_t *out);\n"
            "/** Releases it. */\nZERO_API void zero_x_release(zero_x *x);\n#endif\n",
    "lib/core/x.cpp": "/// @file A file.\n\n// Plain words.\nint x; /* a number */\n",
    "lib/CMakeLists.txt": "# Plain words.\n",
    "kernels/x.h": "/// @file A file.\nextern int x;  ///< a number\n",
    "examples/x.c": "// Plain words.\nint x; /* a number */\n",
    "tests/x.py": "# Plain words.\nx = 1\n",
}
LONG = "a " * 36 + "b."
# (file, what is replaced, by what, a part of the fault's text); nothing replaced = put at the end.
PLANTED = [
    ("README.md", "", LONG + "\n", "a sentence of 37 words"),
    ("README.md", "", "Short. " + LONG.replace(" a ", " a\n", 1) + "\n", "a sentence of 37 words"),
    ("README.md", "", "- an item\n- " + LONG + "\n", "a sentence of 37 words"),
    ("README.md", "", "| a | " + LONG + " |\n", "a sentence of 37 words"),
    ("README.md", "", "Short. What is found is reported.\n", "begins with a fragment"),
    ("README.md", "", "Who waits is late.\n", "begins with a fragment"),
    ("README.md", "", "Whether it works is open.\n", "begins with a fragment"),
    ("README.md", "", "Where it works, use it.\n", "begins with a fragment"),
    ("README.md", "", "- of one rank\n", "begins with a fragment"),
    ("README.md", "", "## What is tested\n", "begins with a fragment"),
    ("README.md", "", "x" * 101 + "\n", "101 columns"),
    ("bindings/y/README.md", "", "y" * 101 + "\n", "101 columns"),
    (HEADER, "A number.", LONG, "a sentence of 37 words"),
    (HEADER, "Returns the size.", LONG.replace(" a ", " a\n * ", 1), "a sentence of 37 words"),
    (HEADER, "Receives the size.", "Of the object.", "begins with a fragment"),
    (HEADER, "The first.", "what comes first", "begins with a fragment"),
    (HEADER, "/** Releases it. */", "/** Releases it. " + "x" * 90 + " */", "110 columns"),
    (HEADER, "/** An object. */\n", "", "zero_x has no Doxygen comment"),
    (HEADER, "/** A function to call. */\n", "", "zero_x_fn has no Doxygen comment"),
    (HEADER, "/** Releases it. */", "/* Releases it. */", "zero_x_release has no Doxygen comment"),
    (HEADER, "/** Releases it. */\n", "", "zero_x_release has no Doxygen comment"),
    (HEADER, " /**< A limit, 1 .. 4 bytes. */", "", "ZERO_X_LIMIT has no Doxygen comment"),
    (HEADER, "/** Values. */\n", "", "zero_kind has no Doxygen comment"),
    (HEADER, " /**< The first. */", "", "ZERO_KIND_A has no Doxygen comment"),
    (HEADER, "/** The second, which has\n", "/* The second, which has\n", "ZERO_KIND_B has no Doxygen comment"),
    (HEADER, " ///< Nothing else.", "", "ZERO_KIND_C has no Doxygen comment"),
    (HEADER, "/** A result. */\n", "", "zero_result has no Doxygen comment"),
    (HEADER, "  /** A number. */\n", "", "value has no Doxygen comment"),
    (HEADER, " /**< [in] Its size. */", "", "struct_size has no Doxygen comment"),
    ("lib/core/x.cpp", "@file A file.", "@file What is read.", "begins with a fragment"),
    ("lib/core/x.cpp", "Plain words.", LONG, "a sentence of 37 words"),
    ("lib/core/x.cpp", "a number", "what is counted", "begins with a fragment"),
    ("lib/core/x.cpp", "Plain words.\n", "Plain\n// words. Who reads this waits.\n", "begins with a fragment"),
    ("lib/core/x.cpp", "Plain words.", "x" * 99, "102 columns"),
    ("lib/CMakeLists.txt", "Plain words.", "What is built.", "begins with a fragment"),
    ("kernels/x.h", "a number", LONG, "a sentence of 37 words"),
    ("kernels/x.h", "a number", "of one rank", "begins with a fragment"),
    ("kernels/x.h", "a number", "x" * 90, "110 columns"),
]
COUNTED = [
    ("examples/x.c", "Plain words.", LONG, "a sentence of 37 words"),
    ("examples/x.c", "a number", "what is counted", "begins with a fragment"),
    ("examples/x.c", "Plain words.", "x" * 99, "102 columns"),
    ("tests/x.py", "Plain words.", "Of words.", "begins with a fragment"),
]


def check(condition, text):
    if not condition:
        print(f"FAILED {text}")
        sys.exit(1)


def outcome(files):
    """The exit code of the script over these files, and what it printed."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = words.main([root, "--all"])
        return code, printed.getvalue()


def planted(path, old, new):
    text = CLEAN.get(path, "")
    if old:
        check(text.count(old) > 0, f"{old!r} is in {path}")
        return {**CLEAN, path: text.replace(old, new, 1)}
    return {**CLEAN, path: text + "\n" + new}


def main():
    code, printed = outcome(CLEAN)
    check(code == 0 and len(printed.splitlines()) == 2, f"the clean tree has no fault, but:\n{printed}")
    for wanted, faults in ((1, PLANTED), (0, COUNTED)):
        for path, old, new, expected in faults:
            code, printed = outcome(planted(path, old, new))
            lines = [line for line in printed.splitlines()[:-2] if line.startswith(path + ":")]
            check(code == wanted and len(lines) == 1 and expected in lines[0],
                  f"planted {new[:60]!r} in place of {old!r} in {path}: exit code {code}, expected {expected!r}, printed:\n{printed}")
    print(f"{len(PLANTED)} planted faults found, and {len(COUNTED)} counted in comments of other folders")


main()
