#!/bin/sh
# What train_gpt writes: losses and bytes as CSV, raw parameters and gradients, a report, a sample, and the picture where it can be drawn.
# usage: gpt_outputs.sh TRAIN_GPT SCRATCH PRODUCTS
set -u
program=$1
scratch=$2
rm -rf "$scratch" && mkdir -p "$scratch" || exit 1
seq 1 2000 >"$scratch/text"
common="--text $scratch/text --products $3 --steps 3 --batch 4 --context 8 --warm-up 1 --validation-batches 1"
failures=0

expect() {
  [ "$2" = "$3" ] && return
  echo "FAILED: $1: $2, expected $3"
  failures=$((failures + 1))
}
lines() { grep -c "$1" "$2"; }

# shellcheck disable=SC2086
plain=$("$program" $common --quiet --ranks 2 --report-file "$scratch/plain") || exit 1
# shellcheck disable=SC2086
"$program" $common --ranks 2 --validate 2 --csv "$scratch/csv" --report --report-file "$scratch/report" --write-first "$scratch/first" \
  --write-gradients "$scratch/gradients" --sample "1 2 3" --sample-length 20 --temperature 0 >"$scratch/out" 2>"$scratch/err" || exit 1
expect "the result, with gradients written between the parts of a step" "$(tail -1 "$scratch/out")" "$plain"
parameters=$(sed -n 's/^parameters=//p' "$scratch/report")
expect "parameters" "$parameters" 3257856
expect "bytes of first values" "$(wc -c <"$scratch/first")" $((4 * parameters))
expect "bytes of gradients" "$(wc -c <"$scratch/gradients")" $((4 * parameters))
expect "losses" "$(lines ^loss, "$scratch/csv")" 3
expect "losses with one on the validation part" "$(lines '^loss,[0-9]*,[0-9.]*,[0-9.]' "$scratch/csv")" 2
expect "categories of bytes" "$(lines ^bytes,3, "$scratch/csv")" 11
expect "the hash in the report" "hash=$(sed -n 's/^hash=//p' "$scratch/report")" "${plain##* }"
# A validation in between may leave gathers under way, which count for the step after it.
expect "sent elements" "$(sed -n 's/^sent_per_step.mean=//p' "$scratch/plain")" "$(sed -n 's/^sent_per_step.formula=//p' "$scratch/plain")"
expect "rows of the table" "$(lines '^ *3 |' "$scratch/out")" 1
expect "bytes of the sample" "$(sed -n '/^--- sample$/,/^---$/p' "$scratch/out" | wc -c)" $((11 + 5 + 20 + 1 + 4))
expect "the last line of progress" "$(grep -o 'step 3 of 3  100 %' "$scratch/err")" "step 3 of 3  100 %"

# First values of the tied table lie first: their deviation is 0.02.
deviation=$(od -An -v -tf4 -w4 -N262144 "$scratch/first" | awk '{ s += $1 * $1 } END { printf "%.3f", sqrt(s / NR) }')
expect "deviation of the first tensor" "$deviation" 0.020

if python3 -c 'import matplotlib' 2>/dev/null; then
  # shellcheck disable=SC2086
  "$program" $common --quiet --ranks 1 --csv "$scratch/csv" --plot "$scratch/picture.svg" >/dev/null || failures=$((failures + 1))
  expect "pictures" "$(lines '<svg ' "$scratch/picture.svg")" 1
fi
echo "$failures failed"
[ $failures -eq 0 ]
