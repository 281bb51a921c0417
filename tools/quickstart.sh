#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what is missing and builds. Then it trains a GPT of 3.3 million parameters on a text with 4
# ranks in stage 3, and prints a sample of what it learned. Last it takes 20 steps in each stage to show what each costs. The last line is
# "quickstart: ok loss=<validation loss> saved=<bytes per rank of stage 0 / stage 3>x hash=<hex>"; anything else is a failure.
# usage: tools/quickstart.sh      it takes no options
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
[ $# -eq 0 ] || { echo "quickstart.sh: '$1' is not understood; it takes no options" >&2; exit 2; }
cd "$(dirname "$0")/.."
. tools/packages.sh

# The ranks are those that this script asks for, also in a shell that a launcher started (srun
# --pty).
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE SLURM_STEP_ID SLURM_STEP_NUM_TASKS RANK WORLD_SIZE
ranks=4
wanted_loss=2.3    # nats per byte of the last tenth of the text
wanted_saving=2.85 # bytes per rank of stage 0 over those of stage 3
started=$SECONDS
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { echo "quickstart: $*"; }
fail() {
  echo "quickstart: failed: $*" >&2
  exit 1
}
value() { sed -n "s/^$2=//p" "$scratch/$1"; }
holds() { awk "BEGIN { exit !($*) }"; }

build() {
  local command
  for command in cmake ninja c++; do
    command -v "$command" >/dev/null || fail "$command is not installed"
  done
  local launcher=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_{C,CXX,CUDA}_COMPILER_LAUNCHER=ccache); fi
  cmake --preset release -DZERO_TESTS=OFF -DZERO_EXAMPLES=ON "${launcher[@]}" >"$scratch/configure" 2>&1 ||
    { cat "$scratch/configure" >&2; fail "the build could not be configured"; }
  # Where zlib is missing there is no such target; the message below says so.
  local targets=(zero_command)
  if cmake --build --preset release --target help | grep 'train_gpt:' >/dev/null; then targets+=(train_gpt); fi
  cmake --build --preset release --target "${targets[@]}" || fail "the build stopped at an error"
  [ -x "$trainer" ] || fail "train_gpt was not built: $(grep -h 'left out' "$scratch/configure" || echo 'see build/release')"
}

train() {
  say "training with $ranks ranks, stage 3, on the text of $text"
  "$trainer" --ranks $ranks --stage 3 --steps 500 --validate 50 --text "$text" --sample "The " --sample-length 400 --csv "$scratch/losses.csv" \
    --report-file "$scratch/trained" || fail "the training stopped with the error above"
  say "$(value trained products): $(value trained tokens_per_second) tokens/s; validation loss $(value trained validation) nats per byte"
}

# 20 steps, in a process of their own, so that its peak is theirs.
measure() {
  "$trainer" --ranks $ranks --stage "$1" --text "$text" --steps 20 --validation-batches 1 --quiet --report \
    --report-file "$scratch/stage$1" >"$scratch/row$1" || fail "stage $1 stopped with the error above"
  grep '|' "$scratch/row$1"
}

# What a stage must have shown. Peaks of processes are compared with stage 0: what differs are the bytes that libzero says it takes, all ranks
# being threads of the process.
check() {
  local stage said told
  for stage in 0 1 2 3; do
    [ "$(value stage$stage hash)" = "$(value stage3 hash)" ] ||
      fail "the final parameters differ: hash $(value stage$stage hash) in stage $stage, $(value stage3 hash) in stage 3"
    told=$(($(value stage$stage memory.total.formula) + $(value stage$stage memory.total.constant)))
    [ "$(value stage$stage memory.total.now)" -le "$told" ] ||
      fail "stage $stage uses $(value stage$stage memory.total.now) bytes per rank, more than formula and constant together: $told"
    holds "$(value stage$stage sent_per_step.mean) <= $(value stage$stage sent_per_step.formula) * 1.01 && \
      $(value stage$stage sent_per_step.mean) >= $(value stage$stage sent_per_step.formula) * 0.99" ||
      fail "stage $stage sent $(value stage$stage sent_per_step.mean) elements per rank and step, not $(value stage$stage sent_per_step.formula)"
    [ $stage -gt 0 ] || continue
    said=$((ranks * ($(value stage0 memory.total.formula) + $(value stage0 memory.total.constant) - told)))
    told=$(($(value stage0 process.peak) - $(value stage$stage process.peak)))
    say "stage $stage: the process has $told bytes less at its peak than in stage 0; libzero says $said"
    holds "$told > $said * 0.9 && $told < $said * 1.1" || fail "that is not within 10 %"
  done
}

trainer=build/release/examples/train_gpt
text=/usr/share/doc/anarchism/markdown
zero_install_packages build data speed
[ -d "$text" ] || fail "there is no text in $text (Debian: anarchism)"
say "building into build/release"
build
train
say "20 steps in each stage"
"$trainer" --report-header
for stage in 0 1 2 3; do measure $stage; done
check
loss=$(value trained validation)
saved=$(awk -v a="$(value stage0 memory.total.now)" -v b="$(value stage3 memory.total.now)" 'BEGIN { printf "%.2f", a / b }')
say "a rank of stage 3 keeps $(value stage3 memory.total.now) bytes, one of stage 0 $(value stage0 memory.total.now): $saved times as many"
holds "$loss < $wanted_loss" || fail "the validation loss is $loss nats per byte, wanted: below $wanted_loss"
holds "$saved >= $wanted_saving" || fail "stage 3 saves $saved times, wanted: $wanted_saving"
say "took $((SECONDS - started)) s"
say "ok loss=$(printf %.3f "$loss") saved=$(printf %.1f "$saved")x hash=$(value trained hash)"
