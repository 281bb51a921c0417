#!/usr/bin/env bash
# Compares the generated files with what zero.i and the headers give now.
# usage: check_generated.sh WORK          WORK: a directory of its own to write to
set -euo pipefail
bindings=$(cd "$(dirname "$0")/.." && pwd)
work=$1

rm -rf "$work"
"$bindings/gen/regenerate.sh" "$work"
different=0
while read -r file; do
  if ! diff -u "$bindings/$file" "$work/$file"; then different=1; fi
done < <(cd "$work" && find . -type f | sort)
if [ "$different" -ne 0 ]; then echo "bindings/gen/regenerate.sh has not been run since zero.i, its typemaps or a header changed"; fi
exit "$different"
