#!/usr/bin/env bash
# Builds the benchmarks and prints their tables: medians, extremes, and ratios within one run.
# usage:
#   tools/bench.sh                          all programs
#   tools/bench.sh --peers                  also what PyTorch takes for the same work (a virtual environment in build/peers)
#   tools/bench.sh --only PROGRAM [...]     one program alone, with its own arguments: tests/benchmarks/PROGRAM_benchmark.cpp
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
cd "$(dirname "$0")/.."
. tools/packages.sh

# The version that --peers compares with.
torch_version=2.15.0
programs=build/bench/tests/benchmarks
peers=
only=
while [ $# -gt 0 ]; do
  case $1 in
    --peers) peers=yes; shift ;;
    --only)
      [ $# -gt 1 ] || { echo "bench.sh: --only needs the name of a program" >&2; exit 2; }
      only=$2
      shift 2
      break
      ;;
    *) echo "bench.sh: '$1' is not understood; --help lists what is" >&2; exit 2 ;;
  esac
done

build() {
  local launcher=()
  zero_install_packages build mpi benchmarks bindings speed
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_{C,CXX,CUDA}_COMPILER_LAUNCHER=ccache); fi
  cmake -S . -B build/bench -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DZERO_TESTS=OFF -DZERO_EXAMPLES=OFF -DZERO_BENCHMARKS=ON \
    "${launcher[@]}" >/dev/null
  cmake --build build/bench
  export ZERO_MPI_MODULE=$PWD/build/bench/lib/libzero_mpi.so
}

run() {
  echo
  echo "== $*"
  "$programs/$1_benchmark" "${@:2}"
}

# mpi RANKS PROGRAM ARGUMENTS...: the program under mpirun.
mpi() {
  local ranks=$1 options=()
  shift
  if mpirun --version | grep -q 'Open MPI'; then
    options=(--oversubscribe)
    if [ "$(id -u)" -eq 0 ]; then options+=(--allow-run-as-root); fi
  fi
  echo
  echo "== mpirun -n $ranks $*"
  mpirun "${options[@]}" -n "$ranks" "$programs/$1_benchmark" "${@:2}"
}

has_mpi() { [ -x "$programs/hosts_benchmark" ] && command -v mpirun >/dev/null; }

# MPI's medians reach the table of threads through a file; where there are processes they are measured beside the library's. Open MPI maps
# its temporaries afresh in every call unless malloc is told not to.
collectives() {
  local medians=build/bench/mpi_medians.txt
  rm -f "$medians"
  if has_mpi; then
    mpi 2 collectives --launcher --save="$medians"
    mpi 4 collectives --launcher --save="$medians"
    echo "malloc without mmap:"
    (export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184; mpi 2 collectives --launcher)
    mpi 2 collectives --launcher --by-name
    mpi 4 collectives --launcher --by-name
  else
    run collectives --processes
  fi
  run collectives --beside="$medians"
}

# Two hosts: network namespaces, joined by a cable of 1 Gbit/s. That needs root; the script says so where it cannot be done.
hosts() {
  has_mpi || return 0
  echo
  echo "== 2 hosts x 2 ranks: hosts"
  ZERO_NETNS_RATE=1gbit sh tests/group/netns_mpirun.sh "$PWD/$programs/hosts_benchmark" --gbits=1 || [ $? -eq 77 ]
}

steps() {
  run zero_step
  run zero_step --mixed --library-memory
  run zero_step --ranks=2 --stage=1,2 --one-copy
  run zero_step --processes --ranks=2 --stage=1
  if has_mpi; then mpi 2 zero_step --launcher --stage=1; fi
}

# What a call costs in each language that is here, with the library as it is installed.
calls() {
  local prefix=$PWD/build/bench/prefix bindings=$PWD/bindings python=/usr/bin/python3 julia
  cmake --install build/bench --prefix "$prefix" >/dev/null
  (
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name zero.pc)")
    LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
    export PKG_CONFIG_PATH LD_LIBRARY_PATH CARGO_TARGET_DIR=$PWD/build/bench/rust
    overhead C cc_overhead
    if command -v cargo >/dev/null; then
      overhead Rust cargo run --release --quiet --manifest-path "$bindings/rust/Cargo.toml" --example overhead
    fi
    if command -v go >/dev/null; then overhead Go go_overhead; fi
    if julia=$(tools/julia.sh 2>/dev/null); then
      overhead Julia "$julia" --startup-file=no --project="$bindings/julia/LibZero" "$bindings/julia/LibZero/examples/overhead.jl"
    fi
    if "$python" -c 'import numpy' 2>/dev/null; then overhead Python python_overhead "$python"; fi
  )
}

overhead() {
  echo
  echo "== calls: $1"
  "${@:2}"
}

# pkg-config quotes paths for a shell.
cc_with_zero() {
  local flags
  eval "flags=($(pkg-config --cflags --libs zero))"
  cc "$@" "${flags[@]}"
}

cc_overhead() {
  local sources=bindings/conformance/c
  cc_with_zero -O2 -D_GNU_SOURCE "$sources/overhead.c" "$sources/check.c" -o build/bench/overhead
  build/bench/overhead
}

go_overhead() { (cd bindings/go && go run ./cmd/overhead); }

python_overhead() {
  local python=$1 folder=build/bench/python include
  include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  mkdir -p "$folder"
  cp -r bindings/python/libzero "$folder/"
  cc_with_zero -O2 -shared -fPIC -I"$include" "$folder/libzero/zero_wrap.c" -o "$folder/libzero/_zero.so"
  PYTHONPATH=$folder "$python" bindings/python/conformance/overhead.py
}

compare_peers() {
  local python=build/peers/bin/python
  if ! "$python" -c "import torch; raise SystemExit(torch.__version__.split('+')[0] != '$torch_version')" 2>/dev/null; then
    python3 -m venv build/peers
    "$python" -m pip install --quiet "torch==$torch_version"
  fi
  echo
  echo "== peers"
  "$python" tests/benchmarks/peers.py kernels --library build/bench/lib/libzero.so
  run zero_step --ranks=2 --stage=1 --library-memory
  "$python" tests/benchmarks/peers.py steps
  run zero_step --ranks=2 --stage=1 --library-memory
}

build
if [ -n "$only" ]; then
  run "$only" "$@"
  exit
fi
run kernels
run kernels --elements=268435456
run list
run step
run scaling --svg=build/bench/scaling.svg
steps
collectives
hosts
run overlap --trace=build/bench/overlap
run prefetch
run verify
calls
if [ -n "$peers" ]; then compare_peers; fi
