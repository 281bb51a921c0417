# Read by the tests of trainers over parameter servers (". served.sh"): runs of $program with the options $common,
# each for at most $seconds (600), and their counts.
runs=0
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# train OPTIONS...: what was printed is in $scratch/out, its last line in $result.
train() {
  runs=$((runs + 1))
  # shellcheck disable=SC2086
  timeout "${seconds:-600}" "$program" $common "$@" >"$scratch/out" 2>"$scratch/err" || fail "$*: did not end well: $(cat "$scratch/err")"
  result=$(tail -n 1 "$scratch/out")
}

# of KEY: the value behind KEY= in what was printed.
of() { tr ' ' '\n' <"$scratch/out" | sed -n "s/^$1=//p"; }
