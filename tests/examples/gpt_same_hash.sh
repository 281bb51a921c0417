#!/bin/sh
# The parameters after a few steps have the same bits at every stage, for ranks as threads, as processes and of a launcher; in each world
# and precision their own.
# usage: gpt_same_hash.sh TRAIN_GPT SCRATCH PRODUCTS; ZERO_TEST_FULL takes every cell, ZERO_TEST_FEW fewer than otherwise
set -u
program=$1
scratch=$2
rm -rf "$scratch" && mkdir -p "$scratch" || exit 1
. "$(dirname "$0")/launched.sh"
seq 1 2000 >"$scratch/text"
common="--text $scratch/text --products $3 --quiet --steps 3 --batch 4 --context 8 --warm-up 1 --validation-batches 1"
runs=0
failures=0

# run ARGUMENTS...: their result is $expected, which the first run of a world sets.
run() {
  runs=$((runs + 1))
  # shellcheck disable=SC2086
  if ! result=$(timeout 120 "$program" $common "$@"); then
    echo "FAILED: $*: did not end well"
    failures=$((failures + 1))
    return
  fi
  [ -n "$expected" ] || expected=$result
  if [ "$result" != "$expected" ]; then
    echo "FAILED: $*: $result, expected $expected"
    failures=$((failures + 1))
  fi
}

# world RANKS STAGES STAGES_OF_PROCESSES ARGUMENTS...: all its cells agree.
world() {
  ranks=$1
  threads=$2
  processes=$3
  shift 3
  expected=
  for stage in $threads; do run --ranks "$ranks" --stage "$stage" "$@"; done
  for stage in $processes; do run --ranks "$ranks" --stage "$stage" --mode processes "$@"; done
  results="$results $expected"
}

results=
all="0 1 2 3"
if [ -n "${ZERO_TEST_FULL:-}" ]; then
  for precision in f32 bf16; do
    world 1 "$all" "" --precision $precision
    for ranks in 2 4; do world $ranks "$all" "$all" --precision $precision; done
  done
  world 2 "$all" "$all" --micro-steps 2 --untied-head
elif [ -n "${ZERO_TEST_FEW:-}" ]; then
  world 2 "0 3" 3
  world 2 3 "" --precision bf16 --micro-steps 2
else
  world 1 "0 3" ""
  world 2 "$all" "0 2"
  world 4 "0 3" "1 3"
  world 2 "0 3" "" --precision bf16
  world 4 3 2 --precision bf16 --micro-steps 2 --batch 8 --untied-head
  # Parameters over fewer ranks than states.
  for ranks in 1 2; do run --ranks 4 --stage 3 --param-ranks $ranks --precision bf16 --micro-steps 2 --batch 8 --untied-head; done
  run --ranks 4 --stage 3 --param-ranks 2 --mode processes --precision bf16 --micro-steps 2 --batch 8 --untied-head
fi
# What must change the result does: otherwise the comparisons above compare nothing.
if [ "$(echo "$results" | grep -o 'hash=[0-9a-f]*' | sort -u | wc -l)" -ne "$(echo "$results" | grep -o hash= | wc -l)" ]; then
  echo "FAILED: worlds, precisions or heads share a hash:$results"
  failures=$((failures + 1))
fi

# A launcher's ranks are one world, without any option.
expected=
run --ranks 2
runs=$((runs + 1))
# shellcheck disable=SC2086
launched 2 "$program" $common
printed=$(cat "$scratch/rank0" "$scratch/rank1")
if [ "$printed" != "$expected" ]; then
  echo "FAILED: two processes of a launcher: '$printed', expected $expected: $(cat "$scratch/rank0.err")"
  failures=$((failures + 1))
fi
echo "$runs runs compared, $failures failed"
[ $failures -eq 0 ]
