#!/bin/sh
# The parameters after an epoch over a few images have the same bits at every stage, for threads and processes, over bucket sizes, and with
# gradients in the caller's memory. 770 images in batches of 256 leave a last batch of 2, so that two of four ranks have no samples.
# usage: fashion_same_hash.sh TRAIN_FASHION SCRATCH
set -u
program=$1
scratch=$2
mkdir -p "$scratch" || exit 1
. "$(dirname "$0")/fashion_data.sh"
. "$(dirname "$0")/launched.sh"
few_test_images 512
expected=
runs=0
failures=0

run() {
  runs=$((runs + 1))
  if ! result=$(timeout 120 "$program" --data "$data" --quiet --limit 770 --batch 256 --epochs 1 --ranks 4 "$@"); then
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

for stage in 0 1 2 3; do
  run --stage $stage
  run --stage $stage --mode processes
  run --stage $stage --caller-memory
  for bucket in 1024 20000 100000000; do
    run --stage $stage --bucket-bytes $bucket
  done
done
run --stage 2 --mode processes --caller-memory --bucket-bytes 1024
run --stage 3 --mode processes --caller-memory --bucket-bytes 1024

# Replicas that make every step together.
for stage in 0 1 2 3; do
  for ranks in 1 2; do
    run --stage $stage --replica-ranks $ranks
  done
done
run --stage 2 --mode processes --replica-ranks 2

# A launcher's four ranks are one world, without any option.
runs=$((runs + 1))
launched 4 "$program" --data "$data" --quiet --limit 770 --batch 256 --epochs 1
printed=$(cat "$scratch/rank0" "$scratch/rank1" "$scratch/rank2" "$scratch/rank3")
if [ "$printed" != "$expected" ]; then
  echo "FAILED: four processes of a launcher: '$printed', expected $expected: $(cat "$scratch/rank0.err")"
  failures=$((failures + 1))
fi

# What must change the result does: otherwise the comparisons above compare nothing.
other=$(timeout 120 "$program" --data "$data" --quiet --limit 770 --batch 256 --epochs 1 --ranks 4 --divisor ranks)
if [ "$other" = "$expected" ]; then
  echo "FAILED: --divisor ranks gives the same result although the last batch is uneven"
  failures=$((failures + 1))
fi
echo "$runs runs compared, $failures failed: $expected"
[ $failures -eq 0 ]
