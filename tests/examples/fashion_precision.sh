#!/bin/sh
# Training with 4 micro-steps per step and clipping in 16-bit precision with fp32 master weights classifies as well as the same in fp32: test
# accuracy within 0.5 points, in stages 2 and 3, which end with the same bits. f16 begins with a loss scale that overflows, and the skips are
# told. With ZERO_TEST_FULL=1 all 8 epochs over all images; otherwise a short part of the first, after which accuracies still change by points
# from step to step: within 4 points.
# usage: fashion_precision.sh TRAIN_FASHION SCRATCH
set -u
program=$1
scratch=$2
. "$(dirname "$0")/fashion_data.sh"
mkdir -p "$scratch" || exit 1
size="--limit 20000 --epochs 1"
first_scale=262144
within=4
if [ "${ZERO_TEST_FULL:-}" = 1 ]; then
  size=
  first_scale=16777216
  within=0.5
fi
recipe="--accumulate 4 --clip-norm 1"
failures=0
runs=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# train NAME OPTIONS...: leaves what was printed in files named after it.
train() {
  name=$1
  shift
  runs=$((runs + 1))
  # shellcheck disable=SC2086
  "$program" --data "$data" --quiet --ranks 4 $size "$@" >"$scratch/$name.out" 2>"$scratch/$name.err" || {
    cat "$scratch/$name.err"
    fail "$name: did not end well"
  }
  echo "$name: $(tr '\n' ' ' <"$scratch/$name.out")"
}

# of NAME KEY: the value behind KEY= in the summary.
of() { tr ' ' '\n' <"$scratch/$1.out" | sed -n "s/^$2=//p"; }

# alike A B: stages and the manner of their memory change no bit.
alike() { [ -n "$(of "$1" hash)" ] && [ "$(of "$1" hash)" = "$(of "$2" hash)" ] || fail "$1 and $2 end with different bits"; }

# close NAME: whether the accuracy is that of the fp32 run.
close() {
  awk -v got="$(of "$1" accuracy)" -v wanted="$(of f32 accuracy)" -v within=$within \
    'BEGIN { d = got - wanted; exit !(wanted > 50 && d <= within && -d <= within) }' ||
    fail "$1: accuracy $(of "$1" accuracy) %, but $(of f32 accuracy) % in fp32 (allowed: $within points)"
}

# shellcheck disable=SC2086
train f32 --stage 3 $recipe
for stage in 2 3; do
  # shellcheck disable=SC2086
  train bf16.$stage --stage $stage --precision bf16 $recipe
  # shellcheck disable=SC2086
  train f16.$stage --stage $stage --precision f16 $recipe --loss-scale dynamic --first-scale $first_scale
  close bf16.$stage
  close f16.$stage
  told=$(grep -c 'skipped: overflow, loss scale now' "$scratch/f16.$stage.err")
  [ "$told" -gt 0 ] || fail "f16.$stage: no step was skipped"
  [ "$told" = "$(of f16.$stage skipped)" ] || fail "f16.$stage: $told skips told, the summary says $(of f16.$stage skipped)"
  head -1 "$scratch/f16.$stage.err"
done
alike bf16.2 bf16.3
alike f16.2 f16.3
[ "$(of bf16.3 hash)" != "$(of f16.3 hash)" ] || fail "bf16 and f16 end with the same bits"
echo "$runs runs, $failures failed"
[ $failures -eq 0 ]
