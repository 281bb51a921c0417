#!/usr/bin/env bash
# Builds ggml, the programs with it and the program of their README, as a user would with an installed libzero: the program with libzero has
# the losses of the other, in all stages, with threads and with processes.
# usage: ggml.sh SOURCE BUILD PREFIX SCRATCH      exit code 77 says why it cannot run here
set -euo pipefail
source=$1
build=$2
prefix=$3
scratch=$4

skip() {
  echo "$*"
  exit 77
}
fail() {
  echo "FAILED: $*"
  exit 1
}
[ -n "${ZERO_TEST_FULL:-}" ] || skip "it fetches and compiles ggml for minutes: only with ZERO_TEST_FULL=1 (tools/test.sh --full)"
. "$source/tests/examples/fashion_data.sh"
. "$source/tests/examples/launched.sh"
rm -rf "$scratch"
mkdir -p "$scratch"
if ! GGML=$("$source/tools/ggml.sh" "$build/ggml" 2>"$scratch/log"); then
  grep -E 'cannot be fetched|forbids fetching|virtual environment' "$scratch/log" >&2 && exit 77
  cat "$scratch/log"
  exit 1
fi
export GGML
libraries=$(dirname "$(find "$prefix" -name libzero.so)")
export PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries

# shellcheck disable=SC2046
c++ -std=c++20 -O1 -Wall -Wextra -Werror "$source/tests/examples/ggml_graph_test.cpp" -isystem "$GGML/include" \
  $(pkg-config --cflags --libs zero) -L"$GGML/lib" -lggml -lggml-cpu -lggml-base -lpthread -ldl -lm -o "$scratch/graph_test"
timeout 120 "$scratch/graph_test" "$scratch/export.safetensors"

cmake -S "$source/examples/ggml" -B "$scratch/programs" -DCMAKE_PREFIX_PATH="$prefix;$GGML" >"$scratch/log"
cmake --build "$scratch/programs" >>"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "the programs do not compile"; }

# train NAME PROGRAM OPTIONS...: 200 steps.
train() {
  timeout 600 "${@:2}" --data "$data" --limit 38400 --lr 0.001 --losses "$scratch/$1" >"$scratch/$1.out" || fail "$1 did not end well"
  grep 'bytes per rank' "$scratch/$1.out" | sed "s/^/$1: /"
}
train own "$scratch/programs/ggml_own"
for stage in 0 1 2 3; do
  train "stage$stage" "$scratch/programs/ggml_sharded" --ranks 2 --stage $stage
  cmp "$scratch/stage0" "$scratch/stage$stage" || fail "stage $stage has other losses than stage 0"
done
launched 2 "$scratch/programs/ggml_sharded" --data "$data" --limit 38400 --lr 0.001 --losses "$scratch/launched" ||
  fail "2 processes did not end well: $(cat "$scratch"/rank*.err)"
cmp "$scratch/stage3" "$scratch/launched" || fail "processes have other losses than threads"
# Means of halves round otherwise than the mean of the batch; AdamW enlarges that where a gradient is almost zero.
paste "$scratch/own" "$scratch/stage3" | awk '
  { d = $1 - $2; d = d < 0 ? -d : d; if (d > worst) worst = d; if (NR == 1) first = $1 }
  END { printf "%d losses from %g to %g, farthest %.2g\n", NR, first, $1, worst; exit !(NR == 200 && worst < 5e-5 && $1 < first / 3) }' ||
  fail "ggml's AdamW and libzero's part"
if "$scratch/programs/ggml_sharded" --framework-update --data "$data" --limit 192 2>"$scratch/log" ||
  ! grep -q 'framework-update' "$scratch/log"; then
  fail "--framework-update is not refused"
fi

sh "$source/tests/examples/changed_lines.sh" "$source/examples" ggml
sh "$source/tests/examples/embedding_readme.sh" "$source/examples" ggml "$prefix" "$scratch/readme"
