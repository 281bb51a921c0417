#!/bin/sh
# What the report of a run says is within what libzero promises: memory in use at most formula + constant, elements sent per step those of
# the formula, but for the padding of shards to lines of 256 elements.
# usage: fashion_report.sh TRAIN_FASHION SCRATCH
set -u
program=$1
scratch=$2
. "$(dirname "$0")/fashion_data.sh"
mkdir -p "$scratch" || exit 1
columns=$("$program" --report-header | tail -1 | wc -w)
failures=0
for stage in 0 1 2 3; do
  row=$("$program" --data "$data" --quiet --limit 1024 --epochs 1 --ranks 4 --stage $stage --report \
    --report-file "$scratch/report.$stage" | head -1)
  if [ "$(echo "$row" | wc -w)" -ne "$columns" ]; then
    echo "FAILED: stage $stage: the row has not the $columns columns of the head: $row"
    failures=$((failures + 1))
  fi
  awk -F= -v stage=$stage '
    { value[$1] = $2 }
    function fail(text) { print "FAILED: stage " stage ": " text; bad = 1 }
    END {
      now = value["memory.total.now"]; most = value["memory.total.formula"] + value["memory.total.constant"]
      if (!(now > 0 && now <= most)) fail("memory in use is " now ", formula and constant allow " most)
      sent = value["sent_per_step.mean"]; formula = value["sent_per_step.formula"]
      if (!(sent >= formula && sent <= 1.05 * formula)) fail("sent " sent " elements per step, the formula says " formula)
      print "stage " stage ": in use " now " <= " most ", sent " sent " ~ " formula
      exit bad
    }' "$scratch/report.$stage" || failures=$((failures + 1))
done
[ $failures -eq 0 ]
