#!/bin/sh
# The same binary under mpirun ends with the bits that threads end with.
# usage: fashion_same_hash_mpi.sh TRAIN_FASHION MPIRUN MPI_MODULE
set -u
program=$1
mpirun=$2
export ZERO_MPI_MODULE="$3"
. "$(dirname "$0")/fashion_data.sh"
options="--data $data --quiet --limit 2050 --batch 256 --epochs 1"
# Open MPI refuses root and more ranks than cores unless told; MPICH does not know these variables.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
failures=0
# shellcheck disable=SC2086
for stage in 0 1 2 3; do
  expected=$("$program" $options --stage $stage --ranks 4) || exit 1
  result=$(timeout 180 "$mpirun" -n 4 "$program" $options --stage $stage --mode env) || result="exit code $?"
  if [ "$result" != "$expected" ]; then
    echo "FAILED: stage $stage under mpirun: $result, expected $expected"
    failures=$((failures + 1))
  fi
done
echo "4 stages compared with mpirun, $failures failed"
[ $failures -eq 0 ]
