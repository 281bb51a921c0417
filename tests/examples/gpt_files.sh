#!/bin/sh
# train_gpt --export and --init: a run that begins with an export has its parameters, at any number of ranks and in any stage, and files of
# another model are told before it trains.
# usage: gpt_files.sh TRAIN_GPT SCRATCH PRODUCTS
set -u
program=$1
scratch=$2
rm -rf "$scratch" && mkdir -p "$scratch" || exit 1
seq 1 2000 >"$scratch/text"
common="--quiet --text $scratch/text --products $3 --batch 6 --context 8 --validation-batches 1"
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect_hash WHAT HASH ARGUMENTS...: a run without training has the parameters of that hash.
expect_hash() {
  what=$1
  hash=$2
  shift 2
  # shellcheck disable=SC2086
  found=$("$program" $common --steps 1 --lr 0 --weight-decay 0 "$@" | sed -n 's/^loss=.* hash=//p')
  [ "$found" = "$hash" ] || fail "$what: hash '$found', expected '$hash'"
}

for precision in f32 bf16; do
  model=$scratch/$precision
  # shellcheck disable=SC2086
  hash=$("$program" $common --precision $precision --steps 3 --ranks 3 --stage 3 --export "$model" | sed -n 's/^loss=.* hash=//p')
  [ -n "$hash" ] || fail "$precision: no run"
  [ "$(find "$model" -name 'model-*-of-00003.safetensors' | wc -l)" = 3 ] || fail "$precision: files of three ranks: $(ls "$model")"
  expect_hash "$precision, the folder" "$hash" --precision $precision --ranks 2 --stage 1 --init "$model/" --export "$model.safetensors"
  expect_hash "$precision, one file" "$hash" --precision $precision --ranks 1 --stage 0 --init "$model.safetensors"
  expect_hash "$precision, processes" "$hash" --precision $precision --ranks 3 --mode processes --init "$model/model.safetensors.index.json"
done
# A run that was saved goes on as it was.
expect_hash "saved" "$hash" --precision bf16 --ranks 2 --init "$model" --save "$scratch/saves"
expect_hash "resumed" "$hash" --precision bf16 --ranks 3 --init "$scratch/f32" --save "$scratch/saves" --resume

# reject PATTERN ARGUMENTS...: nothing is trained, and the text says why.
reject() {
  pattern=$1
  shift
  # shellcheck disable=SC2086
  timeout 20 "$program" $common --steps 1000000 --ranks 2 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
  if [ $code -eq 0 ] || [ $code -ge 124 ] || [ -s "$scratch/out" ] || ! grep -q -e "$pattern" "$scratch/err"; then
    fail "$*: exit code $code, expected a line like '$pattern': $(cat "$scratch/err")"
  fi
}

reject 'config.json has n_layer 4, but model small has 6 (--model)' --model small --init "$scratch/f32"
sed -i 's/"n_head": 4/"n_head": 8/' "$scratch/bf16/config.json"
reject 'config.json has n_head 8, but model tiny has 4' --init "$scratch/bf16"
sed -i 's/"n_head": 8/"n_head": 4/; s/gelu_new/relu/' "$scratch/bf16/config.json"
reject 'another activation_function than gelu_new' --init "$scratch/bf16"
reject 'its head is tied; leave out --untied-head' --untied-head --init "$scratch/f32"
rm "$scratch/f32/config.json"
reject 'wte.weight" has shape \[256, 256\] in .*, but \[256, 384\] here' --model small --init "$scratch/f32.safetensors"
reject 'lacks 1 of the names.*lm_head.weight' --untied-head --init "$scratch/f32"
rm "$scratch/f32/model-00002-of-00003.safetensors"
reject 'model-00002-of-00003.safetensors' --init "$scratch/f32"
reject 'nowhere' --init "$scratch/nowhere"
head -c 1000000 "$scratch/f32.safetensors" >"$scratch/cut.safetensors"
reject 'cut.safetensors: .*cut off' --init "$scratch/cut.safetensors"
reject 'holds a model or saves already' --export "$scratch/bf16"
reject 'holds a model or saves already' --export "$scratch/saves/"
reject 'nowhere/model.safetensors: No such file' --export "$scratch/nowhere/model.safetensors"
echo "$failures failed"
[ $failures -eq 0 ]
