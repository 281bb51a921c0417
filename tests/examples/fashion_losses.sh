#!/bin/sh
# The first 200 losses of train_fashion, 4 ranks at stage 3, follow PyTorch's within the tolerances of fashion_losses.txt (derived in
# fashion_losses.py). A run with a learning rate that is off by a thousandth must not pass.
# usage: fashion_losses.sh TRAIN_FASHION SCRATCH FASHION_LOSSES_TXT
set -u
program=$1
scratch=$2
reference=$3
. "$(dirname "$0")/fashion_data.sh"
mkdir -p "$scratch" || exit 1

# compare LR: whether the losses at this learning rate are within the tolerances.
compare() {
  "$program" --data "$data" --quiet --ranks 4 --stage 3 --batch 192 --seed 1 --epochs 8 --steps 200 --lr "$1" \
    --losses "$scratch/losses" >"$scratch/out" || exit 1
  grep -v '^#' "$reference" | paste -d' ' - "$scratch/losses" | awk '
    NF != 4 { print "line " NR ": expected loss, tolerance, float64 loss, loss: " $0; exit bad = 1 }
    {
      distance = $4 > $1 ? $4 - $1 : $1 - $4
      if (!(distance <= $2)) { if (!outside++) print "step " NR ": loss " $4 ", PyTorch " $1 ", tolerance " $2 }
      if (distance / $2 > worst) { worst = distance / $2; at = NR }
    }
    END {
      if (bad) exit 1
      print NR " steps, " outside + 0 " outside; largest distance / tolerance " worst " at step " at
      exit NR != 200 || outside > 0
    }'
}

compare 0.0003 || exit 1
if compare 0.0003003; then
  echo "FAILED: a learning rate that is off by a thousandth was not noticed"
  exit 1
fi
