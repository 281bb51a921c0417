#!/bin/sh
# With --device cuda train_fashion ends with the accuracy and the bits of the host's run: in all stages, on both tiers, for threads and
# processes, in every precision and manner of micro-steps. A device that is not there ends all ranks with a line that says so.
# usage: fashion_device.sh TRAIN_FASHION SCRATCH; TRAIN_FASHION with the emulation of CUDA, ZERO_CUDA_MODULE names its module
set -u
program=$1
scratch=$2
. "$(dirname "$0")/fashion_data.sh"
. "$(dirname "$0")/launched.sh"
few_test_images 64
rm -rf "$scratch" && mkdir -p "$scratch" || exit 1
runs=0
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# 195 images in batches of 96 leave a last batch of 3, one for each rank.
train() { timeout 120 "$program" --data "$data" --quiet --limit 195 --batch 96 --epochs 1 --ranks 3 "$@" 2>/dev/null || echo "failed"; }

# same TIERS OPTIONS...: one result on the host and on these tiers.
same() {
  tiers=$1
  shift
  expected=$(train "$@")
  case $expected in *failed*) fail "$*: did not end well" ;; esac
  for tier in $tiers; do
    runs=$((runs + 1))
    got=$(train --device cuda --tier "$tier" "$@")
    [ "$got" = "$expected" ] || fail "--tier $tier $*: $got, on the host $expected"
  done
}

both="device host"
for stage in 0 1 2 3; do
  same "$both" --stage $stage
  same "$both" --stage $stage --mode processes
  same "$both" --stage $stage --precision bf16 --accumulate 2
done
same "$both" --ranks 1
same "$both" --limit 194 # one rank has no samples in the last batch
same "$both" --caller-memory
same "$both" --precision f16 --loss-scale dynamic --first-scale 16777216
same "$both" --precision f16 --accumulate 3 --accumulate-manner reduce --caller-memory --clip-norm 0.5
same "$both" --accumulate 3 --accumulate-manner reduce --stage 2
same "$both" --optimizer sgd --divisor ranks
same "$both" --optimizer lamb
same "$both" --optimizer muon --precision bf16

[ "$(train)" = "$(train --device cuda)" ] || fail "--device cuda without --tier: another result"
[ "$(train)" = "$(train --device cuda:1)" ] || fail "--device cuda:1: another result"
for mode in threads processes; do
  timeout 60 "$program" --data "$data" --quiet --limit 96 --ranks 3 --mode $mode --device cuda:2 >"$scratch/out" 2>"$scratch/err"
  code=$?
  [ $code -eq 1 ] && [ ! -s "$scratch/out" ] && grep -q -e '--device cuda:2: invalid device ordinal' "$scratch/err" ||
    fail "$mode: a device that is not there: exit code $code: $(cat "$scratch/out" "$scratch/err")"
done

# spread RANKS OPTIONS...: the summary of processes.
spread() {
  ranks=$1
  shift
  launched "$ranks" "$program" --data "$data" --quiet --limit 195 --batch 96 --epochs 1 "$@" || echo "failed"
  cat "$scratch/rank0"
}
[ "$(spread 2 --device cuda)" = "$(train --ranks 2)" ] || fail "launched, --device cuda: another result"
[ "$(spread 3 --device cuda:1)" = "$(train)" ] || fail "launched, --device cuda:1: another result"
spread 3 --device cuda >/dev/null
grep -q 'invalid device ordinal' "$scratch/rank2.err" ||
  fail "launched, --device cuda: rank 2 took no device cuda:2: $(cat "$scratch/rank2.err")"
echo "$runs runs on a device compared with the host's, $failures failed"
[ $failures -eq 0 ]
