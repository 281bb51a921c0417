#!/bin/sh
# usage: own_symbols_test.sh NM TARGET OBJECT...
# Fails when an object compiled for one SIMD target defines a symbol outside its namespaces that the linker could give to other callers.
set -eu
nm=$1
target=$2
shift 2
[ $# -gt 0 ] || { echo "no objects given"; exit 1; }
symbols=$("$nm" -C --defined-only "$@" | awk 'NF >= 3 && $2 ~ /^[A-Zuvw]$/')
foreign=$(printf '%s\n' "$symbols" | grep -vE "zero::kernels::$target::|hwy::N_[A-Z0-9_]+::|DW\.ref\.|__odr_asan" || true)
if [ -n "$foreign" ]; then
  printf 'symbols that other targets could be given:\n%s\n' "$foreign"
  exit 1
fi
count=$(printf '%s\n' "$symbols" | wc -l)
[ "$count" -ge 8 ] || { echo "only $count symbols found in $# objects"; exit 1; }
echo "$count symbols in $# objects, all of $target"
