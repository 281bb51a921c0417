#!/bin/sh
# own_optimizer ends with the bits of the same update without libzero, for several numbers of ranks that meet as torchrun's would.
# usage: own_optimizer.sh OWN_OPTIMIZER OWN_OPTIMIZER_PLAIN SCRATCH
set -u
program=$1
plain=$2
scratch=$3
. "$(dirname "$0")/launched.sh"
mkdir -p "$scratch" || exit 1
failures=0
for ranks in 1 2 3 4; do
  launched $ranks "$program" || failures=$((failures + 1))
  "$plain" $ranks >"$scratch/plain"
  [ "$(wc -l <"$scratch/plain")" -eq 1000 ] && cmp "$scratch/plain" "$scratch/rank0" || failures=$((failures + 1))
done
# Another number of ranks ends elsewhere: otherwise nothing was compared.
"$plain" 1 | cmp -s - "$scratch/plain" && failures=$((failures + 1))
echo "4 worlds compared, $failures failed"
[ $failures -eq 0 ]
