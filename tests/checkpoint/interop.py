"""Our files in the reference package `safetensors`, and its files here: names, types, shapes and bytes.

usage: interop.py PROGRAM SCRATCH VENV; makes VENV and installs the package there when it is missing. Exit 77: it cannot be installed here.
"""
import ctypes
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile

NUMPY_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16",
               "I8": "int8", "U8": "uint8", "BOOL": "bool"}


def package(venv):
    """The package, from a virtual environment of the build."""
    python = os.path.join(venv, "bin", "python")
    if not os.path.exists(python) or subprocess.run([python, "-c", "import safetensors"], capture_output=True).returncode != 0:
        made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True)
        if made.returncode == 0:
            made = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:", "safetensors==0.8.0"],
                                  capture_output=True, text=True)
        if made.returncode != 0:
            print(f"skipped: the package safetensors cannot be installed: {made.stderr.strip()[-300:]}")
            sys.exit(77)
    if os.path.realpath(sys.prefix) != os.path.realpath(venv):
        os.execv(python, [python, *sys.argv])
    import safetensors
    return safetensors


def digest(data):
    value = 0
    for byte in data:
        value = (value * 31 + byte) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def ours(program, path):
    """What the library reads: {name: (type, shape, digest)}."""
    done = subprocess.run([program, "plain", path], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED {path}: {done.stderr}")
    return {name: (kind, json.loads(shape), value) for name, kind, shape, value in (json.loads(line) for line in done.stdout.splitlines())}


def theirs(safetensors, path):
    with open(path, "rb") as file:
        return {name: (t["dtype"], list(t["shape"]), digest(t["data"])) for name, t in safetensors.deserialize(file.read())}


def by_hand(path):
    """A second reader: the format's description, line by line."""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__")
    assert metadata["format"] == ("pt" if os.path.basename(path).startswith("model-") else "zero"), path
    begin = 8 + length
    end = max([t["data_offsets"][1] for t in header.values()], default=0)
    assert begin + end == len(data) and begin % 4096 == 0, path
    return {n: (t["dtype"], t["shape"], digest(data[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]])) for n, t in header.items()}


def check_saves(safetensors, program, scratch):
    files = tensors = 0
    subprocess.run([program, "save-all", scratch], check=True, capture_output=True)
    for path in sorted(glob.glob(os.path.join(scratch, "save-*", "*.safetensors"))):
        here, there, plain = ours(program, path), theirs(safetensors, path), by_hand(path)
        if here != there or here != plain:
            sys.exit(f"FAILED {path}: {sorted(set(here) ^ set(there))} {here} {there}")
        files, tensors = files + 1, tensors + len(here)
    for index in glob.glob(os.path.join(scratch, "save-*", "*.index.json")):
        with open(index, encoding="utf-8") as file:
            content = json.load(file)
        for name, where in content["weight_map"].items():
            if name not in theirs(safetensors, os.path.join(os.path.dirname(index), where)):
                sys.exit(f"FAILED {index}: {name} is not in {where}")
    return files, tensors


def check_theirs(safetensors, program, scratch):
    """Files of the package: every type, odd shapes, nothing aligned."""
    tensors, buffers = {}, []
    for i, (kind, name) in enumerate(NUMPY_NAMES.items()):
        size = {"64": 8, "32": 4, "16": 2}.get(name[-2:], 1)
        for shape in ([], [0], [3], [2, 0, 5], [7, 11]):
            count = 1
            for dim in shape:
                count *= dim
            data = bytes((i * 37 + j * 13) % 251 if kind != "BOOL" else j % 2 for j in range(count * size))
            buffer = ctypes.create_string_buffer(data, max(len(data), 1))
            buffers.append(buffer)
            tensors[f"{kind}.{len(shape)}.\u00e4:{shape}"] = safetensors.TensorSpec(dtype=name, shape=shape,
                                                                                data_ptr=ctypes.addressof(buffer), data_len=len(data))
    path = os.path.join(scratch, "theirs.safetensors")
    with open(path, "wb") as file:
        file.write(safetensors.serialize(tensors, {"format": "pt", "note": "\u00e9"}))
    here, there = ours(program, path), theirs(safetensors, path)
    if here != there or len(here) != len(tensors):
        sys.exit(f"FAILED {path}: {here} {there}")
    empty = os.path.join(scratch, "empty.safetensors")
    with open(empty, "wb") as file:
        file.write(safetensors.serialize({}, {"format": "pt"}))
    if ours(program, empty) != {}:
        sys.exit("FAILED an empty file")
    return len(tensors)


def main():
    program, parent, venv = sys.argv[1:]
    safetensors = package(venv)
    with tempfile.TemporaryDirectory(dir=parent) as scratch:
        files, tensors = check_saves(safetensors, program, scratch)
        read = check_theirs(safetensors, program, scratch)
    print(f"safetensors {safetensors.__version__}: {tensors} tensors in {files} of our files are the same in it and in a second reader; "
          f"{read} tensors of its own are the same here")
    if files < 10 or tensors < 40 or read < 50:
        sys.exit("FAILED too few")


main()
