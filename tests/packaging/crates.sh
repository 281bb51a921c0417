#!/usr/bin/env bash
# Packs the Rust crates, unpacks them outside of the tree, and there builds and runs the program of their README with the library that the
# crate carries, offline and without an installed libzero.
# usage: crates.sh SOURCE SCRATCH      exit code 77 says why it cannot run here
set -euo pipefail
source=$1
scratch=$2

skip() {
  echo "$*"
  exit 77
}
fail() {
  echo "crates.sh: $*"
  exit 1
}
[ -n "${ZERO_TEST_FULL:-}" ] || skip "it compiles the library for minutes: only with ZERO_TEST_FULL=1 (tools/test.sh --full)"
command -v cargo >/dev/null || skip "cargo is not installed"
version=$(cargo --version | sed -E 's/^cargo ([0-9]+)\.([0-9]+).*/\1 \2/')
[ "${version% *}" -gt 1 ] || [ "${version#* }" -ge 90 ] || skip "$(cargo --version) is older than 1.90"
cargo fetch --quiet --locked --manifest-path "$source/bindings/rust/Cargo.toml" 2>/dev/null || skip "the crate pkg-config cannot be fetched"

rm -rf "$scratch"
mkdir -p "$scratch/src"
trap 'rm -rf "$scratch"' EXIT
"$source/tools/crates.sh"
for crate in "$source"/build/crates/*.crate; do
  [ "$(stat -c %s "$crate")" -lt 10000000 ] || fail "$crate has more than 10 MB, the limit of the registry"
  tar -C "$scratch" -xf "$crate"
done
awk '/^```rust$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$source/bindings/rust/README.md" >"$scratch/src/main.rs"
cat >"$scratch/Cargo.toml" <<'TOML'
[package]
name = "program"
version = "0.1.0"
edition = "2021"

[dependencies]
libzero = { version = "0.1.0", features = ["bundled"] }

[patch.crates-io]
libzero = { path = "libzero-0.1.0" }
libzero-sys = { path = "libzero-sys-0.1.0" }
TOML

cd "$scratch"
# Headers of this system would hide that one is missing in the crate.
export CARGO_NET_OFFLINE=true PKG_CONFIG=/no/such/program CPATH= CARGO_TARGET_DIR=$scratch/target
unset LD_LIBRARY_PATH PKG_CONFIG_PATH LIBZERO_LIB_DIR
cargo build --quiet
! ldd target/debug/program | grep libzero || fail "the program needs a shared libzero"
target/debug/program | tee last
grep -q '^step 100  w = 2.00000$' last || fail "the README's program ended otherwise"
find target -path '*/build/libzero-sys-*' \( -name '*.d' -o -name 'compiler_depend.make' \) -exec cat {} + | tr ' ' '\n' |
  grep -E '/(hwy|Random123|nlohmann)/|/xxhash\.h' | sort -u >headers
[ "$(wc -l <headers)" -ge 10 ] || fail "only $(wc -l <headers) headers of other projects were used"
! grep -v "^$scratch" headers || fail "headers that the crate does not carry were used"
DOCS_RS=1 cargo doc --quiet --no-deps --package libzero --package libzero-sys
echo "the crates build, link the library inside, and render their documentation"
