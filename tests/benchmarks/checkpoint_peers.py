"""One save or load of another library, for checkpoint_benchmark: prints seconds.

usage: checkpoint_peers.py torch|safetensors save|load FILE NBYTES
"""

import os
import sys
import time

import torch
from safetensors.torch import load_file, save_file

TENSORS = 300


def tensors(nbytes):
    count = nbytes // 4 // TENSORS
    return {f"tensor.{number}": torch.full((count,), float(number)) for number in range(TENSORS)}


def sync(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)


def drop_pages(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def save(library, path, values):
    if os.path.exists(path):
        os.unlink(path)
    begin = time.monotonic()
    if library == "torch":
        torch.save(values, path)
    else:
        save_file(values, path)
    sync(path)
    return time.monotonic() - begin


def load(library, path):
    drop_pages(path)
    begin = time.monotonic()
    values = torch.load(path) if library == "torch" else load_file(path)
    # Pages of a mapped file are read when they are looked at.
    total = sum(float(value[::512].sum()) for value in values.values())
    assert total > 0
    return time.monotonic() - begin


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    library, action, path, nbytes = sys.argv[1:]
    seconds = save(library, path, tensors(int(nbytes))) if action == "save" else load(library, path)
    print(seconds)


if __name__ == "__main__":
    main()
