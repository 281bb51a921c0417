#!/usr/bin/env bash
# Compares the generated files with what zero.i and the headers give now: none may be missing, differ, or be left from before.
# usage: check_generated.sh WORK          WORK: a directory of its own to write to
set -euo pipefail
bindings=$(cd "$(dirname "$0")/.." && pwd)
work=$1

# Files that say so themselves in their first lines.
generated() {
  (cd "$1" && find . -type f -exec awk '
    FNR == 1 { found = 0 }
    FNR > 2 || found { nextfile }
    /(Written|generated) by (bindings\/gen\/generate.py|SWIG)/ { print FILENAME; found = 1 }' {} + | sort)
}

rm -rf "$work"
"$bindings/gen/regenerate.sh" "$work"
different=0
diff -u --label 'what is in bindings/' <(generated "$bindings") --label 'what is generated' <(cd "$work" && find . -type f | sort) || different=1
while read -r file; do
  if ! diff -u "$bindings/$file" "$work/$file"; then different=1; fi
done < <(cd "$work" && find . -type f | sort)
if [ "$different" -ne 0 ]; then echo "bindings/gen/regenerate.sh has not been run since zero.i, its typemaps or a header changed"; fi
exit "$different"
