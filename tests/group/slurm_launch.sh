#!/bin/sh
# Six launches on a Slurm of four nodes, what becomes of each, and of a rank that is killed.
# usage: slurm_launch.sh SLURM_RANKS SCRATCH; ZERO_MPI_MODULE names a module for Open MPI
# Exit status 77: there is no Slurm here, with the reason.
set -u
program=$1
. "$(dirname "$0")/slurm_cluster.sh"
slurm_begin "$2"

# batch PROGRAM ARGUMENT: a batch script that runs the program itself.
batch() {
  timeout 60 sbatch --quiet --wait -N4 -n8 -o "$slurm_folder/batch.out" --wrap "$*"
  batch_code=$?
  cat "$slurm_folder/batch.out"
  return $batch_code
}

# expect NAME TASKS STATUS PATTERN LAUNCH...: so many tasks print a line that the pattern matches, nothing else is printed by any task, and
# the launch ends with that status (3: each task got an error and returned).
expect() {
  name=$1 tasks=$2 status=$3 pattern=$4
  shift 4
  "$@" >"$slurm_folder/out" 2>"$slurm_folder/err"
  code=$?
  found=$(grep -Ec "$pattern" "$slurm_folder/out")
  [ $code -eq "$status" ] || fail "$name: exit status $code, expected $status"
  [ "$found" -eq "$tasks" ] && [ "$(grep -c . "$slurm_folder/out")" -eq "$tasks" ] || fail "$name: $found of $tasks lines are $pattern"
  grep -q 'MPI_Init' "$slurm_folder/err" && fail "$name: Open MPI ended a process"
  [ $code -eq "$status" ] && [ "$found" -eq "$tasks" ] || cat "$slurm_folder/out" "$slurm_folder/err"
  echo "$name: $(head -n 1 "$slurm_folder/out")"
}

refused='^ZERO_E_LAUNCHER: .*started this process without PMIx, as task [0-9] of [0-9] .*srun --mpi=pmix'

expect '1 srun --mpi=pmix, 4 nodes' 8 0 '^rank [0-7] of 8 on 4 hosts over local and mpi: sum 36$' timeout 60 srun -N4 -n8 --mpi=pmix "$program" env
expect '2 salloc mpirun, 4 nodes' 8 0 '^rank [0-7] of 8 on 4 hosts over local and mpi: sum 36$' \
  timeout 60 salloc -Q -N4 -n8 mpirun --bind-to none "$program" env
expect '3 srun, 1 node' 2 0 '^rank [01] of 2 on 1 hosts over local: sum 3$' timeout 60 srun -N1 -n2 "$program" env
expect '3 srun --mpi=pmi2, 1 node' 2 0 '^rank [01] of 2 on 1 hosts over local: sum 3$' timeout 60 srun -N1 -n2 --mpi=pmi2 "$program" env
for pmi in none pmi2; do
  expect "4 srun --mpi=$pmi, 2 nodes" 4 3 "$refused" timeout 60 srun -N2 -n4 --mpi=$pmi "$program" env
  expect "4 srun --mpi=$pmi, a group of MPI" 2 3 "$refused" timeout 60 srun -N1 -n2 --mpi=$pmi "$program" mpi
done
expect '4 srun of one task, a group of MPI' 1 3 "$refused" timeout 60 srun -n1 "$program" mpi
expect '5 shell of salloc' 1 0 '^rank 0 of 1 on 1 hosts over [a-z]*: sum 1$' timeout 60 salloc -Q -N4 -n8 "$program" env
expect '5 batch script' 1 0 '^rank 0 of 1 on 1 hosts over [a-z]*: sum 1$' batch "$program" env
expect '6 srun over TCP, 4 nodes' 4 0 '^rank [0-3] of 4 on 4 hosts over tcp: sum 10$' timeout 60 srun -N4 -n4 "$program" tcp

# Slurm leaves the others alone, and they learn of it from the library.
expect 'a rank of 4 nodes is killed' 7 137 '^ZERO_E_PEER_LOST: .*rank 7' \
  timeout 60 srun -N4 -n8 --mpi=pmix --kill-on-bad-exit=0 "$program" lost
expect 'a rank of 1 node is killed' 3 137 '^ZERO_E_PEER_LOST: .*rank 3' timeout 60 srun -N1 -n4 --overcommit --kill-on-bad-exit=0 "$program" lost

slurm_end
