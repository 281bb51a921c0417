#!/usr/bin/env python3
"""Writes the generated files of all languages from SWIG's parse tree of zero.i.
usage: generate.py TREE.xml BINDINGS"""

import pathlib
import sys

import c
import go
import julia
import python
import rust
from interface import Interface

# Where each writer's text goes, below bindings/.
FILES = {
    "conformance/c/generated.h": c.write,
    "go/internal/czero/generated.go": go.write,
    "julia/LibZero/src/generated.jl": julia.write,
    "python/libzero/generated.py": python.write,
    "rust/libzero-sys/src/generated.rs": rust.write,
}


def main(tree, bindings):
    interface = Interface(tree)
    for name, write in FILES.items():
        path = pathlib.Path(bindings) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write(interface))


if __name__ == "__main__":
    main(*sys.argv[1:])
