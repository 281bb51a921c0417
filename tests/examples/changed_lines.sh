#!/bin/sh
# The README of each framework's example says how many lines changed, as changed_lines.sh counts them now.
# usage: changed_lines.sh EXAMPLES FRAMEWORK
set -u
line=$(sh "$1/embedding/changed_lines.sh" "$1/$2") || exit 1
echo "$line"
grep -qF -- "$line" "$1/$2/README.md" || {
  echo "FAILED: $2/README.md says otherwise: $(grep 'changed lines:' "$1/$2/README.md")"
  exit 1
}
