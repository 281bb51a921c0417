#!/usr/bin/env bash
# Writes every generated file of the bindings anew from zero.i and the headers.
# usage: regenerate.sh [DIRECTORY]     DIRECTORY: where to write instead of bindings/ (the test compares the two)
# Exit code 77: the version of SWIG that the committed files come from is not here.
set -euo pipefail
case ${1:-} in
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
  -*) echo "regenerate.sh: '$1' is not understood; --help lists what is" >&2; exit 2 ;;
esac
target=$(realpath -m "${1:-$(dirname "$0")/..}")
cd "$(dirname "$0")/.."

# Generated text differs from one version of SWIG to the next; what is committed comes from this one.
swig_version=4.1.0

found=$(swig -version 2>/dev/null | sed -n 's/^SWIG Version //p') || found=
if [ "$found" != "$swig_version" ]; then
  echo "regenerate.sh: SWIG $swig_version is needed, found '${found:-none}'" >&2
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$target/go/internal/czero" "$target/python/libzero"
swig -xml -I../include -o "$work/zero.xml" zero.i
PYTHONDONTWRITEBYTECODE=1 python3 gen/generate.py "$work/zero.xml" "$target"
swig -go -cgo -intgosize 64 -package czero -I../include -outdir "$target/go/internal/czero" -o "$target/go/internal/czero/czero_wrap.c" zero.i
swig -python -threads -I../include -outdir "$target/python/libzero" -o "$target/python/libzero/zero_wrap.c" zero.i
