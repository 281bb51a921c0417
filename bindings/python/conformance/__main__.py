"""Prints the scenarios of bindings/conformance/README.md, to be compared with the C program's."""

import buffers
import groups
import library
import misuse
import optimizers
import saves
import servers
import tables


def main():
    for part in (library, groups, buffers, servers, optimizers, saves, misuse, tables):
        for name, body in part.scenarios():
            print(f"{name}: {body() or '-'}", flush=True)


main()
