#!/bin/sh
# How many lines of code differ between own.cpp and sharded.cpp, and how many had to be written once. Comments and empty lines do not count.
# usage: changed_lines.sh FOLDER...
set -eu
for folder in "$@"; do
  changes=$(diff "$folder/own.cpp" "$folder/sharded.cpp" | grep -vE '^[<>] *(//.*)?$' || true)
  header=$(echo "$folder"/sharded_*.h)
  printf '%s: changed lines: %d out, %d in, of %d; %s: %d lines\n' "$(basename "$folder")" \
    "$(echo "$changes" | grep -c '^<')" "$(echo "$changes" | grep -c '^>')" "$(grep -cvE '^ *(//.*)?$' "$folder/own.cpp")" \
    "$(basename "$header")" "$(grep -cvE '^ *(//.*)?$' "$header")"
done
