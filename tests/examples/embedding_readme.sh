#!/bin/sh
# What the README of a framework's example tells a project of its own to do, done as written there with an installed libzero.
# usage: embedding_readme.sh EXAMPLES FRAMEWORK PREFIX SCRATCH
set -eu
readme=$1/$2/README.md
prefix=$3
rm -rf "$4"
mkdir -p "$4"
cd "$4"

# block LANGUAGE: the fenced block of that language behind a line <!-- tested -->.
block() {
  awk -v fence="\`\`\`$1" '
    inside && /^```/ { exit }
    inside
    tested && $0 == fence { inside = 1 }
    { tested = $0 == "<!-- tested -->" }' "$readme"
}
block cpp >program.cpp
block sh >commands.sh
[ -s program.cpp ] && [ -s commands.sh ] || {
  echo "FAILED: $readme has no tested blocks"
  exit 1
}
libraries=$(dirname "$(find "$prefix" -name libzero.so)")
PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries sh -eu commands.sh >out
cat out
tail -1 out | awk '{ exit !($1 == "step" && $2 == 200 && $4 < 0.1) }' || {
  echo "FAILED: expected a last line 'step 200  loss' below 0.1"
  exit 1
}
