# Debian packages by purpose, and their installation. Needs only bash, coreutils and, to install,
# apt.
# usage: . tools/packages.sh      the other scripts source it; by itself it does nothing
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  case ${1:-} in -h | --help) sed -n '1,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
  echo "packages.sh: it is to be sourced; --help says how" >&2
  exit 2
fi

# The folders in which the installers of Go and Rust put versions newer than Debian's: these are used where they are present.
PATH=/usr/local/go/bin:${CARGO_HOME:-${HOME:-}/.cargo}/bin:$PATH

zero_packages() {
  case $1 in
    build) echo g++ make cmake ninja-build pkg-config libhwy-dev librandom123-dev libxxhash-dev nlohmann-json3-dev zlib1g-dev libopenblas-dev ;;
    data) echo dataset-fashion-mnist anarchism ;;
    mpi) echo openmpi-bin libopenmpi-dev ;;
    mpich) echo mpich libmpich-dev ;;
    tests) echo libgtest-dev python3 python3-venv clang abigail-tools gcovr iproute2 util-linux procps binutils ;;
    bindings)
      echo swig python3-dev python3-numpy
      command -v go >/dev/null || echo golang-go
      command -v cargo >/dev/null || echo cargo rustc
      ;;
    frameworks) echo libtorch-dev libdlib-dev libblas-dev liblapack-dev ;;
    benchmarks) echo libbenchmark-dev python3 python3-venv iproute2 ;;
    docs) echo doxygen python3 ;;
    packing) echo dpkg-dev file ;;
    rpm) echo rpm ;;
    wheel) echo python3-dev python3-venv ;;
    roots) echo debootstrap ;;
    slurm) echo slurmctld slurmd slurm-client munge ;;
    speed) echo ccache ;;
    *) echo "packages.sh: no list named '$1'" >&2; return 2 ;;
  esac
}

# The packages of the given purposes that are not installed, one per line.
zero_missing_packages() {
  local purpose package state
  for purpose in "$@"; do
    for package in $(zero_packages "$purpose"); do
      state=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) || state=
      [ "$state" = 'install ok installed' ] || echo "$package"
    done
  done
}

# Installs what is missing when run as root; otherwise lists it and goes on. Quiet when nothing is missing. An installation that fails is
# tried again package by package, so that one unknown name does not cost the others; what is left is listed.
zero_install_packages() {
  local missing package
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "packages: this is no Debian system; going on with what is installed"
    return 0
  fi
  missing=$(zero_missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    echo "packages: not installed, and only root can install them: $(echo $missing)"
    echo "packages: going on with what is there; as root: apt-get install --no-install-recommends $(echo $missing)"
    return 0
  fi
  echo "packages: installing $(echo $missing)"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq || echo "packages: the package lists could not be renewed; trying with those that are there"
  if ! zero_apt_install $missing; then
    for package in $missing; do
      zero_apt_install "$package" || true
    done
  fi
  missing=$(zero_missing_packages "$@")
  [ -z "$missing" ] || echo "packages: could not be installed: $(echo $missing); going on without"
}

zero_apt_install() {
  # A fresh machine may be busy with upgrades of its own.
  apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" >/dev/null
}
