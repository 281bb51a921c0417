#!/usr/bin/env bash
# Builds the Debian packages inside a fresh root of a release, installs them into another fresh one, and compiles and runs README's program
# there with what they brought. Both roots are made by the commands of cmake/packaging/Containerfile.
# usage: debian.sh SOURCE RELEASE SCRATCH      needs root, debootstrap and the release's packages; exit code 77 says what is missing
set -euo pipefail
source=$1
release=$2
scratch=$3

skip() {
  echo "$*"
  exit 77
}
[ -n "${ZERO_TEST_FULL:-}" ] || skip "it fetches and builds for minutes: only with ZERO_TEST_FULL=1 (tools/test.sh --full)"
[ "$(id -u)" -eq 0 ] || skip "only root can make a root folder of a Debian release"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"

# From where this system's own packages come.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | head -n 1)
[ -n "$mirror" ] || skip "apt-get has no source of packages"

# What is mounted in the roots lives in a namespace of its own, and ends with it.
if [ -z "${ZERO_DEBIAN_INSIDE:-}" ]; then
  unshare -m true 2>/dev/null || skip "no namespace of mounts is allowed here"
  ZERO_DEBIAN_INSIDE=1 exec unshare -m bash "$0" "$@"
fi
trap 'umount -l "$scratch"/*/{proc,dev} 2>/dev/null || true; rm -rf --one-file-system "$scratch"' EXIT

# fresh NAME: a root of the release, with /proc, ready for apt.
fresh() {
  debootstrap --variant=minbase "$release" "$scratch/$1" "$mirror" >"$scratch/log" 2>&1 || skip "debootstrap: $(tail -n 1 "$scratch/log")"
  mount -t proc proc "$scratch/$1/proc"
  mount --rbind /dev "$scratch/$1/dev"
}
# inside NAME COMMAND
inside() {
  env -i HOME=/ PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive chroot "$scratch/$1" sh -c "$2"
}

mkdir -p "$scratch"
fresh build
mkdir "$scratch/build/libzero"
tar -C "$source" --exclude=./build --exclude=./.git -c . | tar -C "$scratch/build/libzero" -x
mapfile -t commands < <(sed -n 's/^RUN //p' "$source/cmake/packaging/Containerfile")
[ "${#commands[@]}" -eq 2 ] || { echo "the Containerfile has ${#commands[@]} commands"; exit 1; }
inside build "${commands[0]}"

fresh run
mkdir "$scratch/run/libzero"
cp "$scratch"/build/libzero/build/package/packages/*.deb "$scratch/run/libzero"
inside run "{ ${commands[1]}; } >/log 2>&1 || { tail -n 20 /log; exit 1; }"
cp "$source/examples/readme.c" "$scratch/run/program.c"
inside run 'zero info && { apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config; } >/log 2>&1 ||
  { tail -n 20 /log; exit 1; }
  test -f /usr/share/doc/libzero/html/index.html && cc program.c $(pkg-config --cflags --libs zero) -o program &&
  ./program | tail -n 1 >last && cat last && grep -q "^step 100  w = 2.00000$" last'
echo "$release: packages build, install and work"
umount -l "$scratch"/{build,run}/{proc,dev}
