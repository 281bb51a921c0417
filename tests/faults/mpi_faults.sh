#!/bin/sh
# Judges one fault in a group over MPI.
#   mpi_faults.sh MODE WAY RANKS DEADLINE_MS PROGRAM LAUNCHER...     (the launcher's command up to and with its -n)
# WAY flat: all data moves through MPI; hosts: two ranks each count as a host and share memory.
# MODE stop: the last rank is stopped; every other rank reports it within the deadline + 500 ms.
#      kill: the last rank is killed; every other rank is ended by the launcher or reports: with WAY hosts, where ranks watch each other,
#      within 1 s that one is lost, otherwise within the deadline + 500 ms.
#      survive: the same with a launcher that ends nobody, so every other rank reports. Exit status 77 where the launcher cannot do that.
#      salvage: as survive, of ranks that train; every other rank then reads what lies on it, in stages 0 to 3.
#      slow: the last rank comes late, but before the deadline; no rank reports an error.
# In all modes nothing is left 6 s later: no process, no file in shared memory. Exit status 0 when all of that held.
set -u
if [ $# -lt 6 ]; then
  echo "usage: mpi_faults.sh stop|kill|survive|salvage|slow flat|hosts RANKS DEADLINE_MS PROGRAM LAUNCHER..." >&2
  exit 2
fi

# With a /dev/shm of its own the run cannot be confused with others; where that is not allowed, new files are looked for.
if [ -z "${ZERO_FAULTS_INSIDE:-}" ] && unshare -m true 2>/dev/null; then
  ZERO_FAULTS_INSIDE=1 exec unshare -m sh -c 'mount -t tmpfs -o size=256m tmpfs /dev/shm && exec sh "$0" "$@"' "$0" "$@"
fi

mode=$1 way=$2 ranks=$3 deadline=$4 program=$5
shift 5
last=$((ranks - 1))
fault=$mode
if [ "$mode" = survive ] || [ "$mode" = salvage ]; then
  fault=kill
  if ! "$1" --version 2>/dev/null | grep -Eq 'OpenRTE|Open MPI'; then
    echo "skipped: this launcher ends all ranks when one ends"
    exit 77
  fi
  launches=$1
  shift
  set -- "$launches" --enable-recovery "$@"
fi
folder=$(mktemp -d)
failures=0
fail() {
  echo "failed: $mode: $*" >&2
  failures=$((failures + 1))
}
pids() { sed -n 's/^pid //p' "$folder"/rank.* 2>/dev/null; }
alive() {
  for pid in $(pids) "$launcher"; do
    # A zombie has ended; only its parent has not looked yet.
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
    if [ -n "$state" ] && [ "$state" != Z ]; then echo "$pid"; fi
  done
}
reports() { grep -hs '^report' "$folder"/rank.* | wc -l; }
wait_until() { # deciseconds, command
  limit=$1
  shift
  while [ "$limit" -gt 0 ] && ! "$@"; do
    sleep 0.1
    limit=$((limit - 1))
  done
  "$@"
}
all_reported() { [ "$(reports)" -ge "$1" ]; }
misbehaves() { grep -qs misbehaves "$folder/rank.$last"; }
nothing_alive() { [ -z "$(alive)" ]; }

ls /dev/shm >"$folder/shm.before"
"$@" "$ranks" "$program" "$fault" "$way" "$deadline" "$folder" >"$folder/output" 2>&1 &
launcher=$!
cleanup() {
  for pid in $(alive); do kill -9 "$pid" 2>/dev/null; done
  rm -rf "$folder"
}
trap cleanup EXIT

wait_until 300 misbehaves || fail "the ranks did not get as far as the fault: $(cat "$folder/output")"

check_reports() { # expected code, most milliseconds, text that must appear
  rank=0
  while [ "$rank" -lt "$last" ]; do
    line=$(grep -hs '^report' "$folder/rank.$rank")
    milliseconds=$(echo "$line" | cut -d ' ' -f 2)
    case $line in
      "report "*" $1 "*"$3"*) [ "$milliseconds" -le "$2" ] || fail "rank $rank reported after $milliseconds ms, limit $2" ;;
      *) fail "rank $rank: expected $1 with '$3', got '$line'" ;;
    esac
    echo "rank $rank: $line"
    rank=$((rank + 1))
  done
}

case $mode in
  stop)
    wait_until $((deadline / 100 + 30)) all_reported "$last"
    lost="rank $last did not answer"
    # Ranks of its own host see more of it.
    [ "$way" = flat ] || lost="rank $last "
    check_reports ZERO_E_TIMEOUT $((deadline + 500)) "$lost"
    kill -9 "$(sed -n 's/^pid //p' "$folder/rank.$last")"
    ;;
  slow)
    wait_until 100 all_reported "$ranks"
    check_reports ZERO_OK "$deadline" ""
    ;;
  kill)
    reported_or_ended() { nothing_alive || all_reported "$last"; }
    wait_until 60 reported_or_ended || fail "after 6 s survivors neither reported nor ended"
    echo "$(reports) of $last survivors reported, the others were ended by the launcher"
    # Over MPI alone a rank that was killed is known only by its lateness, unless MPI tells.
    codes='ZERO_E_(TIMEOUT|TRANSPORT) '
    limit=$((deadline + 500))
    if [ "$way" = hosts ]; then
      codes="ZERO_E_PEER_LOST .*rank $last "
      limit=1000
    fi
    for report in "$folder"/rank.*; do
      line=$(grep -hs '^report' "$report") || continue
      echo "$line"
      echo "$line" | grep -Eq "^report [0-9]+ $codes" || fail "expected $codes, got '$line'"
      milliseconds=$(echo "$line" | cut -d ' ' -f 2)
      [ "$milliseconds" -le "$limit" ] || fail "a rank reported after $milliseconds ms, limit $limit"
    done
    ;;
  survive | salvage)
    wait_until $((deadline / 100 + 30)) all_reported "$last"
    if [ "$way" = hosts ]; then
      check_reports ZERO_E_PEER_LOST 1000 "rank $last "
    else
      check_reports ZERO_E_TIMEOUT $((deadline + 500)) "rank $last did not answer"
    fi
    ;;
  *) fail "mode '$mode' is unknown" ;;
esac

wait_until 60 nothing_alive || fail "still alive after 6 s: $(alive)"
wait "$launcher"
status=$?
if [ "$mode" = slow ] && [ "$status" -ne 0 ]; then fail "the launcher returned $status: $(cat "$folder/output")"; fi
if [ "$fault" = kill ]; then
  # No rank ended itself by a fault of its own.
  grep -Ei 'signal:? *(4|6|7|8|11)([^0-9]|$)' "$folder/output" && fail "a survivor crashed"
fi
if [ "$mode" = salvage ]; then
  salvaged=$(grep -hs '^salvaged' "$folder"/rank.* | wc -l)
  [ "$salvaged" -eq $((4 * last)) ] || fail "$salvaged of $((4 * last)) salvages: $(grep -hs '^not salvaged' "$folder"/rank.*)"
fi
if [ "$mode" = survive ] || [ "$mode" = salvage ]; then
  released=$(grep -hs '^released' "$folder"/rank.* | wc -l)
  [ "$released" -eq "$last" ] || fail "$released of $last survivors released the group"
elif [ "$mode" != slow ] && [ "$status" -eq 0 ]; then
  fail "the launcher returned 0 although a rank was lost"
fi
grep -hs '^unhealthy' "$folder"/rank.* && fail "a barrier before the fault failed"
left=$(ls /dev/shm | grep -vxF -f "$folder/shm.before")
[ -z "$left" ] || fail "left in shared memory: $left"
[ "$failures" -eq 0 ] && echo "mpi fault '$mode', $way: passed"
exit "$failures"
