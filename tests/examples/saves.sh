#!/bin/sh
# saves: a trainer that is asked to stop (SIGTERM to one rank), or killed (SIGKILL to all), and is started again until it has ended, comes to
# the hash of the run that nobody disturbed. Asked to stop, all ranks save the same step, and the program ends with 143.
# So does one whose number of ranks and stage are others after each kill: its loss is that of the undisturbed run, within 0.01.
# usage: saves.sh SCRATCH TIMES CHANGES PROGRAM [OPTION ...]
#   TIMES: stops and kills at least, 50 and 10 with ZERO_TEST_FULL; CHANGES: kills with changing ranks, 10 instead unless 0
set -u
scratch=$1
stops_wanted=$2
kills_wanted=$2
changes_wanted=$3
if [ -n "${ZERO_TEST_FULL:-}" ]; then
  stops_wanted=50
  kills_wanted=10
  [ "$changes_wanted" -gt 0 ] && changes_wanted=10
fi
shift 3
rm -rf "$scratch"
mkdir -p "$scratch" || exit 1
failures=0
stops=0
kills=0
changes=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

loss_of() { sed -n 's/.*loss=\([0-9.]*\).*/\1/p' "$1"; }
hash_of() { sed -n 's/.*hash=\([0-9a-f]*\).*/\1/p' "$1"; }

begun=$(date +%s%N)
timeout 300 "$@" --mode processes --quiet >"$scratch/whole" 2>"$scratch/whole.err" || fail "undisturbed: $(cat "$scratch/whole.err")"
took_ms=$((($(date +%s%N) - begun) / 1000000))
whole=$(hash_of "$scratch/whole")
whole_loss=$(loss_of "$scratch/whole")
[ -n "$whole" ] || fail "no hash: $(cat "$scratch/whole")"

# A number below $1 that another run has not.
random() { od -An -N4 -tu4 /dev/urandom | awk -v most="$1" '{ print $1 % most }'; }

# disturb PID HOW: at some moment.
disturb() {
  delay_ms=$((50 + $(random "$took_ms")))
  sleep "$(awk -v ms="$delay_ms" 'BEGIN { printf "%.3f", ms / 1000 }')"
  ranks=$(pgrep -P "$1") || return 0
  if [ "$2" = TERM ]; then
    # shellcheck disable=SC2086
    set -- $ranks
    shift "$(random $#)"
    kill -TERM "$1" 2>/dev/null
  else
    # shellcheck disable=SC2086
    kill -KILL $ranks "$1" 2>/dev/null
  fi
  return 0
}

# disturbed HOW PROGRAM ...: runs until it has ended, and is disturbed twice at most on the way.
disturbed() {
  how=$1
  shift
  rm -rf "$scratch/saves"
  attempt=0
  code=1
  while [ $code -ne 0 ] && [ $attempt -lt 50 ]; do
    other=
    [ "$how" = CHANGE ] && other="--ranks $((1 << $(random 3))) --stage $(random 4)"
    # shellcheck disable=SC2086
    "$@" --mode processes --quiet --save "$scratch/saves" --save-every 4 --resume $other >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    [ $attempt -lt 2 ] && disturb $pid "$how"
    wait $pid
    code=$?
    case $how$code in
      TERM143)
        stops=$((stops + 1))
        grep -q "stopped by signal 15 after step .*, and saved in" "$scratch/err" || fail "of a stop it says: $(cat "$scratch/err")"
        ;;
      KILL137 | KILL1) kills=$((kills + 1)) ;;
      CHANGE137 | CHANGE1) changes=$((changes + 1)) ;;
      TERM0 | KILL0 | CHANGE0) ;;
      *) fail "$how: exit code $code: $(cat "$scratch/err")" ;;
    esac
    attempt=$((attempt + 1))
  done
  [ "$(ls "$scratch/saves" | grep -c '^save-')" -le 3 ] || fail "more saves than two are kept: $(ls "$scratch/saves")"
}

rounds=0
most=0
until [ $stops -ge "$stops_wanted" ] && [ $kills -ge "$kills_wanted" ] && [ $changes -ge "$changes_wanted" ]; do
  [ $rounds -lt $((3 * (stops_wanted + kills_wanted + changes_wanted))) ] || { fail "too few runs were disturbed: $stops, $kills, $changes"; break; }
  rounds=$((rounds + 1))
  if [ $stops -lt "$stops_wanted" ]; then
    disturbed TERM "$@"
  elif [ $kills -lt "$kills_wanted" ]; then
    disturbed KILL "$@"
  else
    disturbed CHANGE "$@"
    apart=$(awk -v a="$(loss_of "$scratch/out")" -v b="$whole_loss" 'BEGIN { d = a - b; printf "%.6f", d < 0 ? -d : d }')
    most=$(awk -v a="$apart" -v b="$most" 'BEGIN { print (a > b ? a : b) }')
    awk -v d="$apart" 'BEGIN { exit !(d <= 0.01) }' || fail "changing ranks: loss $(loss_of "$scratch/out"), but undisturbed $whole_loss"
    continue
  fi
  [ "$(hash_of "$scratch/out")" = "$whole" ] || fail "$how: hash $(hash_of "$scratch/out"), but undisturbed $whole"
done
echo "rounds = $rounds, stops = $stops, kills = $kills, hash = $whole"
[ "$changes_wanted" -eq 0 ] || echo "kills with other ranks = $changes, loss = $whole_loss, at most $most apart"

# Another number of ranks, in another stage, goes on as well. The code is what was asked for.
rm -rf "$scratch/saves"
"$@" --mode processes --quiet --save "$scratch/saves" --save-every 2 --stop-exit 75 >"$scratch/out" 2>"$scratch/err" &
pid=$!
until [ -e "$scratch/saves" ] && [ -n "$(ls "$scratch/saves")" ]; do sleep 0.05; kill -0 $pid 2>/dev/null || break; done
kill -TERM $pid 2>/dev/null
wait $pid
code=$?
[ $code -eq 75 ] || [ $code -eq 0 ] || fail "--stop-exit 75: exit code $code: $(cat "$scratch/err")"
timeout 300 "$@" --ranks 2 --stage 1 --quiet --save "$scratch/saves" --resume >"$scratch/out" 2>"$scratch/err" || fail "2 ranks: $(cat "$scratch/err")"
[ -n "$(hash_of "$scratch/out")" ] || fail "2 ranks: $(cat "$scratch/out")"
[ $failures -eq 0 ]
