#!/usr/bin/env python3
"""Compiles each public header alone, included twice, as C99, C11, C17, C++11, C++17 and C++20 under gcc and clang with every warning an error.

Also holds the headers to including only <stdint.h> and one another. A compiler that is not installed is named; with none it fails.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LANGUAGES = [("c", ["c99", "c11", "c17"]), ("c++", ["c++11", "c++17", "c++20"])]
COMPILERS = {"gcc": {"c": "gcc", "c++": "g++"}, "clang": {"c": "clang", "c++": "clang++"}}


def foreign_includes(path):
    with open(path, encoding="utf-8") as file:
        included = re.findall(r"^\s*#\s*include\s*(\S+)", file.read(), flags=re.M)
    return [name for name in included if name != "<stdint.h>" and not re.fullmatch(r"<zero/\w+\.h>", name)]


def compiles(compiler, language, standard, header, include):
    program = f"#include <zero/{header}>\n#include <zero/{header}>\n"
    # A translation unit of C needs a declaration of its own.
    program += "int zero_header_alone(void);\n"
    command = [compiler, f"-std={standard}", *WARNINGS, "-I", include, "-x", language, "-fsyntax-only", "-"]
    result = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        print(f"{header} as {standard} under {compiler}: FAILED\n{result.stderr}")
    return result.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--include", required=True)
    options = parser.parse_args()
    headers = sorted(name for name in os.listdir(os.path.join(options.include, "zero")) if name.endswith(".h"))
    failures = 0
    for header in headers:
        foreign = foreign_includes(os.path.join(options.include, "zero", header))
        if foreign:
            print(f"{header} includes {foreign}, but may include only <stdint.h> and other public headers")
            failures += 1
    combinations = 0
    for family, programs in COMPILERS.items():
        for language, standards in LANGUAGES:
            if shutil.which(programs[language]) is None:
                print(f"left out: {programs[language]} is not installed ({family})")
                continue
            for standard in standards:
                for header in headers:
                    combinations += 1
                    failures += not compiles(programs[language], language, standard, header, options.include)
    print(f"headers = {len(headers)}, combinations compiled = {combinations}, failures = {failures}")
    return 1 if failures or not headers or not combinations else 0


if __name__ == "__main__":
    sys.exit(main())
