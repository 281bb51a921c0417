#!/usr/bin/env bash
# Builds and tests everything this machine can: release and sanitizers. What is left out is listed with its reason.
# usage: tools/test.sh [--full]      --full: the release build runs the stated counts of the large property tests instead of a seeded
#                                    subset, and one with counters tells how much of lib/ the tests reach
# ZERO_FETCH=0 (a variable): fetch no CUDA Toolkit from PyPI where none is installed, no crate for the Rust package, and with --full neither
#                            ggml nor the modules of Gorgonia; what needs them is then left out unless they are there
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
cd "$(dirname "$0")/.."
. tools/packages.sh

full=
for option; do
  case $option in
    --full) full=1 ;;
    *)
      echo "test.sh: unknown option '$option'; usage: tools/test.sh [--full]" >&2
      exit 2
      ;;
  esac
done

export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:halt_on_error=1
export LSAN_OPTIONS="suppressions='$PWD/tests/leaks.supp':print_suppressions=0"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Shadow memory in huge pages: each small one costs two faults (read, then written), the second with a call to the other cores.
export TSAN_OPTIONS=second_deadlock_stack=1:halt_on_error=1:no_huge_pages_for_shadow=0
# Kernels and tests have no counters: the coverage build finds those of the release build, whose folder lies beside its own.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# Open MPI refuses root and more ranks than cores unless told that both are meant; the last name is that of release 5.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
  PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

jobs=$(nproc)
# Ranks that wait leave cores to other tests.
tests_at_once=$((jobs + jobs / 2))
logs=build/test-logs
passed=0
failed=0
skipped=0
failures=()
left_out=()
rm -rf "$logs"
mkdir -p "$logs"

title() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }
failure() {
  failed=$((failed + 1))
  failures+=("$*")
  echo "test.sh: failed: $*"
}
leave_out() {
  skipped=$((skipped + 1))
  left_out+=("$*")
}

# build PRESET TARGET [cmake options]: configures and builds into build/PRESET. False, and counted, when that fails.
build() {
  local preset=$1 target=$2 reason launcher=()
  shift 2
  title "$preset: build"
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_{C,CXX,CUDA}_COMPILER_LAUNCHER=ccache); fi
  if ! cmake --preset "$preset" -DZERO_TESTS=ON -DZERO_EXAMPLES=ON "${launcher[@]}" "${cuda[@]}" "$@" >"$logs/$preset-configure" 2>&1; then
    tail -n 30 "$logs/$preset-configure"
    failure "$preset: configuration"
    return 1
  fi
  while read -r reason; do left_out+=("$preset: ${reason#-- }"); done < <(grep 'left out' "$logs/$preset-configure")
  if ! cmake --build --preset "$preset" --target "$target" --parallel "$jobs" 2>&1 | tee "$logs/$preset-build"; then
    grep -A 12 -E 'FAILED|error' "$logs/$preset-build" | head -n 60
    failure "$preset: build"
    return 1
  fi
  echo "built after $SECONDS s"
}

# run_tests PRESET NAME [ctest options]: runs tests of build/PRESET and counts what became of each. ctest ends with 8 where a test failed.
run_tests() {
  local preset=$1 log="$logs/$1-$2" before=$((passed + failed + skipped)) line code=0
  shift 2
  title "$preset: tests $*"
  ctest --test-dir "build/$preset" --output-on-failure "$@" 2>&1 | tee "$log" || code=${PIPESTATUS[0]}
  cp "build/$preset/Testing/Temporary/LastTest.log" "$log.all" 2>/dev/null || : >"$log.all"
  while read -r line; do count_test "$preset" "$log.all" "$line"; done < <(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: //p' "$log")
  [ $((passed + failed + skipped)) -gt "$before" ] || failure "$preset: no test ran with: $*"
  case $code in
    0 | 8) ;;
    *) failure "$preset: ctest ended with $code: $*" ;;
  esac
  count_skipped_cases "$preset" "$log.all"
}

# count_test PRESET LOG "name ....   Passed    0.01 sec"
count_test() {
  local name=${3%% *}
  case $3 in
    *' Passed '*) passed=$((passed + 1)) ;;
    *'***Skipped '* | *'***Not Run (Disabled)'*) leave_out "$1: test $name: $(last_words "$2" "$name")" ;;
    *) failure "$1: test $name" ;;
  esac
}

# The last line that a test wrote: why it was skipped.
last_words() {
  awk -v name="$2" '
    /^[0-9]+\/[0-9]+ Test: / { mine = $3 == name; body = 0 }
    mine && /^Output:/ { body = 1; next }
    mine && /^<end of output>/ { body = 0 }
    mine && body && NF && !/^-+$/ { last = $0 }
    END { print last == "" ? "no reason given" : last }' "$1"
}

# Cases that GoogleTest programs, and tests in Go, Python and Julia, skipped inside a test that passed.
count_skipped_cases() {
  local reason
  while read -r reason; do leave_out "$1: $reason"; done < <(awk '
    /: Skipped$/ { getline reason; print "a case at " $1 " " reason }
    / --- SKIP: |^--- SKIP: / { print "a case " $3 ": " before }
    / \.\.\. skipped / { print "a case " $0 }
    /Info: left out: / { sub(/^.*left out: /, ""); print "a case in Julia: " $0 }
    { before = $0 }' "$2")
}

cases() { cat "$logs"/*.all 2>/dev/null | awk '/^\[==========\] [0-9]+ tests? from .* ran/ { total += $2 } END { print total + 0 }'; }

test_release() {
  # The interpreter whose headers and NumPy the packages hold, whatever else is on PATH.
  local python=/usr/bin/python3 options=(-DZERO_DOCS=ON)
  if [ -x "$python" ]; then options+=(-DPython3_EXECUTABLE="$python"); fi
  build release all "${options[@]}" || return 0
  if [ -n "$full" ]; then export ZERO_TEST_FULL=1; fi
  run_tests release quick -j "$tests_at_once" -LE faults
  # Their time limits need a machine that does nothing else.
  run_tests release faults -j 1 -L faults
  unset ZERO_TEST_FULL
}

test_sanitizer() {
  # MPI libraries are not built with sanitizers: their own leaks and races would be reported as ours. Kernels of CUDA devices know none.
  build "$1" rank_tests -DZERO_MPI=OFF -DZERO_CUDA=OFF || return 0
  run_tests "$1" ranks -j "$tests_at_once" -L ranks -LE faults
}

test_coverage() {
  if ! command -v gcovr >/dev/null; then
    leave_out "coverage: gcovr is not installed"
    return 0
  fi
  # Kernels of CUDA devices have no counters and take minutes to compile: their tests ran in the release build.
  build coverage all -DZERO_CUDA=OFF || return 0
  find build/coverage -name '*.gcda' -delete
  # Examples and a second MPI add time rather than paths: they ran in the release build.
  run_tests coverage quick -j "$tests_at_once" -LE 'faults|examples' -E _mpich
  run_tests coverage faults -j 1 -L faults -E _mpich
  left_out+=("coverage: tests of examples, over MPICH and on CUDA devices do not count towards it")
  title "coverage of lib/"
  # Left out are branches that only the compiler sees: exceptions' ways out, the guards of local statics, and the way out of a switch that
  # no value of its enumeration takes (its cases count as lines).
  if gcovr -j "$jobs" --root . --filter lib/ --object-directory build/coverage --exclude-throw-branches --exclude-unreachable-branches \
    --exclude-branches-by-pattern '^ *(static [^(]* = .*|switch \(.*)' --csv "$logs/coverage.csv" >"$logs/gcovr" 2>&1; then
    print_coverage "$logs/coverage.csv"
  else
    tail -n 5 "$logs/gcovr"
    failure "coverage: gcovr"
  fi
}

print_coverage() {
  awk -F, '
    function percent(covered, total) { return total ? sprintf("%6.2f %%", 100 * covered / total) : "       -" }
    function row(name, l, lc, b, bc) { printf "%-44s %6d %9s %8d %9s\n", name, l, percent(lc, l), b, percent(bc, b) }
    BEGIN { printf "%-44s %6s %9s %8s %9s\n", "file", "lines", "covered", "branches", "covered" }
    NR > 1 && $2 + 0 > 0 { row($1, $2, $3, $5, $6); lines += $2; hit += $3; branches += $5; taken += $6 }
    END { row("lib/ (goal: 100 % of lines, 95 % of branches)", lines, hit, branches, taken) }' "$1"
}

report() {
  local entry missing
  title "summary"
  missing=$(zero_missing_packages build data mpi mpich tests bindings frameworks docs speed)
  [ -z "$missing" ] || left_out+=("packages that are not installed: $(echo $missing)")
  echo "$(cases) GoogleTest cases ran inside the tests counted below"
  if [ ${#left_out[@]} -gt 0 ]; then
    echo "left out:"
    printf '  %s\n' "${left_out[@]}" | sort -u
  fi
  if [ ${#failures[@]} -gt 0 ]; then
    echo "failed:"
    for entry in "${failures[@]}"; do echo "  $entry"; done
  fi
  echo "$passed passed, $failed failed, $skipped skipped"
}

zero_install_packages build data mpi mpich tests bindings frameworks docs packing speed
if [ -n "$full" ]; then zero_install_packages roots slurm; fi
# One device architecture: nothing here runs the code, and each takes a minute to compile.
cuda=()
if toolkit=$(tools/cuda.sh 2>"$logs/cuda"); then
  cuda=(-DCUDAToolkit_ROOT="$toolkit" -DZERO_CUDA_ARCHITECTURES=90-real)
else
  left_out+=("device code: $(tail -n 1 "$logs/cuda")")
fi
# Debian 12 and 13 have no Julia; what the script says is listed when the configuration finds none.
tools/julia.sh >/dev/null || true
test_release
# Sanitizers and counters look at paths, which few cases take as well; they would take hours for the counts.
export ZERO_TEST_FEW=1
test_sanitizer asan-ubsan
test_sanitizer tsan
if [ -n "$full" ]; then test_coverage; fi
report
[ "$failed" -eq 0 ]
