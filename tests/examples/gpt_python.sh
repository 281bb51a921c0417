#!/bin/sh
# examples/gpt/train_gpt.py learns, and prints the same losses in stages 0 and 3.
# usage: gpt_python.sh PYTHON TRAIN_GPT_PY SCRATCH; PYTHONPATH names libzero's package
set -u
python=$1
program=$2
scratch=$3
mkdir -p "$scratch" || exit 1
"$python" -c 'import libzero' 2>"$scratch/err" || { echo "skipped: $(tail -1 "$scratch/err")"; exit 77; }
seq 1 3000 >"$scratch/text"
for stage in 0 3; do timeout 100 "$python" -B "$program" "$scratch/text" 20 2 $stage >"$scratch/stage$stage" || exit 1; done
cat "$scratch/stage3"
cmp "$scratch/stage0" "$scratch/stage3" || exit 1
awk '{ if (NR == 1) first = $4; last = $4 } END { exit !(NR == 2 && first < 5.5 && last < 0.95 * first) }' "$scratch/stage3"
