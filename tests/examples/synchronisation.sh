#!/bin/sh
# local_steps ends near the same point with a sixteenth of the traffic; server has the bits of even shards, with all states on rank 0.
# Ranks of unequal come to an equal end however slow one is, which then has the smaller share.
# Workers of own_pace keep to their bound and come near the same point.
# usage: synchronisation.sh LOCAL_STEPS SERVER UNEQUAL OWN_PACE SCRATCH
set -u
local_steps=$1
server=$2
unequal=$3
own_pace=$4
scratch=$5
. "$(dirname "$0")/launched.sh"
mkdir -p "$scratch" || exit 1
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

for ranks in 2 4; do
  launched $ranks "$local_steps" || fail "local_steps on $ranks ranks"
  awk -v ranks=$ranks -F '[ =]' '
    { sent[NR] = $4; far[NR] = $6 }
    END {
      ratio = sent[2] / sent[1]
      if (NR != 2 || ratio < 0.05 || ratio > 0.08 || far[1] > 0.001 || far[2] > 0.001) {
        print "FAILED: local_steps on " ranks " ranks: ratio of traffic " ratio ", distances " far[1] " and " far[2]
        exit 1
      }
    }' "$scratch/rank0" || failures=$((failures + 1))
  launched $ranks "$server" || fail "server on $ranks ranks"
  cat "$scratch"/rank[0-9] >"$scratch/all"
  [ "$(grep -c 'shards=' "$scratch/all")" -eq $((2 * ranks)) ] || fail "server: lines of $ranks ranks"
  [ "$(sed 's/.*hash=//' "$scratch/all" | sort -u | wc -l)" -eq 1 ] || fail "server: bits differ on $ranks ranks"
  grep -q '^shards=server rank=0 states=40000 reduced=0 ' "$scratch/all" || fail "server: rank 0 keeps all states: $(cat "$scratch/all")"
  grep -q '^shards=server rank=1 states=0 reduced=5000 gathered=0 ' "$scratch/all" || fail "server: rank 1 keeps none: $(cat "$scratch/all")"
  rm -f "$scratch"/rank[0-9]
  for slow in 1 8; do
    launched $ranks "$unequal" --slow $slow || fail "unequal on $ranks ranks"
    cp "$scratch/rank0" "$scratch/slow$slow"
    rm -f "$scratch"/rank[0-9]
  done
  awk -F 'distance=' -v ranks=$ranks '
    NF == 2 { far[++count] = $2 }
    END {
      apart = far[1] - far[2]
      if (count != 2 || apart > 0.0005 || apart < -0.0005) {
        print "FAILED: unequal on " ranks " ranks: " count " distances, " far[1] " and " far[2]
        exit 1
      }
    }' "$scratch/slow1" "$scratch/slow8" || failures=$((failures + 1))
  awk -F '[ =,]' -v ranks=$ranks '
    /^step=11 / {
      seen = 1
      for (i = 4; i < 4 + ranks; i++) sum += $i
      if (sum != 1024 || $(3 + ranks) * 2 > $4) exit 1
    }
    END { if (!seen) exit 1 }' "$scratch/slow8" || fail "unequal on $ranks ranks: shares $(cat "$scratch/slow8")"
  for bound in 0 3; do
    launched $ranks "$own_pace" $bound || fail "own_pace $bound on $ranks ranks"
    awk -F '[ =]' -v workers=$((ranks - 1)) -v bound=$bound '
      { seen = 1; if ($2 != 150 * workers || $6 > (2 * bound + 1) * (workers - 1) || $8 > 0.05) exit 1 }
      END { if (!seen) exit 1 }' "$scratch/rank0" || fail "own_pace $bound on $ranks ranks: $(cat "$scratch/rank0")"
    rm -f "$scratch"/rank[0-9]
  done
done
"$unequal" --slow 0 2>/dev/null && fail "unequal --slow 0"
"$local_steps" 2>"$scratch/alone" && fail "local_steps alone"
grep -q 'nobody to meet' "$scratch/alone" || fail "local_steps alone says: $(cat "$scratch/alone")"
"$own_pace" 2>"$scratch/alone" && fail "own_pace alone"
grep -q 'ZERO_KEY_SERVER_RANKS is 1' "$scratch/alone" || fail "own_pace alone says: $(cat "$scratch/alone")"
echo "4 programs on 2 and 4 ranks, $failures failed"
[ $failures -eq 0 ]
