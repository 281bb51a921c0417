#!/usr/bin/env bash
# Prints the path of a julia to use: the one on PATH, or one that this script unpacks into a folder of its own. Debian 11 is the last with a
# Julia, 1.5.3, whose packages are taken from the mirror that apt uses, checked by apt, and unpacked without installing anything. Needs no
# root. Everything but the path, which is the only line on standard output, goes to standard error.
# usage: tools/julia.sh [DIRECTORY]      DIRECTORY: where to unpack; default build/julia
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
case ${1:-} in -*) echo "julia.sh: '$1' is not understood; --help lists what is" >&2; exit 2 ;; esac
prefix=$(realpath -m "${1:-$(dirname "$0")/../build/julia}")

own_release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null) || true
julia_release=bullseye
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# Julia 1.5 hands libunwind structures whose layout later versions changed, so the installed one does not do.
always='libunwind8'

fail() {
  echo "julia.sh: no Julia: $*" >&2
  exit 1
}

# The address that apt fetches the main packages of this release from, whether sources name it or "stable", and lists were fetched or not.
mirror() {
  local option
  for option in --release-info --no-release-info; do
    apt-get indextargets $option --format '$(REPO_URI) $(CODENAME) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null
  done | awk -v release=$own_release '$NF == "main" && ($2 == release || $3 == release) && !found++ { print $1 }'
}

# apt-get that knows only the other release, with lists, caches and state of its own.
private_apt() {
  apt-get -qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o Dir::State="$work/state" -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$work/cache" -o Debug::NoLocking=1 \
    -o APT::Sandbox::User=root -o APT::Update::Error-Mode=any -o Acquire::Languages=none "$@"
}

fetch_packages() {
  local uri missing
  uri=$(mirror)
  [ -n "$uri" ] || fail "apt knows no mirror of $own_release"
  [ -r "$keyring" ] || fail "$keyring is missing (package debian-archive-keyring)"
  mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/packages"
  echo "deb [signed-by=$keyring] $uri $julia_release main" >"$work/sources.list"
  private_apt update >&2 || fail "the package lists of $julia_release cannot be fetched"
  missing=$(private_apt -s --no-install-recommends install julia 2>"$work/problem" | awk '/^Inst/ { print $2 }') || true
  [ -n "$missing" ] || fail "$julia_release has none for this machine: $(tail -n 1 "$work/problem")"
  missing=$(printf "%s/$julia_release\n" $missing $always | sort -u)
  (cd "$work/packages" && private_apt download $missing >&2) || fail "its packages cannot be fetched"
}

installed() {
  local folder
  for folder in /usr/lib /lib; do
    if [ -e "$folder/$1" ]; then echo "$folder/$1" && return; fi
  done
}

unpack() {
  local package link name found
  for package in "$work"/packages/*.deb; do dpkg -x "$package" "$work/prefix"; done
  julia_folder=$(echo "$work"/prefix/usr/lib/*/julia)
  [ -d "$julia_folder" ] || fail "its packages hold no folder usr/lib/*/julia"
  multiarch=$(basename "$(dirname "$julia_folder")")
  # Julia finds libraries through links beside its own; those that are installed are not in the prefix.
  for link in "$julia_folder"/*.so*; do
    [ ! -e "$link" ] || continue
    name=$(basename "$(readlink "$link")")
    found=$(installed "$multiarch/$name")
    [ -n "$found" ] || fail "$name is neither installed nor among its packages"
    ln -s "$found" "$work/prefix/usr/lib/$multiarch/$name"
  done
}

write_wrapper() {
  mkdir -p "$work/prefix/bin"
  cat >"$work/prefix/bin/julia" <<WRAPPER
#!/bin/sh
# Runs the Julia of this prefix with its libraries.
prefix=\$(cd "\$(dirname "\$0")/.." && pwd)
libraries=\$prefix/lib/$multiarch:\$prefix/usr/lib/$multiarch:\$prefix/usr/lib/$multiarch/julia
export LD_LIBRARY_PATH="\$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
export JULIA_DEPOT_PATH="\${JULIA_DEPOT_PATH:-\$prefix/depot}"
exec "\$prefix/usr/bin/julia" "\$@"
WRAPPER
  chmod +x "$work/prefix/bin/julia"
}

# New enough for LibZero, and able to unwind its stack.
works() { [ "$("$1" --startup-file=no -e 'try sqrt(-1.0) catch; print(VERSION >= v"1.5") end' 2>/dev/null)" = true ]; }

if command -v julia >/dev/null && works julia; then
  command -v julia
  exit 0
fi
if ! works "$prefix/bin/julia"; then
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || fail "this is no Debian system"
  mkdir -p "$(dirname "$prefix")"
  work=$(mktemp -d "$prefix.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "julia.sh: unpacking Julia of $julia_release into $prefix" >&2
  fetch_packages
  unpack
  write_wrapper
  works "$work/prefix/bin/julia" || fail "what was unpacked does not run"
  rm -rf "$prefix"
  mv "$work/prefix" "$prefix"
fi
echo "$prefix/bin/julia"
