#!/usr/bin/env python3
"""Checks that every exported function is used by each language's hand-written layer, or stands in left_out.txt with a reason.
usage: check_bound.py SYMBOLS BINDINGS        SYMBOLS is abi/symbols.txt"""

import fnmatch
import pathlib
import re
import sys

# Where each language's layer lies. What SWIG and the generator wrote does not count: it has every function.
LAYERS = {
    "go": ["go/*.go"],
    "julia": ["julia/LibZero/src/*.jl"],
    "python": ["python/libzero/*.py"],
    "rust": ["rust/libzero/src/**/*.rs"],
}
GENERATED = {"generated.jl", "generated.py", "zero.py"}


def exported(symbols):
    lines = pathlib.Path(symbols).read_text().splitlines()
    return [line.split()[0] for line in lines if line.startswith("zero_")]


def used(bindings, patterns):
    """Functions that the layer names. Go's names begin with a capital letter."""
    files = (path for pattern in patterns for path in bindings.glob(pattern))
    texts = (path.read_text() for path in files if path.name not in GENERATED and not path.name.endswith("_test.go"))
    return {name.lower() for text in texts for name in re.findall(r"\b[Zz]ero_\w+", text)}


def left_out(path):
    """Patterns by language; each line is LANGUAGE FUNCTION REASON."""
    patterns = {language: [] for language in LAYERS}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split(maxsplit=2)
        if len(words) != 3 or words[0] not in patterns:
            raise SystemExit(f"{path.name}:{number}: not LANGUAGE FUNCTION REASON: {line}")
        patterns[words[0]].append(words[1])
    return patterns


def complaints(language, functions, named, patterns):
    missing = [function for function in functions if function not in named]
    for function in missing:
        if not any(fnmatch.fnmatch(function, pattern) for pattern in patterns):
            yield f"{language}: {function} is neither used nor left out"
    for pattern in patterns:
        if not any(fnmatch.fnmatch(function, pattern) for function in missing):
            yield f"{language}: {pattern} is left out, but no function that is missing has such a name"


def main(symbols, bindings):
    bindings = pathlib.Path(bindings)
    functions = exported(symbols)
    patterns = left_out(bindings / "left_out.txt")
    found = []
    for language, layers in LAYERS.items():
        named = used(bindings, layers)
        found += complaints(language, functions, named, patterns[language])
        print(f"{language:8} {sum(function in named for function in functions):4} of {len(functions)} functions used, the rest left out")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
