#!/usr/bin/env python3
"""Checks a built libzero.so and its public headers against what this folder promises.

Exit codes: 0 everything that was asked for passed, 1 something failed, 77 nothing failed but the comparison of types was left out because
libabigail's tools are not installed. Knows the promise only through the files of this folder, never through the library's sources.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HEADERS = ["zero.h", "status.h", "dtype.h", "config.h", "request.h", "group.h", "buffer.h", "optimizer.h", "slots.h", "replicas.h",
           "graph.h", "stop.h", "checkpoint.h", "save.h", "server.h", "stats.h"]
LEFT_OUT = 77
# Parts of the C library, some of them separate files in older ones, and its loader.
C_LIBRARY = re.compile(r"^(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so\.\d+$")
PARTS = ["symbols", "constants", "layout", "frozen", "binary", "types", "old_clients"]


class Failure(Exception):
    """A broken promise; the text says which and what to do."""


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def output_of(command):
    result = run(command)
    if result.returncode != 0:
        raise Failure(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def without_comments(text):
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))


def headers_in(include):
    return sorted(name for name in os.listdir(os.path.join(include, "zero")) if name.endswith(".h"))


def check_headers_are_named(include):
    found = headers_in(include)
    if found != sorted(HEADERS):
        raise Failure(f"public headers are {found}, expected {sorted(HEADERS)}; name new ones in abi/check.py")


def header_text(include):
    """Without comments. Frozen headers lack those that came later."""
    texts = []
    found = headers_in(include)
    for name in HEADERS:
        if name not in found:
            continue
        with open(os.path.join(include, "zero", name), encoding="utf-8") as file:
            texts.append(without_comments(file.read()))
    return "\n".join(texts)


def declared_functions(include):
    return re.findall(r"^ZERO_API\s[\w\s*]*?\b(\w+)\s*\(", header_text(include), flags=re.M)


def listed_symbols(abi):
    """name -> node, from symbols.txt."""
    symbols = {}
    with open(os.path.join(abi, "symbols.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            name, node, _since = line.split()
            symbols[name] = node
    return symbols


def mapped_symbols(abi):
    """name -> node, from the version script."""
    with open(os.path.join(abi, "libzero.map"), encoding="utf-8") as file:
        text = without_comments(file.read())
    symbols = {}
    for node, body in re.findall(r"(\w[\w.]*)\s*\{(.*?)\}", text, flags=re.S):
        exported = body.split("local:")[0].replace("global:", "")
        for name in re.findall(r"[^\s;]+", exported):
            symbols[name] = node
    return symbols


def exported_symbols(library):
    """name -> node, from the dynamic symbol table; the nodes themselves (type A) are left out."""
    symbols = {}
    for line in output_of(["nm", "-D", "--defined-only", "--with-symbol-versions", library]).splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":
            name, _, node = name.partition("@")
            symbols[name] = node.lstrip("@")
    return symbols


def compare(what, have, expected, advice):
    problems = [f"{name} is missing" for name in sorted(expected.keys() - have.keys())]
    problems += [f"{name} is there but was not expected" for name in sorted(have.keys() - expected.keys())]
    differing = [name for name in sorted(have.keys() & expected.keys()) if have[name] != expected[name]]
    problems += [f"{name} is {have[name]}, expected {expected[name]}" for name in differing]
    if problems:
        raise Failure(f"{what}: " + "; ".join(problems) + f". {advice}")


def check_symbols(options):
    listed = listed_symbols(options.abi)
    check_headers_are_named(options.include)
    declared = declared_functions(options.include)
    doubled = sorted({name for name in declared if declared.count(name) > 1})
    if doubled:
        raise Failure(f"declared twice in the headers: {doubled}")
    advice = "symbols.txt, libzero.map, the headers and the library must name the same functions"
    compare("libzero.map against symbols.txt", mapped_symbols(options.abi), listed, advice)
    compare("headers against symbols.txt", dict.fromkeys(declared, ""), dict.fromkeys(listed, ""), advice)
    exported = exported_symbols(options.library)
    mangled = sorted(name for name in exported if name.startswith("_Z"))
    if mangled:
        raise Failure(f"the library exports C++ symbols: {mangled}")
    compare("library against symbols.txt", exported, listed, advice)
    return f"{len(listed)} functions: headers = libzero.map = symbols.txt = library"


def public_constants(include):
    """Names of all enumerators and of all macros that have a value."""
    text = header_text(include)
    names = []
    for body in re.findall(r"\benum\s+\w+\s*\{(.*?)\}", text, flags=re.S):
        names += re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", body.strip())
    names += [name for name, value in re.findall(r"^#define\s+(\w+)[ \t]+(\S.*)$", text, flags=re.M) if name != "ZERO_API"]
    return names


def constant_values(cc, include):
    """The versions and the other constants of some headers: name -> value as text, from the compiler."""
    lines = [f'  printf("{name} = %lld\\n", (long long)({name}));\n' for name in public_constants(include)]
    with tempfile.TemporaryDirectory() as scratch:
        source = os.path.join(scratch, "constants.c")
        program = os.path.join(scratch, "constants")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <zero/zero.h>\n#include <stdio.h>\nint main(void) {\n" + "".join(lines) + "  return 0;\n}\n")
        output_of([cc, "-std=c99", "-I", include, source, "-o", program])
        values = dict(line.split(" = ") for line in output_of([program]).splitlines())
    versions = {name: values.pop(name) for name in list(values) if re.match(r"ZERO_(VERSION|ABI)_", name)}
    return versions, values


def check_constants(options):
    versions, have = constant_values(options.cc, options.include)
    # Versions are the only constants that move; the newest node must be that of the headers.
    newest = f"ZERO_{versions['ZERO_ABI_MAJOR']}.{versions['ZERO_ABI_MINOR']}"
    if newest not in listed_symbols(options.abi).values():
        raise Failure(f"the headers say {newest}, but symbols.txt has no function of that node")
    listed = {}
    with open(os.path.join(options.abi, "constants.txt"), encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#") and line.strip():
                name, value = line.strip().split(" = ")
                listed[name] = value
    compare("constants in the headers against constants.txt", have, listed,
            "A released value never changes; a new one gets a line in constants.txt")
    return f"{len(listed)} constants"


def check_layout(options):
    for source in ["layout.c", "signatures.c"]:
        path = os.path.join(options.abi, source)
        strict = ["-Wall", "-Wextra", "-Werror", "-I", options.include, "-fsyntax-only"]
        for command in ([options.cc, "-std=c11"], [options.cxx, "-std=c++17", "-x", "c++"]):
            result = run(command + strict + [path])
            if result.returncode != 0:
                raise Failure(f"{source} does not compile against the headers:\n{result.stderr}")
    return "layout.c and signatures.c compile as C11 and C++17"


def old_versions(options):
    """Name and folder of each old client."""
    folder = os.path.join(options.abi, "old_clients")
    return [(version, os.path.join(folder, version)) for version in sorted(os.listdir(folder))]


def frozen_source(include):
    """C that compiles with today's headers if they declare all types and functions as `include` does."""
    text = header_text(include)
    lines = ["#include <zero/zero.h>", "#include <stddef.h>"]
    lines += re.findall(r"^typedef [^{}]*?;", text, flags=re.M)
    lines += re.findall(r"^ZERO_API [^;]*;", text, flags=re.M)
    for name, body in re.findall(r"^typedef struct (\w+) \{(.*?)^\} \1;", text, flags=re.M | re.S):
        # Fields take 8 bytes each (layout.c).
        for index, (kind, field) in enumerate(re.findall(r"^\s*(\w+) (\w+);", body, flags=re.M)):
            lines.append(f'_Static_assert(offsetof({name}, {field}) == {8 * index}, "{name}.{field} moved");')
            lines.append(f'_Static_assert(_Generic((({name} *)0)->{field}, {kind}: 1, default: 0), "{name}.{field} is no {kind}");')
    return "\n".join(lines) + "\n"


def check_frozen(options):
    """Compares the headers with the frozen ones of old clients, which programs were compiled with.

    Today's headers must say all that those say, and may say more.
    """
    counts = []
    for version, folder in old_versions(options):
        include = os.path.join(folder, "include")
        advice = f"Programs built with {version} have this compiled in: it never changes"
        _, old = constant_values(options.cc, include)
        _, new = constant_values(options.cc, options.include)
        compare(f"constants against those of {version}", {name: new[name] for name in old if name in new}, old, advice)
        functions = dict.fromkeys(declared_functions(include), "")
        declared = set(declared_functions(options.include))
        compare(f"functions against those of {version}", {name: "" for name in functions if name in declared}, functions, advice)
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, f"{version}.c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(frozen_source(include))
            result = run([options.cc, "-std=c11", "-Wall", "-Werror", "-I", options.include, "-fsyntax-only", path])
        if result.returncode != 0:
            raise Failure(f"the headers declare types or functions otherwise than those of {version}. {advice}\n{result.stderr}")
        counts.append(f"{version}: {len(old)} constants, {len(functions)} functions and their types")
    return "the headers still say what frozen ones said: " + "; ".join(counts)


def check_binary(options):
    dynamic = output_of(["readelf", "-d", "-W", options.library])
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    foreign = [name for name in needed if not C_LIBRARY.match(name)]
    if foreign:
        raise Failure(f"the library needs {foreign} at run time, but may need only the C library")
    if "[libzero.so.0]" not in dynamic:
        raise Failure("the SONAME is not libzero.so.0")
    if "NODELETE" not in dynamic:
        raise Failure("the library can be unloaded (link it with -z nodelete)")
    stack = re.search(r"GNU_STACK.*", output_of(["readelf", "-l", "-W", options.library]))
    if stack is None or re.search(r"\bRWE\b|\bE\b", stack.group(0)):
        raise Failure("the library asks for an executable stack")
    return f"needs {', '.join(needed)}; stack not executable; cannot be unloaded"


def baseline_path(options):
    return os.path.join(options.abi, "libzero.abi.xml")


def check_types(options):
    if shutil.which(options.abidiff) is None:
        return None
    if ".debug_info" not in output_of(["readelf", "-S", "-W", options.library]):
        raise Failure("the library has no .debug_info, without which types cannot be compared; build it with -g")
    headers = os.path.join(options.include, "zero")
    result = run([options.abidiff, "--headers-dir2", headers, "--drop-private-types", baseline_path(options), options.library])
    if result.returncode != 0:
        raise Failure(f"abidiff against libzero.abi.xml returned {result.returncode}:\n{result.stdout}{result.stderr}"
                      "If the change is meant, run the target abi-update and commit the baseline with it")
    return "types equal libzero.abi.xml"


def write_baseline(options):
    headers = os.path.join(options.include, "zero")
    output_of([options.abidw, "--exported-interfaces-only", "--headers-dir", headers, "--drop-private-types", "--no-corpus-path",
               "--no-comp-dir-path", "--out-file", baseline_path(options), options.library])
    # Locations say which types are public, so they stay, but without the folders of the machine that wrote them.
    with open(baseline_path(options), encoding="utf-8") as file:
        text = re.sub(r"path='[^']*/((?:include/zero|lib/api)/)", r"path='\1", file.read())
    # Files that are compiled a few at a time lie in the build folder.
    text = re.sub(r"path='[^']*/zero_api\.dir/", "path='lib/api/", text)
    with open(baseline_path(options), "w", encoding="utf-8") as file:
        file.write(text)
    print(f"wrote {baseline_path(options)}")


def check_old_clients(options):
    """Each old client uses every function of its frozen headers, compiled against them, linked to the library of today."""
    versions = old_versions(options)
    library_folder = os.path.dirname(os.path.abspath(options.library))
    for version, folder in versions:
        sources = sorted(glob.glob(os.path.join(folder, "*.c")))
        include = os.path.join(folder, "include")
        node = "ZERO_" + version[1:].replace("_", ".")
        expected = dict.fromkeys(declared_functions(include), node)
        with tempfile.TemporaryDirectory() as scratch:
            program = os.path.join(scratch, "client")
            output_of([options.cc, "-std=c99", "-Wall", "-Wextra", "-Werror", "-g", "-pthread", *options.cflag, "-I", include, *sources,
                       options.library, f"-Wl,-rpath,{library_folder}", "-o", program])
            used = dict(re.findall(r" U (zero_\w+)@(\S+)", output_of(["nm", "-D", "--with-symbol-versions", program])))
            compare(f"old_clients/{version}", used, expected, "A client uses every function of its version, bound to its nodes")
            try:
                result = run([program], timeout=120)
            except subprocess.TimeoutExpired as timeout:
                raise Failure(f"old_clients/{version} did not end within {timeout.timeout} s") from timeout
            if result.returncode != 0:
                raise Failure(f"old_clients/{version} returned {result.returncode}:\n{result.stdout}{result.stderr}")
    return f"{len(versions)} old client(s) run: {', '.join(version for version, _ in versions)}"


def parse_options(arguments):
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--library", required=True, help="path of libzero.so")
    parser.add_argument("--include", default=os.path.join(os.path.dirname(here), "include"), help="folder that holds zero/*.h")
    parser.add_argument("--abi", default=here, help="folder that holds the promise")
    parser.add_argument("--only", action="append", choices=PARTS, help="check only this part (may be given again)")
    parser.add_argument("--update", action="store_true", help="write the baseline instead of checking")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cflag", action="append", default=[], help="compiler flag for old clients (may be given again)")
    parser.add_argument("--abidiff", default="abidiff")
    parser.add_argument("--abidw", default="abidw")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse_options(arguments)
    if options.update:
        write_baseline(options)
        return 0
    code = 0
    for part in options.only or PARTS:
        try:
            outcome = globals()[f"check_{part}"](options)
        except Failure as failure:
            print(f"abi {part}: FAILED: {failure}")
            code = 1
            continue
        if outcome is None:
            print(f"abi {part}: left out: {options.abidiff} is not installed (Debian package abigail-tools)")
            code = code or LEFT_OUT
        else:
            print(f"abi {part}: ok: {outcome}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
