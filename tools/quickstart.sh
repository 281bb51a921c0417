#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what is missing, builds, trains a classifier with 4 ranks in stage 3, then in stages 0
# to 2, and prints what each stage costs. The last line is "quickstart: ok accuracy=<percent> hash=<hex>"; anything else is a failure.
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
wanted_accuracy=90
started=$SECONDS
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { echo "quickstart: $*"; }
fail() {
  echo "quickstart: failed: $*" >&2
  exit 1
}
value() { sed -n "s/^$2=//p" "$scratch/stage$1"; }

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
  if cmake --build --preset release --target help | grep 'train_fashion:' >/dev/null; then targets+=(train_fashion); fi
  cmake --build --preset release --target "${targets[@]}" || fail "the build stopped at an error"
  [ -x "$trainer" ] || fail "train_fashion was not built: $(grep -h 'left out' "$scratch/configure" || echo 'see build/release')"
}

# One full training; its table row is kept.
train() {
  local stage=$1
  say "training with $ranks ranks, stage $stage"
  "$trainer" --data "$data" --ranks "$ranks" --stage "$stage" --report --report-file "$scratch/stage$stage" >"$scratch/row$stage" ||
    fail "training in stage $stage stopped with the error above"
  say "stage $stage: $(value "$stage" accuracy) % of the test images, hash $(value "$stage" hash), after $((SECONDS - started)) s in all"
}

# Counted elements may exceed the formula by what the flat space is padded with: below one in a hundred here.
check() {
  local stage
  for stage in 0 1 2 3; do
    awk -v got="$(value $stage accuracy)" -v wanted=$wanted_accuracy 'BEGIN { exit !(got >= wanted) }' ||
      fail "stage $stage reached $(value $stage accuracy) % of the test images, wanted: $wanted_accuracy %"
    [ "$(value $stage hash)" = "$(value 3 hash)" ] ||
      fail "the final parameters differ: hash $(value $stage hash) in stage $stage, $(value 3 hash) in stage 3"
    [ "$(value $stage memory.total.now)" -le $(($(value $stage memory.total.formula) + $(value $stage memory.total.constant))) ] ||
      fail "stage $stage uses $(value $stage memory.total.now) bytes per rank, more than formula and constant together"
    awk -v got="$(value $stage sent_per_step.mean)" -v wanted="$(value $stage sent_per_step.formula)" \
      'BEGIN { exit !(got > 0 && got <= wanted * 1.01 && got >= wanted * 0.99) }' ||
      fail "stage $stage sent $(value $stage sent_per_step.mean) elements per rank and step, not $(value $stage sent_per_step.formula)"
  done
}

trainer=build/release/examples/train_fashion
data=/usr/share/datasets/fashion-mnist
zero_install_packages build data speed
[ -d "$data" ] || fail "the images are not in $data (Debian: dataset-fashion-mnist)"
say "building into build/release"
build
for stage in 3 0 1 2; do train "$stage"; done
echo
"$trainer" --report-header
for stage in 0 1 2 3; do grep '|' "$scratch/row$stage"; done
echo
check
say "took $((SECONDS - started)) s"
say "ok accuracy=$(value 3 accuracy) hash=$(value 3 hash)"
