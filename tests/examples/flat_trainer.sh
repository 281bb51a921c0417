#!/bin/sh
# examples/flat_trainer: the losses of own.c are those of the sharded programs in every stage, for one rank and for two; and the program
# with libzero has at most 40 lines that the one without has not.
# usage: flat_trainer.sh SOURCE_FOLDER OWN SHARDED STAGE3 SCRATCH
set -u
source=$1
own=$2
sharded=$3
stage3=$4
scratch=$5
mkdir -p "$scratch" || exit 1
. "$(dirname "$0")/launched.sh"
failures=0
"$own" >"$scratch/expected" || exit 1
[ "$(wc -l <"$scratch/expected")" -eq 6 ] || { echo "FAILED: $own printed: $(cat "$scratch/expected")"; exit 1; }

# compare NAME FILE: losses agree within a millionth, and two in the last digit that is printed.
compare() {
  paste -d' ' "$scratch/expected" "$2" | awk -v name="$1" '
    { distance = $4 > $8 ? $4 - $8 : $8 - $4 }
    $2 != $6 || !(distance <= 2e-6 + 1e-6 * $4) { print "FAILED: " name ": " $0; bad = 1 }
    END { exit bad || NR != 6 }' || failures=$((failures + 1))
}

for stage in 0 1 2 3; do
  program=$sharded
  [ $stage -lt 3 ] || program=$stage3
  export FLAT_STAGE=$stage
  "$program" >"$scratch/alone" || failures=$((failures + 1))
  compare "stage $stage, one rank" "$scratch/alone"
  launched 2 "$program" || { echo "FAILED: stage $stage, two ranks: $(cat "$scratch/rank0.err")"; failures=$((failures + 1)); }
  compare "stage $stage, two ranks" "$scratch/rank0"
done
awk '{ if (NR == 1) first = $4; last = $4 } END { exit !(last < first / 2) }' "$scratch/expected" || { echo "FAILED: nothing was learnt"; failures=1; }

new=$(diff "$source/own.c" "$source/sharded.c" | grep -c '^>')
more=$(diff "$source/sharded.c" "$source/stage3.c" | grep -c '^>')
echo "$new new lines, $more more for stage 3, $failures failed"
[ $failures -eq 0 ] && [ "$new" -le 40 ] && [ "$more" -le 12 ]
