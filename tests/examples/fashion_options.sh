#!/bin/sh
# Precision, micro-steps, clipping, loss scale, sparse codes and every optimizer of train_fashion end with the same bits in all stages. Where micro-steps
# only cut a batch in parts (--divisor ranks adds sample after sample either way) they change no bit at all.
# usage: fashion_options.sh TRAIN_FASHION
set -u
program=$1
. "$(dirname "$0")/fashion_data.sh"
few_test_images 512
runs=0
failures=0

# result OPTIONS...: the summary. 770 images in batches of 256 leave a last batch of 2, fewer than ranks and micro-steps.
result() { timeout 300 "$program" --data "$data" --quiet --limit 770 --batch 256 --epochs 1 --ranks 4 "$@" 2>/dev/null || echo "failed"; }

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

seen=
# same OPTIONS...: one result in all stages, and another than that of every other set of options.
same() {
  first=
  for stage in 0 1 2 3; do
    runs=$((runs + 1))
    now=$(result --stage $stage "$@")
    [ -n "$first" ] || first=$now
    case $now in *failed*) fail "stage $stage $*: did not end well" ;; esac
    [ "$now" = "$first" ] || fail "stage $stage $*: $now, in stage 0 $first"
  done
  hash=${first##*hash=}
  case $seen in *"$hash"*) fail "$*: the options change nothing" ;; esac
  seen="$seen $hash"
}

same
same --precision bf16
same --precision f16 --loss-scale 1024
same --precision f16 --accumulate 3 --accumulate-manner reduce --clip-norm 0.5
same --precision bf16 --accumulate 4 --clip-norm 1
same --accumulate 4
same --accumulate 4 --accumulate-manner reduce
same --clip-norm 0.1
for optimizer in adam adagrad lamb lion sgd muon; do same --optimizer $optimizer; done
same --optimizer muon --precision bf16 --accumulate 2
same --divisor ranks
same --replica-ranks 2 --compress 1bit-adam:2
same --replica-ranks 2 --optimizer sgd --compress topk:8
same --replica-ranks 2 --optimizer sgd --compress topk:8 --compress-momentum 0.9

own=$(result --precision f16 --accumulate 3 --accumulate-manner reduce --clip-norm 0.5 --caller-memory)
case $seen in *"${own##*hash=}"*) ;; *) fail "16-bit gradients in the caller's memory end with other bits" ;; esac
whole=$(result --divisor ranks)
for stage in 0 3; do
  [ "$(result --divisor ranks --accumulate 4 --stage $stage)" = "$whole" ] || fail "stage $stage: micro-steps change bits with --divisor ranks"
done
# A scale of the loss by a power of two changes no bit in fp32; a learning rate that does not fit stops the run instead of skipping for ever.
[ "$(result --divisor ranks --loss-scale 1024 | tail -1)" = "$whole" ] || fail "a loss scale of 1024 changes bits in fp32"
[ "$(result --precision f16 --loss-scale 4294967296)" = failed ] || fail "a static scale that overflows in every step does not stop the run"
echo "$runs runs compared over stages, $failures failed"
[ $failures -eq 0 ]
