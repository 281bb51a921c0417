#!/usr/bin/env bash
# Tests the crate libzero-candle against the installed libzero that pkg-config finds.
# usage: test_candle.sh CARGO TARGET      the program, and the folder that it builds in; exit code 77 says why it cannot run here
set -euo pipefail
cargo=$1
export CARGO_TARGET_DIR=$2
cd "$(dirname "$0")/libzero-candle"

skip() {
  echo "$*"
  exit 77
}
[ -n "${ZERO_TEST_FULL:-}" ] || skip "it compiles candle for minutes: only with ZERO_TEST_FULL=1 (tools/test.sh --full)"
version=$("$cargo" --version | sed -E 's/^cargo ([0-9]+)\.([0-9]+).*/\1 \2/')
[ "${version% *}" -gt 1 ] || [ "${version#* }" -ge 89 ] || skip "$("$cargo" --version) is older than 1.89, which candle 0.11 needs"
offline=
[ "${ZERO_FETCH:-}" != 0 ] || offline=--offline
"$cargo" fetch --quiet --locked $offline || skip "cargo could not fetch candle (cd bindings/rust/libzero-candle && cargo fetch --locked)"
export CARGO_NET_OFFLINE=true CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 # a gigabyte less
"$cargo" test --locked
"$cargo" run --quiet --locked --example memory
