#!/bin/sh
# memory_wall: stage 0 is refused with its figure, stage 3 trains and verifies, and all ranks together stay within the limit.
# usage: memory_wall.sh MEMORY_WALL SCRATCH [full]
# full: 774 million parameters in less than 20 GiB, only with ZERO_TEST_FULL=1 and where 20 GiB are available (exit code 77 otherwise).
set -u
program=$1
scratch=$2
mkdir -p "$scratch" || exit 1
options="--layers 8 --width 512 --vocabulary 1000 --context 128 --limit-gib 1"
stage0='stage 0 needs 1\.65 GB'
limit=1
if [ "${3:-}" = full ]; then
  if [ "${ZERO_TEST_FULL:-}" != 1 ]; then
    echo "skipped: a model of 774 million parameters takes minutes and 20 GiB: only with ZERO_TEST_FULL=1 (tools/test.sh --full)"
    exit 77
  fi
  available=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
  if [ "$available" -lt 20 ]; then
    echo "skipped: $available GiB of memory are available, and the model of 774 million parameters needs up to 20"
    exit 77
  fi
  options="--limit-gib 20"
  stage0='stage 0 needs 49\.[0-9]* GB'
  limit=20
fi
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# shellcheck disable=SC2086
"$program" $options >"$scratch/out" 2>"$scratch/err" || fail "did not end well"
cat "$scratch/out" "$scratch/err"
grep -q "^stage 0: refused: ZERO_E_OUT_OF_MEMORY: $stage0" "$scratch/out" || fail "stage 0 was not refused with its figure"
steps=$(sed -n 's/^step [0-9]*: mean square was \([^ ]*\) .*/\1/p' "$scratch/out")
[ "$(echo "$steps" | wc -l)" -eq 3 ] || fail "expected 3 steps"
echo "$steps" | awk '{ if (NR > 1 && $1 >= last) bad = 1; last = $1 } END { exit bad }' || fail "the mean square does not fall"
grep -q '^verify: 0 pieces differ of [0-9.]* GiB' "$scratch/out" || fail "not verified"
grep -q '^verify: .* of 0\.00 GiB' "$scratch/out" && fail "nothing was verified"
peak=$(sed -n 's/^all ranks together held at most \(.*\) GiB$/\1/p' "$scratch/out")
awk -v peak="$peak" -v limit=$limit 'BEGIN { exit !(peak > 0 && peak < limit) }' || fail "all ranks held $peak GiB, allowed: $limit"
echo "$failures failed"
[ $failures -eq 0 ]
