#!/bin/sh
# carry_on: 30 steps at once, and 10 and 10 and 10 by other numbers of ranks in other stages, end with the same parameters. A save that is
# damaged is passed over for the one before it, and what is wrong with a folder is told.
# usage: carry_on.sh CARRY_ON SCRATCH
set -u
program=$1
scratch=$2
. "$(dirname "$0")/launched.sh"
rm -rf "$scratch"
mkdir -p "$scratch" || exit 1
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# run RANKS FILE STEPS STAGE: rank 0's line.
run() {
  ranks=$1
  shift
  launched "$ranks" "$program" "$@" || fail "$ranks ranks ended with an error: $(cat "$scratch"/rank*.err)"
  cat "$scratch/rank0"
}

whole=$(run 1 "$scratch/whole" 30 0)
run 4 "$scratch/parts" 10 3
run 1 "$scratch/parts" 10 1
last=$(run 2 "$scratch/parts" 10 0)
echo "$whole"
echo "$last"
[ -n "${whole##* }" ] && [ "${whole##* }" = "${last##* }" ] || fail "parameters are ${whole##* } and ${last##* }"
case $last in "went on at step 20, saved at step 30 by 2 ranks:"*) ;; *) fail "not told where it went on: $last" ;; esac
[ "$(ls "$scratch/parts" | grep -c '^save-')" = 3 ] || fail "there are other saves than three: $(ls "$scratch/parts")"
# Where the run goes on matters: otherwise nothing was compared.
again=$(run 2 "$scratch/parts" 1 3)
[ "${again##* }" != "${last##* }" ] || fail "a step more changed nothing"

# A flipped byte in the newest save: the run goes on from the one before.
newest=$(ls -d "$scratch"/parts/save-* | tail -n 1)
printf 'x' | dd of="$newest/state-00001-of-00002.safetensors" bs=1 seek=5000 conv=notrunc 2>"$scratch/dd" || fail "cannot damage $newest"
repeated=$(run 2 "$scratch/parts" 1 3)
[ "${again##* }" = "${repeated##* }" ] || fail "with a damaged save it went on elsewhere: $repeated"

# refused FOLDER TEXT: the run does not begin anew where there are saves, none of which is whole.
refused() {
  text=$(timeout 60 "$program" "$1" 1 2>&1 >/dev/null) && fail "$1 was taken"
  case $text in "carry_on: $2"*) ;; *) fail "of $1 it says: $text" ;; esac
}

cp -r "$scratch/whole" "$scratch/short"
for manifest in "$scratch"/short/save-*/manifest.safetensors; do head -c 1000 "$manifest" >"$scratch/cut" && cp "$scratch/cut" "$manifest"; done
refused "$scratch/short" "ZERO_E_CHECKPOINT: "
for steps in x -1 1x '' 9223372036854775808; do
  timeout 60 "$program" "$scratch/none" "$steps" 2>"$scratch/usage" && fail "'$steps' steps were taken"
  grep -q "^usage: carry_on FOLDER" "$scratch/usage" || fail "of '$steps' steps it says: $(cat "$scratch/usage")"
done
[ ! -e "$scratch/none" ] || fail "a run that was refused was saved"
timeout 60 "$program" --help 2>"$scratch/usage" && fail "--help was taken for a folder"
grep -q "^usage: carry_on FOLDER" "$scratch/usage" || fail "of --help it says: $(cat "$scratch/usage")"
ln -s loop "$scratch/loop"
refused "$scratch/loop" "ZERO_E_SYSTEM: "
refused "$scratch/no/folder" "cannot make $scratch/no/folder: "
[ $failures -eq 0 ]
