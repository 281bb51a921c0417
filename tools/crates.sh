#!/usr/bin/env bash
# Packs the Rust crates into build/crates: libzero-sys with the source of the library and the headers that it is compiled with, and libzero.
# usage: tools/crates.sh
# Needs cargo 1.90 or later, which packs a crate that depends on one that is not published yet.
# Whoever publishes them names a licence and the address of the repository in both Cargo.toml.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
[ $# -eq 0 ] || {
  echo "crates.sh: it takes no argument '$1'; --help says how it is used" >&2
  exit 2
}
cd "$(dirname "$0")/.."
. tools/packages.sh

fail() {
  echo "crates.sh: $*" >&2
  exit 1
}

# bring HEADER PACKAGE [tar options]: a header that the library includes, or the folder of all that lie beside it, from where the compiler
# finds it, with the copyright of the Debian package that it came with.
bring() {
  local header=$1 package=$2 found root
  shift 2
  found=$(echo "#include <$header>" | "${CXX:-c++}" -x c++ -std=c++20 -H -fsyntax-only - 2>&1 | sed -n 's/^\. //p' | head -n 1)
  [ -n "$found" ] || fail "the compiler finds no $header (Debian: $package)"
  root=${found%"/$header"}
  case $header in
    */*) tar -C "$root" "$@" -c "${header%%/*}" | tar -C "$source/headers" -x ;;
    *) cp "$found" "$source/headers" ;;
  esac
  if [ -f "/usr/share/doc/$package/copyright" ]; then cp "/usr/share/doc/$package/copyright" "$source/headers/copyright.$package"; fi
}

zero_install_packages build
command -v cargo >/dev/null || fail "cargo is not installed"
workspace=build/crates/workspace
source=$workspace/libzero-sys/source
rm -rf build/crates
mkdir -p "$source/headers"
tar -C bindings/rust --exclude=./target --exclude=./libzero-candle -c . | tar -C "$workspace" -x
tar --exclude=README.md -c CMakeLists.txt cmake include kernels lib tools/CMakeLists.txt tools/*.c tools/*.h tools/zero.1 abi/CMakeLists.txt \
  abi/libzero.map bindings/CMakeLists.txt | tar -C "$source" -x
bring hwy/highway.h libhwy-dev --exclude=contrib --exclude=tests
bring Random123/philox.h librandom123-dev
bring nlohmann/json.hpp nlohmann-json3-dev
bring xxhash.h libxxhash-dev

# Cargo keeps what it unpacks of a crate that is not published yet, and would take that of an earlier source again.
rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/libzero*

# Verified without a library, as docs.rs compiles them.
log=build/crates/log
(cd "$workspace" && DOCS_RS=1 CARGO_TARGET_DIR=../target cargo package --workspace --locked) >"$log" 2>&1 || {
  tail -n 30 "$log"
  fail "cargo package failed"
}
mv build/crates/target/package/*.crate build/crates
rm -rf build/crates/target "$workspace"
ls -l build/crates/*.crate | awk '{ printf "%8.2f MB  %s\n", $5 / 1e6, $9 }'
