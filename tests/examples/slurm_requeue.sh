#!/bin/sh
# The batch script of examples/slurm on a Slurm of four nodes: a training that is pre-empted saves, is queued again, goes on, and ends with
# the bits of the training that nobody disturbed. With ZERO_TEST_FULL so does one that is about to reach its time limit.
# usage: slurm_requeue.sh BATCH_SCRIPT TRAIN_GPT SCRATCH; ZERO_MPI_MODULE names a module for Open MPI
# Exit status 77: there is no Slurm here, with the reason.
set -u
script=$1
program=$2
scratch=$3
. "$(dirname "$0")/../group/slurm_cluster.sh"
rm -rf "$scratch"
mkdir -p "$scratch"
slurm_begin "$scratch/slurm"
seq 1 2000 >"$scratch/text"
options="--text $scratch/text --quiet --steps 8 --batch 4 --context 32 --warm-up 1 --validation-batches 1"

hash_of() { sed -n 's/.*hash=\([0-9a-f]*\).*/\1/p' "$1"; }
job() { scontrol show job "$1" | sed -nE "s/.*\b$2=([^ ]*).*/\1/p"; }

# wait_for SECONDS COMMAND...
wait_for() {
  limit=$(($1 * 5))
  shift
  until "$@"; do
    limit=$((limit - 1))
    [ $limit -gt 0 ] || return 1
    sleep 0.2
  done
}
# Of the newest save: the same for those of a run that went on, another if it began anew.
run_of() { ls "$1" | sed -nE 's/^save-[0-9]+-([0-9a-f]{16}).*/\1/p' | tail -n 1; }
saved() { ls -d "$1"/save-* >/dev/null 2>&1; }
is() { [ "$(job "$1" "$2")" = "$3" ]; }

# shellcheck disable=SC2086
expected=$(timeout 300 "$program" $options --ranks 4) || fail "undisturbed"
expected=${expected##*hash=}

# requeued NAME DISTURB...: a job of four ranks that is disturbed once it has saved.
requeued() {
  name=$1
  shift
  # shellcheck disable=SC2086
  number=$(sbatch --parsable -N2 --ntasks-per-node=2 -o "$scratch/$name" "$script" "$program" $options --save "$scratch/$name.saves" \
    --save-every 1) || fail "$name: the job was not taken"
  wait_for 60 saved "$scratch/$name.saves" || fail "$name: no save after 60 s"
  run=$(run_of "$scratch/$name.saves")
  "$@" "$number"
  wait_for 90 is "$number" Restarts 1 || fail "$name: not queued again: $(job "$number" JobState)"
  wait_for 60 is "$number" JobState PENDING || fail "$name: it is $(job "$number" JobState)"
  # Slurm holds what it has queued again for two minutes. It revokes credentials of the second in which it did so, and a start within it
  # fails.
  sleep 2
  scontrol update JobId="$number" StartTime=now
  wait_for 120 is "$number" JobState COMPLETED || fail "$name: it is $(job "$number" JobState)"
  grep -q 'stopped by signal 15 after step .*, and saved in' "$scratch/$name" || fail "$name: no word of a stop"
  [ "$(hash_of "$scratch/$name")" = "${expected%% *}" ] || fail "$name: hash $(hash_of "$scratch/$name"), undisturbed $expected"
  [ "$(run_of "$scratch/$name.saves")" = "$run" ] || fail "$name: it began anew"
  [ $failures -eq 0 ] || cat "$scratch/$name"
  echo "$name: $(grep 'stopped by' "$scratch/$name" | head -n 1); then $(grep 'hash=' "$scratch/$name")"
}

preempt() { sbatch --quiet -p high -N4 --exclusive -o /dev/null --wrap 'sleep 1' || fail "the job that pre-empts was not taken"; }

# As --signal does before the time limit: to the ranks, not to the script.
remind() { scancel --signal=TERM "$1"; }

requeued preempted preempt
if [ -n "${ZERO_TEST_FULL:-}" ]; then requeued reminded remind; fi
slurm_end
