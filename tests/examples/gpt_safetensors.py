"""What train_gpt exports, read by the reference package `safetensors`: names, shapes and every byte are those of the run; and a file that
the package writes is a beginning of a run.

usage: gpt_safetensors.py TRAIN_GPT SCRATCH VENV PRODUCTS; makes VENV and installs the package there when it is missing. Exit 77: it cannot.
"""
import ctypes
import glob
import json
import os
import shutil
import subprocess
import sys

import packages

SIZES = {"n_layer": 4, "n_head": 4, "n_embd": 256, "n_positions": 128, "vocab_size": 256}


def shapes():
    """GPT-2's tensors, in the order in which --write-first writes them."""
    width = SIZES["n_embd"]
    yield "transformer.wte.weight", [SIZES["vocab_size"], width]
    yield "transformer.wpe.weight", [SIZES["n_positions"], width]
    for layer in range(SIZES["n_layer"]):
        for name, inputs, outputs in (("ln_1", 0, width), ("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width), ("ln_2", 0, width),
                                      ("mlp.c_fc", width, 4 * width), ("mlp.c_proj", 4 * width, width)):
            yield f"transformer.h.{layer}.{name}.weight", [inputs, outputs] if inputs else [outputs]
            yield f"transformer.h.{layer}.{name}.bias", [outputs]
    yield "transformer.ln_f.weight", [width]
    yield "transformer.ln_f.bias", [width]


def read_first(path):
    tensors = {}
    with open(path, "rb") as file:
        for name, shape in shapes():
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            tensors[name] = (shape, file.read(4 * count))
        if file.read(1):
            sys.exit("FAILED --write-first writes more tensors than are known here")
    return tensors


def read_export(safetensors, path):
    tensors = {}
    for part in sorted(glob.glob(os.path.join(path, "*.safetensors"))) if os.path.isdir(path) else [path]:
        with open(part, "rb") as file:
            for name, tensor in safetensors.deserialize(file.read()):
                if tensor["dtype"] != "F32" or name in tensors:
                    sys.exit(f"FAILED {part}: {name} is {tensor['dtype']}, or there twice")
                tensors[name] = (list(tensor["shape"]), bytes(tensor["data"]))
    return tensors


def write_theirs(safetensors, path, tensors):
    """Without the prefix, with a mask and the tied head, as files of GPT-2 are."""
    kept, specs = [], {}
    masks = {"h.0.attn.bias": ([1, 1, 4, 4], bytes(64)), "h.0.attn.masked_bias": ([], bytes(4)),
             "lm_head.weight": tensors["transformer.wte.weight"]}
    for name, (shape, data) in {**{n.removeprefix("transformer."): t for n, t in tensors.items()}, **masks}.items():
        kept.append(ctypes.create_string_buffer(data, len(data)))
        specs[name] = safetensors.TensorSpec(dtype="float32", shape=shape, data_ptr=ctypes.addressof(kept[-1]), data_len=len(data))
    with open(path, "wb") as file:
        file.write(safetensors.serialize(specs, {"format": "pt"}))


def main():
    program, scratch, venv, products = sys.argv[1:]
    packages.enter(venv, ["safetensors==0.8.0"], ["safetensors"])
    import safetensors
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    text = os.path.join(scratch, "text")
    with open(text, "w", encoding="ascii") as file:
        file.writelines(f"{number}\n" for number in range(1, 2001))
    # A rate of 0 changes no parameter.
    common = [program, "--quiet", "--text", text, "--products", products, "--steps", "1", "--lr", "0", "--weight-decay", "0", "--batch", "6",
              "--context", "8", "--validation-batches", "1"]
    checked = 0
    for number, (ranks, stage, end) in enumerate([(1, 0, ".safetensors"), (3, 3, ".safetensors"), (3, 1, ""), (2, 3, "")]):
        path = os.path.join(scratch, f"export-{number}{end}")
        first = os.path.join(scratch, "first")
        subprocess.run([*common, "--ranks", str(ranks), "--stage", str(stage), "--write-first", first, "--export", path], check=True)
        expected, found = read_first(first), read_export(safetensors, path)
        if expected != found:
            sys.exit(f"FAILED {path}: {sorted(set(expected) ^ set(found))}, or bytes differ")
        checked += len(found)
    with open(os.path.join(scratch, "export-3", "config.json"), encoding="ascii") as file:
        config = json.load(file)
    if {key: config[key] for key in SIZES} != SIZES or config["model_type"] != "gpt2":
        sys.exit(f"FAILED config.json: {config}")
    theirs = os.path.join(scratch, "theirs.safetensors")
    changed = {name: (shape, data[::-1][:4] + data[4:]) for name, (shape, data) in expected.items()}
    write_theirs(safetensors, theirs, changed)
    subprocess.run([*common, "--ranks", "3", "--seed", "2", "--init", theirs, "--export", os.path.join(scratch, "back")], check=True)
    if read_export(safetensors, os.path.join(scratch, "back")) != changed:
        sys.exit("FAILED a run does not begin with the values of the package's file")
    print(f"safetensors {safetensors.__version__}: {checked} tensors of 4 exports are those of the run; {len(changed)} of its own began one")
    if checked != 4 * 52:
        sys.exit("FAILED too few")


main()
