#!/bin/sh
# own_optimizer ends with the bits of the same update without libzero, for several numbers of ranks that meet as torchrun's would.
# usage: own_optimizer.sh OWN_OPTIMIZER OWN_OPTIMIZER_PLAIN SCRATCH
set -u
program=$1
plain=$2
scratch=$3
mkdir -p "$scratch" || exit 1
failures=0
for ranks in 1 2 3 4; do
  rank=$ranks
  pids=
  while [ $rank -gt 0 ]; do
    rank=$((rank - 1))
    RANK=$rank WORLD_SIZE=$ranks LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)) \
      TORCHELASTIC_RUN_ID=own_optimizer.$$.$ranks timeout 60 "$program" >"$scratch/rank$rank" &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid" || failures=$((failures + 1)); done
  "$plain" $ranks >"$scratch/plain"
  [ "$(wc -l <"$scratch/plain")" -eq 1000 ] && cmp "$scratch/plain" "$scratch/rank0" || failures=$((failures + 1))
done
# Another number of ranks ends elsewhere: otherwise nothing was compared.
"$plain" 1 | cmp -s - "$scratch/plain" && failures=$((failures + 1))
echo "4 worlds compared, $failures failed"
[ $failures -eq 0 ]
