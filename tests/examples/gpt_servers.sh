#!/bin/sh
# train_gpt over parameter servers. In rounds the result has the same bits in every run, for 1 and 2 servers, threads, processes and the ranks
# of a launcher; a single worker has the losses and the bits of a run without servers. In the order of arrival no age exceeds the bound, and
# the loss falls.
# usage: gpt_servers.sh TRAIN_GPT SCRATCH PRODUCTS
set -u
program=$1
scratch=$2
. "$(dirname "$0")/launched.sh"
rm -rf "$scratch" && mkdir -p "$scratch" || exit 1
seq 1 2000 >"$scratch/text"
seconds=120
common="--text $scratch/text --products $3 --quiet --batch 4 --context 8 --validation-batches 1"
. "$(dirname "$0")/served.sh"

# Rounds: 7 batches are one too many for an even share.
expected=
for servers in 1 2; do
  for mode in threads processes; do
    train --steps 7 --server $servers --ranks $((servers + 2)) --mode $mode
    [ "$(of pushes)" = 7 ] && [ "$(of left)" = 2 ] && [ "$(of greatest_age)" = 1 ] || fail "counts: $(cat "$scratch/out")"
    [ -n "$expected" ] || expected=$result
    [ "$result" = "$expected" ] || fail "$servers servers, $mode: $result, expected $expected"
  done
done
# shellcheck disable=SC2086
launched 3 "$program" $common --steps 7 --server 1 --csv "$scratch/launched" || fail "three processes of a launcher: $(cat "$scratch"/rank?.err)"
[ "$(tail -n 1 "$scratch/rank0")" = "$expected" ] || fail "three processes of a launcher: $(cat "$scratch"/rank?), expected $expected"
[ "$(grep -c '^loss,[1357],' "$scratch/launched")" -eq 4 ] && [ "$(wc -l <"$scratch/launched")" -eq 5 ] ||
  fail "the first worker's losses: $(cat "$scratch/launched")"
# Another number of workers must change the result. Otherwise the comparisons above prove nothing.
train --steps 7 --server 1 --ranks 4
[ "$result" != "$expected" ] || fail "three workers end with the bits of two"

# One worker: two steps, at the same rate, without what servers do not do.
train --steps 1 --ranks 1 --export "$scratch/model"
for options in "" --untied-head "--init $scratch/model"; do
  # shellcheck disable=SC2086
  set -- --steps 2 --weight-decay 0 $options
  train "$@" --ranks 1 --clip-norm 0 --warm-up 1 --csv "$scratch/plain"
  plain=$result
  grep '^loss' "$scratch/plain" | cut -d , -f 2,3 >"$scratch/plain_losses"
  for servers in 1 2; do
    train "$@" --server $servers --ranks $((servers + 1)) --csv "$scratch/served"
    [ "$result" = "$plain" ] || fail "$options: one worker of $servers servers ends with $result, without servers $plain"
    grep '^loss' "$scratch/served" | cut -d , -f 2,3 | cmp -s - "$scratch/plain_losses" || fail "$options: losses of one worker differ"
  done
done

# The order of arrival.
train --steps 90 --server 1 --ranks 4 --staleness 2 --sample 12 --sample-length 8
grep -q '^--- sample' "$scratch/out" || fail "no sample: $(cat "$scratch/out")"
[ "$(of pushes)" -eq 90 ] && [ "$(of left)" -eq 3 ] && [ "$(of greatest_age)" -le 10 ] || fail "counts: $(cat "$scratch/out")"
awk -v loss="$(of loss)" 'BEGIN { exit !(loss > 0 && loss < 3) }' || fail "the loss is $(of loss) after 90 pushes"
echo "$runs runs, $failures failed: $(head -n 1 "$scratch/out")"
[ $failures -eq 0 ]
