#!/bin/bash
# The commands of `zero ckpt` on saves of the sample run: what they print, and their exit codes.
# usage: ckpt_command.sh ZERO SAVE_PROGRAM SCRATCH
set -u
zero=$1
program=$2
scratch=$(mktemp -d "$3/ckpt-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
checks=0

# expect CODE PATTERN COMMAND...: the exit code, and a line of output or errors.
expect() {
  local wanted=$1 pattern=$2 output code
  shift 2
  output=$("$@" 2>&1)
  code=$?
  if [ $code -ne "$wanted" ] || ! grep -qE -- "$pattern" <<<"$output"; then
    echo "FAILED $*: exit code $code, expected $wanted; expected a line like '$pattern' in:"
    echo "$output"
    exit 1
  fi
  checks=$((checks + 1))
}

json() { python3 -c 'import json, sys; json.load(sys.stdin)' || { echo "FAILED no JSON"; return 1; }; }

saves=$scratch/saves
mkdir "$saves" "$scratch/empty"
for step in 1 2 3; do "$program" save "$saves" $step >"$scratch/$step.txt" || exit 1; done
newest=$(sed -n 's/^acknowledged //p' "$scratch/3.txt")
older=$(sed -n 's/^acknowledged //p' "$scratch/2.txt")

expect 0 "^$newest  step 3, .* 2 ranks, .*, run [0-9a-f]{32}$" "$zero" ckpt list "$saves"
expect 0 '"valid": true' "$zero" ckpt list "$saves" --json
"$zero" ckpt list "$saves" --json | json || exit 1
expect 0 '^step 3, ' "$zero" ckpt inspect "$saves"
expect 0 '^step 2, ' "$zero" ckpt inspect "$saves/$older"
expect 0 '"sections"' "$zero" ckpt inspect --json "$saves"
"$zero" ckpt inspect --json "$saves" | json || exit 1
expect 0 '^good: [0-9]+ bytes checked' "$zero" ckpt verify "$saves"
expect 0 '^' "$zero" ckpt diff "$saves" "$saves/$newest"
expect 1 'w param: has other values' "$zero" ckpt diff "$saves/$older" "$saves/$newest"
expect 1 '"difference": "has other values"' "$zero" ckpt diff --json "$saves/$older" "$saves/$newest"
expect 1 '^step: differs: 2 \| 3$' "$zero" ckpt diff "$saves/$older" "$saves/$newest"
"$zero" ckpt diff --json "$saves/$older" "$saves/$newest" | json || exit 1
expect 0 '^' "$zero" ckpt export "$saves" "$scratch/model.safetensors"
expect 0 '"w","BF16"' "$program" plain "$scratch/model.safetensors"
expect 0 '^' "$zero" ckpt export "$saves" "$scratch/model"
expect 0 '"w","BF16"' "$program" plain "$scratch/model"
expect 2 'name an empty folder' "$zero" ckpt export "$saves" "$scratch/model"
expect 0 "^would remove $older" "$zero" ckpt prune "$saves" --keep 1
[ -d "$saves/$older" ] || { echo "FAILED prune without --yes has removed a save"; exit 1; }

# Damage: one byte of a state file, then of the manifest.
file=$saves/$newest/state-00002-of-00002.safetensors
printf 'X' | dd of="$file" bs=1 seek=5000 conv=notrunc status=none
expect 1 'state-00002-of-00002.safetensors is damaged: block 0' "$zero" ckpt verify "$saves"
printf 'X' | dd of="$saves/$newest/manifest.safetensors" bs=1 seek=5000 conv=notrunc status=none
expect 1 'manifest.safetensors is damaged' "$zero" ckpt verify "$saves/$newest"
expect 0 "^$newest  DAMAGED: " "$zero" ckpt list "$saves"
expect 0 '^good: ' "$zero" ckpt verify "$saves"  # the one before it
expect 0 '^' "$zero" ckpt prune "$saves" --keep 1 --yes
[ -d "$saves/$older" ] || { echo "FAILED prune has removed the newest valid save"; exit 1; }
"$program" save "$saves" 4 >/dev/null || exit 1
expect 0 "^removing $older" "$zero" ckpt prune "$saves" --keep 1 --yes
[ -d "$saves/$older" ] && { echo "FAILED prune has left $older"; exit 1; }

# Usage and what is not there.
expect 3 'no committed save' "$zero" ckpt verify "$scratch/empty"
expect 3 'cannot open folder' "$zero" ckpt inspect "$scratch/nowhere"
expect 0 '^usage: zero ckpt list' "$zero" ckpt --help
expect 2 'no command given' "$zero" ckpt
expect 2 "unknown command 'destroy'" "$zero" ckpt destroy
expect 2 'a path is missing' "$zero" ckpt diff "$saves"
expect 2 "unexpected or incomplete argument '--json'" "$zero" ckpt verify "$saves" --json
expect 2 '--keep K is missing' "$zero" ckpt prune "$saves"
expect 2 "unexpected or incomplete argument '--keep'" "$zero" ckpt prune "$saves" --keep 0
expect 2 "unexpected or incomplete argument '$saves'" "$zero" ckpt list "$saves" "$saves"
echo "$checks commands of zero ckpt, wanted 30"
[ $checks -ge 30 ]
