#!/usr/bin/env bash
# Prints the folder of a CUDA Toolkit with NCCL to build with: that of the nvcc on PATH (or CUDACXX), or one that this script fetches
# from PyPI into a folder of its own. Needs no root and no GPU. Only the folder is printed on standard output.
# usage: tools/cuda.sh [DIRECTORY]      DIRECTORY: where to unpack; default build/cuda
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
case ${1:-} in -*) echo "cuda.sh: '$1' is not understood; --help lists what is" >&2; exit 2 ;; esac
prefix=$(realpath -m "${1:-$(dirname "$0")/../build/cuda}")

# One release of the toolkit, and the oldest NCCL that libzero supports: the build shows that nothing newer is needed.
packages=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
  nvidia-nccl-cu13==2.28.9)

fail() {
  echo "cuda.sh: no CUDA Toolkit: $*" >&2
  exit 1
}

fetch() {
  local python=python3
  if [ -x /usr/bin/python3 ]; then python=/usr/bin/python3; fi
  "$python" -m venv "$work/venv" >&2 || fail "python3 cannot make a virtual environment (Debian: python3-venv)"
  "$work/venv/bin/pip" install -q --disable-pip-version-check --no-cache-dir --no-deps --only-binary :all: --target "$work/packages" \
    "${packages[@]}" >&2 || fail "the packages cannot be fetched: ${packages[*]}"
  mv "$work/packages/nvidia/cu13" "$work/toolkit"
  cp -r "$work/packages/nvidia/nccl/include/." "$work/toolkit/include/"
  cp -r "$work/packages/nvidia/nccl/lib/." "$work/toolkit/lib/"
  # CMake finds the run time by its name without a version, in lib64.
  ln -s libcudart.so.13 "$work/toolkit/lib/libcudart.so"
  ln -s libnccl.so.2 "$work/toolkit/lib/libnccl.so"
  ln -s lib "$work/toolkit/lib64"
  echo "${packages[*]}" >"$work/toolkit/packages"
}

if nvcc=$(command -v "${CUDACXX:-nvcc}"); then
  dirname "$(dirname "$(realpath "$nvcc")")"
  exit 0
fi
if [ "$(cat "$prefix/packages" 2>/dev/null)" != "${packages[*]}" ]; then
  [ "${ZERO_FETCH:-1}" != 0 ] || fail "nvcc is not on PATH, and ZERO_FETCH=0 forbids fetching one"
  mkdir -p "$(dirname "$prefix")"
  work=$(mktemp -d "$prefix.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "cuda.sh: fetching a CUDA Toolkit and NCCL into $prefix" >&2
  fetch
  rm -rf "$prefix"
  mv "$work/toolkit" "$prefix"
fi
echo "$prefix"
