#!/bin/sh
# examples/gpt/compare_torch.py: a few steps of train_gpt have the gradients and losses of PyTorch, and other losses are noticed.
# usage: gpt_torch.sh TRAIN_GPT COMPARE_TORCH_PY SCRATCH PRODUCTS PYTHON...: the first PYTHON that has PyTorch runs it
set -u
program=$1
script=$2
scratch=$3
products=$4
shift 4
rm -rf "$scratch" && mkdir -p "$scratch" || exit 1
python=
for candidate in "$@"; do
  if "$candidate" -W ignore -c 'import torch' 2>"$scratch/err"; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || { echo "skipped: no PyTorch ($(tail -1 "$scratch/err")); the head of compare_torch.py says how to install one"; exit 77; }
seq 1 2000 >"$scratch/text"

# compare PROGRAM RUNS
compare() {
  timeout 200 "$python" -B "$script" "$1" --text "$scratch/text" --products "$products" --steps 3 --batch 4 --context 16 --runs "$2"
}

compare "$program" single,ddp || exit 1

# With another learning rate the losses of the second step on are others, the gradients of the first are not.
printf '#!/bin/sh\nexec "%s" "$@" --lr 0.002\n' "$program" >"$scratch/faster"
chmod +x "$scratch/faster"
if compare "$scratch/faster" single >"$scratch/out" 2>"$scratch/err"; then
  echo "FAILED: another learning rate was not noticed"
  exit 1
fi
tail -1 "$scratch/err"
grep -q 'the runs differ' "$scratch/err"
