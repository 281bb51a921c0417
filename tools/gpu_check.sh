#!/usr/bin/env bash
# Builds, tests and measures what touches CUDA devices, on a bare machine with a GPU, a CUDA Toolkit, CMake and no network.
# usage: tools/gpu_check.sh pack DIRECTORY         on a Debian machine with a network: collects the libraries that the build needs
#        tools/gpu_check.sh [DIRECTORY [PART...]]  on the machine with the GPU: DIRECTORY as packed, or "" where they are installed
# OUT (a variable): a folder that gets the logs. LIMIT (another): the seconds for everything, the build included; 570 if unset.
# parts: tests benchmarks sanitizer fashion emulation; without one, all of them. What is built already is not built again.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
case ${1:-} in -*) echo "gpu_check.sh: '$1' is not understood; --help lists what is" >&2; exit 2 ;; esac
began_in=$PWD
cd "$(dirname "$0")/.."

packages=(libhwy-dev librandom123-dev libxxhash-dev nlohmann-json3-dev libgtest-dev libbenchmark-dev libbenchmark1debian zlib1g-dev
  dataset-fashion-mnist)
build=build/gpu
cuda_tests=(kernels/loaded_kernels_test memory/cuda_module_test kernels/cuda_kernels_test engine/cuda_optimizer_test
  examples/fashion_compute_cuda_test)
cuda_nccl_tests=(api/cuda_nccl_api_test)
# Over the emulation of CUDA, with this machine's compilers.
emulated_tests=(kernels/device_kernels_test memory/device_test engine/engine_devices_test engine/device_tier_failures_test
  api/device_api_test examples/fashion_compute_test)
emulated_nccl_tests=(group/nccl_table_test group/nccl_collectives_test engine/nccl_training_test faults/nccl_faults_test api/nccl_api_test)
limit=${LIMIT:-570}
failed=0  # programs that failed, or had to be skipped or left out
scratch=

fail() {
  echo "gpu_check.sh: $*" >&2
  exit 1
}

# The path of a DIRECTORY that was given where the script was started.
path_of() { (cd "$began_in" && realpath -m "$1"); }

pack() {
  local directory package
  directory=$(path_of "$1")
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  (cd "$scratch" && apt-get download -qq -o APT::Sandbox::User=root "${packages[@]}") || fail "the packages cannot be fetched: ${packages[*]}; apt-get update fetches their lists"
  mkdir -p "$directory"
  for package in "$scratch"/*.deb; do dpkg -x "$package" "$directory"; done
  git rev-parse --short HEAD >"$directory/commit" || fail "only a repository is packed: its commit goes with it"
  echo "gpu_check.sh: packed ${#packages[@]} packages into $directory"
}

configure() {
  local nccl capability options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo -DZERO_CUDA=ON -DZERO_MPI=OFF -DZERO_EXAMPLES=OFF -DZERO_TESTS=ON
    -DZERO_BENCHMARKS=ON -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON -DCMAKE_DISABLE_FIND_PACKAGE_dlib=ON)
  if command -v ninja >/dev/null; then options+=(-G Ninja); fi
  if [ -n "$1" ]; then options+=(-DCMAKE_PREFIX_PATH="$1/usr"); fi
  # For this device alone, and with whatever its compilers warn of: the machine may be here for minutes.
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) || capability=
  case $capability in
    [0-9].[0-9] | [0-9][0-9].[0-9]) options+=(-DZERO_CUDA_ARCHITECTURES="${capability/./}-real") ;;
    *) options+=(-DZERO_CUDA_ARCHITECTURES='80-real;90-real;100') ;;
  esac
  options+=(-DZERO_WERROR=OFF)
  # Beside the toolkit, or as PyTorch brings it.
  nccl=$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])' 2>/dev/null || true)
  if [ -e "$nccl/include/nccl.h" ]; then
    options+=(-DZERO_NCCL_INCLUDE_DIR="$nccl/include" -DZERO_NCCL_LIBRARY="$nccl/lib/libnccl.so.2")
  fi
  mkdir -p "$build"
  cmake -S . -B "$build" "${options[@]}" >"$build/configure.log" 2>&1 || { tail -n 30 "$build/configure.log" >&2; fail "not configured"; }
}

# within MOST NAME COMMAND...: for MOST seconds, or as many as are left. What has none left is not begun: 99.
within() {
  local left=$((limit - SECONDS)) most=$1 name=$2
  shift 2
  if [ "$left" -lt 5 ]; then
    echo "$name: left out: the $limit seconds (LIMIT) are over"
    return 99
  fi
  timeout -k 5 "$((left < most ? left : most))" "$@"
}

# check NAME COMMAND...: one line of the table. The whole log stays in build/gpu.
check() {
  local name=$1 begin=$SECONDS result=passed
  shift
  within 150 "$name" "$@" >"$build/$name.log" 2>&1 || { if [ $? = 99 ]; then result='left out'; else result=FAILED; fi; }
  if [ "$result" = FAILED ]; then
    grep -m 1 -A 12 'Failure$' "$build/$name.log" || tail -n 20 "$build/$name.log"
    grep '^\[  FAILED  \]' "$build/$name.log" | sort -u | head -n 20 || true
  fi
  if [ "$result" = passed ] && grep -q '\[  SKIPPED \]' "$build/$name.log"; then result=skipped; fi
  [ "$result" = passed ] || failed=$((failed + 1))
  printf '%-36s %-8s %4d s\n' "$name" "$result" "$((SECONDS - begin))"
}

# describe_machine DIRECTORY: a copy without the repository has the commit that was packed.
describe_machine() {
  local cuda=${CUDACXX:-nvcc} commit
  commit=$(git rev-parse --short HEAD 2>/dev/null || cat "$1/commit" 2>/dev/null || echo 'no repository')
  echo "date:    $(date -u +%Y-%m-%d)"
  echo "commit:  $commit"
  echo "device:  $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -n 1)"
  echo "toolkit: $("$cuda" --version 2>/dev/null | sed -n 's/^Cuda compilation tools, release //p')"
  echo "host:    $(nproc) cores"
}

# table NAME COMMAND...: prints a table of its own; where it ends early the others come all the same.
table() {
  local name=$1
  shift
  within 240 "$name" "$@" || { [ $? = 99 ] || echo "gpu_check.sh: $name FAILED"; failed=$((failed + 1)); }
}

# A training on the device, beside the same on the host.
train_fashion() {
  if [ -n "$1" ]; then export ZERO_FASHION_DATA=$1/usr/share/datasets/fashion-mnist; fi
  table fashion_cuda.sh tests/examples/fashion_cuda.sh "$build/examples/train_fashion"
}

# build_targets NAME TARGET...
build_targets() {
  local name=$1
  shift
  within "$limit" "$name" cmake --build "$build" --parallel "$(nproc)" --target "$@" >"$build/$name.log" 2>&1 ||
    { tail -n 30 "$build/$name.log" >&2; return 1; }
}

# build_parts PART...: what the parts need of the device. The first of the tests tells whether there is one.
build_parts() {
  local part targets=(zero_cuda "${cuda_tests[@]##*/}")
  for part; do
    case $part in
      benchmarks) targets+=(device_benchmark device_step_benchmark) ;;
      fashion) targets+=(train_fashion) ;;
    esac
  done
  build_targets build "${targets[@]}" || fail "not built"
}

# Suite by suite: a hang in one leaves the others their time.
run_tests() {
  local test suite
  for test in "${cuda_tests[@]}"; do
    check "${test##*/}.list" "$build/tests/$test" --gtest_list_tests
    for suite in $(sed -n 's/^\([A-Za-z0-9_/]*\.\).*/\1/p' "$build/${test##*/}.list.log"); do
      check "${test##*/}.${suite//[\/.]/}" "$build/tests/$test" --gtest_filter="$suite*"
    done
  done
}

# Built when all else has been done: the device's own tests do not wait for it.
run_emulation() {
  local test
  build_targets build_emulation "${emulated_tests[@]##*/}" || { echo "emulation: not built"; failed=$((failed + 1)); return; }
  for test in "${emulated_tests[@]}"; do check "${test##*/}" env ZERO_TEST_FEW=1 "$build/tests/$test"; done
}

# Under the tools of compute-sanitizer a short subset.
run_sanitizer() {
  local tests=$build/tests sanitizer
  if ! sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer); then
    printf '%-36s %s\n' 'memcheck, racecheck' 'left out: compute-sanitizer is not installed'
    return
  fi
  check memcheck "$sanitizer" --tool memcheck --leak-check full --error-exitcode 1 "$tests/engine/cuda_optimizer_test" \
    --gtest_filter='OnDevice.TensorsOfManyPartsArrive:KeptOnDevice.AStepIsOrderedByItsStream:KeptOnDevice.ViewsAreForKernelsOfTheCaller:StepsOnDevice.GraphsKeepWhatTheyKnowUntilItIsRefreshed'
  export ZERO_TEST_FEW=1
  check kernels_memcheck "$sanitizer" --tool memcheck --leak-check full --error-exitcode 1 "$tests/kernels/cuda_kernels_test"
  check kernels_racecheck "$sanitizer" --tool racecheck --error-exitcode 1 "$tests/kernels/cuda_kernels_test"
  unset ZERO_TEST_FEW
}

# Elements of the big rows. Where there is room, so many that four ranks that share the device take 12 GiB.
elements() {
  local mebibytes
  mebibytes=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2>/dev/null | head -n 1)
  if [ "${mebibytes:-0}" -ge 20000 ] 2>/dev/null; then echo 268435456; else echo 134217728; fi
}

run_benchmarks() {
  table device_step_benchmark "$build/tests/benchmarks/device_step_benchmark" --elements="$(elements)"
  echo
  if python3 -c 'import torch' 2>/dev/null; then
    table device_peers.py python3 tests/benchmarks/device_peers.py --library "$build/lib/libzero.so" --module "$ZERO_CUDA_MODULE"
  else
    echo 'device_peers.py: left out: PyTorch is not installed'
  fi
  echo
  table device_benchmark "$build/tests/benchmarks/device_benchmark"
}

# run_parts DIRECTORY PART...
run_parts() {
  local directory=$1 part
  shift
  configure "$directory"
  if grep -q 'libzero_nccl.so is left out' "$build/configure.log"; then
    sed -n 's/^-- \(libzero_nccl.so is left out.*\)/\1/p' "$build/configure.log"
  else
    cuda_tests+=("${cuda_nccl_tests[@]}")
    emulated_tests+=("${emulated_nccl_tests[@]}")
  fi
  build_parts "$@"
  export LD_LIBRARY_PATH=${directory:+$(find "$directory/usr/lib" -name 'libbenchmark.so*' -printf '%h\n' -quit):}${LD_LIBRARY_PATH:-}
  export ZERO_CUDA_MODULE=$PWD/$build/lib/libzero_cuda.so
  # Streams of several ranks on one device are to have channels of their own.
  export CUDA_DEVICE_MAX_CONNECTIONS=32
  timeout -k 5 60 "$build/tests/engine/cuda_optimizer_test" --gtest_filter='OnDevice.Staging*' --gtest_brief=1 >"$build/device.log" 2>&1 || true
  if ! grep -q '\[  PASSED  \] 1 test' "$build/device.log"; then
    tail -n 20 "$build/device.log" >&2
    nvidia-smi -L 2>/dev/null | grep -q '^GPU 0' || fail "there is no device to check"
    echo 'gpu_check.sh: a device is here, but the first test FAILED; all the same:'
    failed=$((failed + 1))
  fi
  describe_machine "$directory"
  for part; do
    echo
    case $part in
      tests) run_tests ;;
      benchmarks) run_benchmarks ;;
      sanitizer) run_sanitizer ;;
      fashion) train_fashion "$directory" ;;
      emulation) run_emulation ;;
    esac
  done
}

if [ "${1:-}" = pack ]; then
  [ $# -eq 2 ] || fail "usage: tools/gpu_check.sh pack DIRECTORY"
  pack "$2"
  exit 0
fi
directory=${1:-}
[ $# -eq 0 ] || shift
[ -z "$directory" ] || directory=$(path_of "$directory")
[ -z "$directory" ] || [ -d "$directory/usr" ] || fail "'$directory' is no directory that pack has filled"
[ $# -gt 0 ] || set -- tests benchmarks sanitizer fashion emulation
for part; do
  case $part in
    tests | benchmarks | sanitizer | fashion | emulation) ;;
    *) echo "gpu_check.sh: '$part' is no part; parts are tests, benchmarks, sanitizer, fashion, emulation" >&2; exit 2 ;;
  esac
done
mkdir -p "$build"
if [ -n "${OUT:-}" ]; then trap '(cd "$build" && tar -czf "$OUT/logs.tgz" ./*.log) || true' EXIT; fi
run_parts "$directory" "$@"
[ "$failed" = 0 ] || fail "$failed failed, skipped or left out; the whole has $limit seconds (LIMIT)"
