#!/bin/sh
# The same binary under mpirun ends with the bits that threads end with.
# usage: gpt_same_hash_mpi.sh TRAIN_GPT SCRATCH PRODUCTS MPIRUN; ZERO_TEST_FULL takes every cell; ZERO_MPI_MODULE names the launcher's module
set -u
program=$1
scratch=$2
mpirun=$4
rm -rf "$scratch" && mkdir -p "$scratch" || exit 1
seq 1 2000 >"$scratch/text"
common="--text $scratch/text --products $3 --quiet --steps 3 --batch 4 --context 8 --warm-up 1 --validation-batches 1"
failures=0
runs=0

# compare RANKS ARGUMENTS...
compare() {
  ranks=$1
  shift
  runs=$((runs + 1))
  # shellcheck disable=SC2086
  expected=$("$program" $common --ranks "$ranks" "$@") || exit 1
  # shellcheck disable=SC2086
  result=$(timeout 180 "$mpirun" -n "$ranks" "$program" $common "$@") || result="exit code $?"
  if [ "$result" != "$expected" ]; then
    echo "FAILED: $ranks ranks, $* under $mpirun: $result, expected $expected"
    failures=$((failures + 1))
  fi
}

if [ -n "${ZERO_TEST_FULL:-}" ]; then
  for ranks in 1 2 4; do
    for stage in 0 1 2 3; do
      compare $ranks --stage $stage
      compare $ranks --stage $stage --precision bf16
    done
  done
else
  compare 2 --stage 0
  compare 2
  compare 4 --precision bf16 --stage 2
fi
echo "$runs runs compared, $failures failed"
[ $failures -eq 0 ]
