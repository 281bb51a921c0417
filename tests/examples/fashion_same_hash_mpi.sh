#!/bin/sh
# The same binary under mpirun ends with the bits that threads end with.
# usage: fashion_same_hash_mpi.sh TRAIN_FASHION LAUNCHER [ITS ARGUMENTS FOR 4 RANKS...]; ZERO_MPI_MODULE names the launcher's module
set -u
program=$1
shift
. "$(dirname "$0")/fashion_data.sh"
few_test_images 512
options="--data $data --quiet --limit 770 --batch 256 --epochs 1"
failures=0
# shellcheck disable=SC2086
for stage in 0 1 2 3; do
  expected=$("$program" $options --stage $stage --ranks 4) || exit 1
  result=$(timeout 180 "$@" "$program" $options --stage $stage)
  code=$?
  if [ $code -eq 77 ]; then
    echo "$result"
    exit 77
  fi
  [ $code -eq 0 ] || result="exit code $code"
  if [ "$result" != "$expected" ]; then
    echo "FAILED: stage $stage under $1: $result, expected $expected"
    failures=$((failures + 1))
  fi
  # Replicas that make every step together, of the ranks of a host in odd stages.
  result=$(timeout 180 "$@" "$program" $options --stage $stage --replica-ranks $((stage % 2 == 1 ? -1 : 2)))
  if [ "$result" != "$expected" ]; then
    echo "FAILED: stage $stage in replicas under $1: $result, expected $expected"
    failures=$((failures + 1))
  fi
done
echo "4 stages compared, alone and in replicas, with $1, $failures failed"
[ $failures -eq 0 ]
