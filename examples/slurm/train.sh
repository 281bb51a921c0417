#!/bin/bash
# Trains in a job of Slurm that may be pre-empted or run out of time: it saves, is queued again, and goes on from its save.
#   sbatch --nodes=4 --ntasks-per-node=8 --cpus-per-task=4 --time=4:00:00 examples/slurm/train.sh \
#     build/release/examples/train_gpt --save /shared/saves --save-every 100 --steps 10000
# The program must know --resume and --stop-exit, as train_gpt and train_fashion do: on SIGTERM, which Slurm sends to every rank before a
# pre-emption, it saves the step that all ranks are at and ends with 75.
#SBATCH --job-name=train
#SBATCH --requeue
#SBATCH --open-mode=append
# SIGTERM to the ranks, not to this script, two minutes before the time limit.
#SBATCH --signal=TERM@120
set -u

# A rank that fails is reported by the others, who name it; Slurm need not end them.
srun --mpi=pmix --kill-on-bad-exit=0 "$@" --resume --stop-exit 75
code=$?
if [ $code -eq 75 ]; then
  # A script that ends in the grace time of a pre-emption makes Slurm count the job as failed. This ends it as requeued, and kills it.
  scontrol requeue "$SLURM_JOB_ID" && sleep 600
fi
exit $code
