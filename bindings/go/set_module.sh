#!/usr/bin/env bash
# Gives the Go module another path: that from which it is fetched. It replaces the path that go.mod names, in go.mod, all imports and READMEs.
# usage: bindings/go/set_module.sh PATH      for example git.example.org/team/libzero/bindings/go
# The module lies in a folder of the repository: its path ends with that folder, and tags of its versions begin with it (bindings/go/v0.1.0).
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
[[ $# -eq 1 && $1 =~ ^[a-z0-9.-]+\.[a-z]+(/[A-Za-z0-9._~-]+)*/bindings/go$ ]] || {
  echo "set_module.sh: '${1:-}' is no path of a host and folders that ends with /bindings/go; --help says how it is used" >&2
  exit 2
}
cd "$(dirname "$0")"

old=$(sed -n 's/^module //p' go.mod)
escaped=$(sed 's/[.]/\\./g' <<<"$old")
grep -rlF --include='*.go' --include=go.mod --include=README.md -- "$old" . | xargs sed -i "s,$escaped\b,$1,g"
echo "the module is $1"
