#!/bin/sh
# carry_on: 30 steps at once, and 10 and 10 and 10 by other numbers of ranks in other stages, end with the same parameters and the same file.
# What is wrong with a file is told.
# usage: carry_on.sh CARRY_ON SCRATCH
set -u
program=$1
scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch" || exit 1
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# run RANKS FILE STEPS STAGE: as torchrun starts them; rank 0's line.
run() {
  rank=$1
  pids=
  while [ "$rank" -gt 0 ]; do
    rank=$((rank - 1))
    RANK=$rank WORLD_SIZE=$1 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)) \
      TORCHELASTIC_RUN_ID=carry_on.$$.$1.$3.$4 timeout 60 "$program" "$2" "$3" "$4" >"$scratch/rank$rank" &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid" || fail "$1 ranks in stage $4 ended with an error"; done
  cat "$scratch/rank0"
}

whole=$(run 1 "$scratch/whole" 30 0)
run 4 "$scratch/parts" 10 3
run 1 "$scratch/parts" 10 1
last=$(run 2 "$scratch/parts" 10 0)
echo "$whole"
echo "$last"
[ -n "${whole##* }" ] && [ "${whole##* }" = "${last##* }" ] || fail "parameters are ${whole##* } and ${last##* }"
cmp "$scratch/whole" "$scratch/parts" || fail "the files differ"
case $last in "went on at step 20, saved at step 30 by 2 ranks:"*) ;; *) fail "not told where it went on: $last" ;; esac
# Where the run goes on matters: otherwise nothing was compared.
again=$(run 2 "$scratch/parts" 1 3)
[ "${again##* }" != "${last##* }" ] || fail "a step more changed nothing"

head -c 1000 "$scratch/whole" >"$scratch/short"
cp "$scratch/short" "$scratch/before"
text=$(timeout 60 "$program" "$scratch/short" 1 2>&1 >/dev/null) && fail "a file that is too short was taken"
[ "$text" = "carry_on: too little in $scratch/short" ] || fail "of a short file it says: $text"
cmp "$scratch/short" "$scratch/before" || fail "a file that was refused has changed"
[ $failures -eq 0 ]
