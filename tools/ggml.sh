#!/usr/bin/env bash
# Fetches ggml from PyPI, where the source distribution of ggml-python carries it, builds it for this machine, and prints the folder where
# it was installed. Needs no root. Only the folder is printed on standard output.
# usage: tools/ggml.sh [DIRECTORY]      DIRECTORY: where to install; default build/ggml
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
case ${1:-} in -*) echo "ggml.sh: '$1' is not understood; --help lists what is" >&2; exit 2 ;; esac
prefix=$(realpath -m "${1:-$(dirname "$0")/../build/ggml}")
package=ggml-python==0.0.45

fail() {
  echo "ggml.sh: no ggml: $*" >&2
  exit 1
}

fetch() {
  local python=python3
  if [ -x /usr/bin/python3 ]; then python=/usr/bin/python3; fi
  "$python" -m venv "$work/venv" >&2 || fail "python3 cannot make a virtual environment (Debian: python3-venv)"
  "$work/venv/bin/pip" download -q --disable-pip-version-check --no-cache-dir --no-deps --no-binary :all: \
    --dest "$work/package" "$package" >&2 || fail "the package cannot be fetched: $package"
  mkdir "$work/source"
  tar -C "$work/source" --strip-components 3 -xf "$work"/package/*.tar.gz --wildcards '*/vendor/ggml/*'
}

build() {
  cmake -S "$work/source" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$work/prefix" -DCMAKE_INSTALL_LIBDIR=lib \
    -DBUILD_SHARED_LIBS=OFF -DGGML_BUILD_TESTS=OFF -DGGML_BUILD_EXAMPLES=OFF -DGGML_OPENMP=OFF >&2 || fail "it cannot be configured"
  cmake --build "$work/build" --parallel "$(nproc)" >&2 || fail "it does not compile"
  cmake --install "$work/build" >&2
  echo "$package" >"$work/prefix/package"
}

if [ "$(cat "$prefix/package" 2>/dev/null)" != "$package" ]; then
  [ "${ZERO_FETCH:-1}" != 0 ] || fail "ZERO_FETCH=0 forbids fetching it"
  mkdir -p "$(dirname "$prefix")"
  work=$(mktemp -d "$prefix.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "ggml.sh: fetching and building ggml into $prefix" >&2
  fetch
  build
  rm -rf "$prefix"
  mv "$work/prefix" "$prefix"
fi
echo "$prefix"
