#!/bin/sh
# A framework's program and its twin with libzero. With the framework's own update on libzero's shards the losses are the same to the last
# digit; with libzero's AdamW they stay close; stages, and processes instead of threads, change no digit; bad input is one clear line.
# usage: embedding.sh OWN SHARDED SCRATCH
set -u
own=$1
sharded=$2
scratch=$3
. "$(dirname "$0")/fashion_data.sh"
. "$(dirname "$0")/launched.sh"
mkdir -p "$scratch" || exit 1
failures=0
runs=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# train NAME PROGRAM OPTIONS...: 13 steps; the last has 2 samples, fewer than the 4 ranks of some runs.
train() {
  name=$1
  shift
  runs=$((runs + 1))
  timeout 120 "$@" --data "$data" --limit 770 --batch 64 --losses "$scratch/$name" >"$scratch/$name.out" 2>"$scratch/$name.err" || {
    cat "$scratch/$name.err"
    fail "$name: did not end well"
  }
}

# alike A B: the same losses and the same summary.
alike() {
  cmp "$scratch/$1" "$scratch/$2" || fail "$1 and $2 have different losses"
  [ "$(tail -1 "$scratch/$1.out")" = "$(tail -1 "$scratch/$2.out")" ] || fail "$1 and $2 end differently"
}

# close A B: every loss within a fiftieth; what is rounded otherwise makes a unit fire or not once in a while.
close() {
  paste "$scratch/$1" "$scratch/$2" | awk '
    { d = ($1 - $2) / $1; d = d < 0 ? -d : d; if (d > worst) worst = d }
    END { printf "%s: %d losses, farthest %.2g of the loss\n", pair, NR, worst; exit !(NR == 13 && worst < 0.02) }' pair="$1 and $2" ||
    fail "$1 and $2 are not close"
}

train own "$own"
train own.seed "$own" --seed 2
cmp -s "$scratch/own" "$scratch/own.seed" && fail "another seed has the same losses"
train framework "$sharded" --framework-update
alike own framework
train libzero "$sharded"
close own libzero
cmp -s "$scratch/own" "$scratch/libzero" && fail "libzero's update is not used"
for stage in 0 1 2 3; do
  train ranks.$stage "$sharded" --ranks 4 --stage $stage
  alike ranks.0 ranks.$stage
done
close own ranks.3
train framework.ranks "$sharded" --ranks 4 --framework-update
close own framework.ranks

train ranks.two "$sharded" --ranks 2
launched 2 "$sharded" --data "$data" --limit 770 --batch 64 --losses "$scratch/launched" ||
  fail "2 processes did not end well: $(cat "$scratch"/rank*.err)"
mv "$scratch/rank0" "$scratch/launched.out"
[ ! -s "$scratch/rank1" ] || fail "rank 1 prints"
alike ranks.two launched

# reject CODE PATTERN PROGRAM OPTIONS...: that exit code, and a last line that matches.
reject() {
  code=$1
  pattern=$2
  shift 2
  timeout 60 "$@" >"$scratch/rejected.out" 2>"$scratch/rejected.err" </dev/null
  got=$?
  [ $got -eq "$code" ] && [ ! -s "$scratch/rejected.out" ] && tail -1 "$scratch/rejected.err" | grep -q -e "$pattern" || {
    cat "$scratch/rejected.err"
    fail "$*: exit code $got, expected $code and a line like '$pattern'"
  }
}
reject 2 "^$own: --stage: unknown option" "$own" --stage 1
reject 2 "^$sharded: --stage 4: expected a whole number from 0 to 3" "$sharded" --stage 4
reject 2 "^$sharded: --ranks two: expected a whole number" "$sharded" --ranks two
reject 2 "^$sharded: --lr nan: expected a number from 0" "$sharded" --lr nan
reject 2 "^$sharded: --batch: unknown option, or its value is missing" "$sharded" --batch
reject 2 "^$sharded: more: unexpected argument" "$sharded" more
reject 2 "^$sharded: --ranks is for ranks that this program starts, .*(WORLD_SIZE is 2)" \
  env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_PORT=1 "$sharded" --ranks 1
reject 1 "cannot read the images" "$sharded" --data "$scratch/nowhere"
grep -q "nowhere/train-images-idx3-ubyte: No such file.*dataset-fashion-mnist" "$scratch/rejected.err" || fail "the missing file is not named"
reject 1 "^$own: $scratch/nowhere/losses: No such file" "$own" --data "$data" --limit 64 --losses "$scratch/nowhere/losses"
reject 1 "^$sharded: $scratch/nowhere/losses: No such file" "$sharded" --data "$data" --limit 64 --ranks 2 --losses "$scratch/nowhere/losses"
echo "$runs trainings, $failures failed"
[ $failures -eq 0 ]
