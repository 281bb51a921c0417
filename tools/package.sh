#!/usr/bin/env bash
# Builds packages of libzero for this system: Debian packages and a relocatable archive, into build/package/packages.
# usage: tools/package.sh [DEB] [TGZ] [RPM]      default: DEB TGZ
# ZERO_PACKAGE_CONTACT (a variable): "NAME <ADDRESS>" of whom the packages name as their maintainer
# Modules for MPI, CUDA and NCCL are packed where these are found. Packages run on systems whose C library is at least as new as this one's.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
cd "$(dirname "$0")/.."
. tools/packages.sh

generators=("$@")
[ $# -gt 0 ] || generators=(DEB TGZ)
purposes=(build mpi docs packing)
for generator in "${generators[@]}"; do
  case $generator in
    DEB | TGZ) ;;
    RPM) purposes+=(rpm) ;;
    *)
      echo "package.sh: unknown package '$generator'; usage: tools/package.sh [DEB] [TGZ] [RPM]" >&2
      exit 2
      ;;
  esac
done
zero_install_packages "${purposes[@]}"

# quietly COMMAND: its output only when it fails.
log=build/package/log
quietly() {
  "$@" >"$log" 2>&1 || {
    tail -n 30 "$log"
    echo "package.sh: failed: $*" >&2
    exit 1
  }
}

mkdir -p build/package
contact=()
if [ -n "${ZERO_PACKAGE_CONTACT:-}" ]; then contact=(-DZERO_PACKAGE_CONTACT="$ZERO_PACKAGE_CONTACT"); fi
quietly cmake --preset package "${contact[@]}"
grep 'left out' "$log" || true
cmake --build --preset package
rm -rf build/package/packages
for generator in "${generators[@]}"; do quietly cpack --config build/package/CPackConfig.cmake -B build/package -G "$generator"; done
ls -l build/package/packages | awk 'NF > 8 { printf "%8.1f MB  build/package/packages/%s\n", $5 / 1e6, $9 }'

# What each component takes where it is installed, and what libzero.so consists of.
installed=build/package/installed
rm -rf "$installed"
for component in runtime development mpi cuda nccl; do
  DESTDIR=$PWD/$installed/$component cmake --install build/package --component "$component" >"$log"
  if [ -d "$installed/$component" ]; then du -sb "$installed/$component" | awk '{ printf "%8.1f MB  installed: %s\n", $1 / 1e6, $2 }'; fi
done
echo "the ten largest sections of libzero.so, in bytes:"
size -A "$(find "$installed/runtime" -type f -name 'libzero.so.*')" | awk '/^\./ { print $2, $1 }' | sort -rn | head -n 10 |
  awk '{ printf "%12d  %s\n", $1, $2 }'
