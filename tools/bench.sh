#!/usr/bin/env bash
# Builds the benchmarks and prints their tables. Arguments go to every benchmark program (see --help of Google Benchmark).
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/packages.sh

zero_install_packages build benchmarks speed
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S . -B build/bench -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DZERO_TESTS=OFF -DZERO_EXAMPLES=OFF -DZERO_BENCHMARKS=ON \
  "${launcher[@]}" >/dev/null
cmake --build build/bench
for program in build/bench/tests/benchmarks/*_benchmark; do
  [ -x "$program" ] || continue
  echo "== $(basename "$program")"
  "$program" "$@"
done
