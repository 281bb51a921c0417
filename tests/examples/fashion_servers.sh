#!/bin/sh
# train_fashion over parameter servers. In rounds the result has the same bits in every run, for 1 and 2 servers, threads, processes and the
# ranks of a launcher; a single worker has the losses and the bits of a run without servers. In the order of arrival no age exceeds the bound,
# and the accuracy is that of ranks that train together at the same rate, within 1.5 points. A worker that is killed ends rounds, but not the
# run in the order of arrival; one that rests does not stop the others.
# usage: fashion_servers.sh TRAIN_FASHION SCRATCH; accuracy and the worker that rests only with ZERO_TEST_FULL
set -u
program=$1
scratch=$2
. "$(dirname "$0")/fashion_data.sh"
. "$(dirname "$0")/launched.sh"
rm -rf "$scratch" && mkdir -p "$scratch" || exit 1
all=$data
few_test_images 512
few_data=$data
. "$(dirname "$0")/served.sh"
common="--data $data --quiet"

# counts PUSHES WORKERS OLDEST: all was counted, and no push is older.
counts() {
  [ "$(of pushes)" -eq "$1" ] && [ "$(of pulls)" -eq "$1" ] && [ "$(of left)" -eq "$2" ] && [ "$(of lost)" -eq 0 ] &&
    [ "$(of skipped)" -eq 0 ] && [ "$(of greatest_age)" -le "$3" ] &&
    [ $(($(of ages | sed 's/[0-9-]*://g' | tr ',' '+'))) -eq "$1" ] || fail "counts: $(cat "$scratch/out")"
}

# Rounds. 13 batches leave one worker of 3 with a push more than the others; the last batch has 2 images.
short="--limit 770 --batch 64 --epochs 1"
expected=
for servers in 1 2; do
  for mode in threads processes processes; do
    # shellcheck disable=SC2086
    train $short --server $servers --ranks $((servers + 3)) --mode $mode
    counts 13 3 2
    [ -n "$expected" ] || expected=$result
    [ "$result" = "$expected" ] || fail "$servers servers, $mode: $result, expected $expected"
  done
done
# shellcheck disable=SC2086
launched 4 "$program" $common $short --server 1 || fail "four processes of a launcher: $(cat "$scratch"/rank?.err)"
[ "$(tail -n 1 "$scratch/rank0")" = "$expected" ] || fail "four processes of a launcher: $(cat "$scratch"/rank?), expected $expected"
# Another number of workers must change the result. Otherwise the comparisons above prove nothing.
# shellcheck disable=SC2086
train $short --server 1 --ranks 3
[ "$result" != "$expected" ] || fail "two workers end with the bits of three"

# One worker. The rate of a run without servers falls, but in these few of its steps by less than fp32 can show.
head -c 208552 /dev/zero >"$scratch/zeros"
for options in "sgd --lr 0.015625" "adagrad --lr 0.015625" "lion --lr 0.00048828125" "sgd --lr 0.015625 --init $scratch/zeros"; do
  # shellcheck disable=SC2086
  set -- --batch 1 --epochs 100000 --steps 40 --optimizer $options
  train "$@" --ranks 1 --divisor ranks --losses "$scratch/plain"
  plain=$result
  for servers in 1 2; do
    train "$@" --server $servers --ranks $((servers + 1)) --losses "$scratch/served"
    [ "$result" = "$plain" ] || fail "$options: one worker of $servers servers ends with $result, without servers $plain"
    [ "$(wc -l <"$scratch/served")" -eq 40 ] && cmp -s "$scratch/plain" "$scratch/served" || fail "$options: losses of one worker differ"
  done
done

# The order of arrival, at a rate that is kept for all steps by both.
if [ -n "${ZERO_TEST_FULL:-}" ]; then
  common="--data $all --quiet"
  limit=24000
  within=1.5
  steps=$((limit / 16))
  set -- --limit $limit --batch 32 --lr 0.001
  train "$@" --ranks 3 --epochs 100000 --steps $steps
  together=$(of accuracy)
  train "$@" --server 1 --ranks 4 --epochs 2 --staleness 2
  counts $steps 3 10
  echo "accuracy $(of accuracy) %, of ranks that train together $together %: $(head -n 1 "$scratch/out")"
  awk -v got="$(of accuracy)" -v wanted="$together" -v within=$within 'BEGIN { exit !(wanted > 50 && got >= wanted - within) }' ||
    fail "accuracy $(of accuracy) %, of ranks that train together $together % (allowed: $within points)"
  common="--data $few_data --quiet"
fi

# begin OPTIONS...: a run of processes, of which the first worker has computed. $pid is the program, $last its last worker.
begin() {
  runs=$((runs + 1))
  rm -f "$scratch/losses"
  # shellcheck disable=SC2086
  timeout 600 "$program" $common --limit 6000 --mode processes --losses "$scratch/losses" "$@" \
    >"$scratch/out" 2>"$scratch/err" &
  pid=$!
  until [ -s "$scratch/losses" ]; do kill -0 $pid 2>/dev/null && sleep 0.05 || break; done
  last=$(pgrep -P "$(pgrep -P $pid)" | sort -n | tail -n 1)
}

# killed OPTIONS...: a run whose last worker is killed; its exit code is in $code.
killed() {
  begin "$@"
  kill -KILL "$last"
  wait $pid
  code=$?
}

# A worker that rests does not stop the others before they reach the bound. If it rests in the middle of a transfer,
# the others wait for it. The test then tries again.
if [ -n "${ZERO_TEST_FULL:-}" ]; then
  begin --server 1 --ranks 4 --staleness 100000 --batch 250 --epochs 8
  ahead=0
  for attempt in 1 2 3 4 5 6 7 8; do
    kill -STOP "$last" || break
    before=$(wc -l <"$scratch/losses")
    for moment in $(seq 50); do
      ahead=$(($(wc -l <"$scratch/losses") - before))
      [ $ahead -lt 6 ] || break
      sleep 0.1
    done
    kill -CONT "$last"
    [ $ahead -lt 6 ] || break
    sleep 0.2
  done
  wait $pid || fail "a worker rests: $(cat "$scratch/err")"
  counts 192 3 192
  [ $ahead -ge 6 ] || fail "a worker rests: the first was $ahead pushes ahead in attempt $attempt, moment $moment"
fi

killed --server 2 --ranks 5 --staleness 2 --batch 20 --epochs 2
[ $code -eq 1 ] && grep -q "^train_fashion: rank 4 was ended by signal 9$" "$scratch/err" && [ "$(wc -l <"$scratch/err")" -eq 1 ] ||
  fail "a worker is killed: exit code $code: $(cat "$scratch/err")"
[ "$(of lost)" = 1 ] && [ "$(of left)" = 2 ] && [ "$(of pushes)" -ge 400 ] && [ "$(of pushes)" -lt 600 ] && [ -n "$(of hash)" ] ||
  fail "a worker is killed: the others end with $(cat "$scratch/out")"
killed --server 1 --ranks 4 --batch 20 --epochs 2
[ $code -eq 1 ] && [ ! -s "$scratch/out" ] && grep -q "server rank 0 lost worker rank 3" "$scratch/err" ||
  fail "a worker is killed in rounds: exit code $code: $(cat "$scratch/out" "$scratch/err")"

echo "$runs runs, $failures failed"
[ $failures -eq 0 ]
