#!/bin/sh
# Options are taken as they are written in --help: a name that is cut short is an error, --help
# itself is none. Programs that start ranks of their own and cannot be a launcher's say so under
# one.
# usage: command_lines.sh SOURCE SCRATCH LINEAR_REGRESSION PROGRAM...
set -u
source=$1
scratch=$2
regression=$3
shift 3
mkdir -p "$scratch" || exit 1
cases=0
failures=0

# expect CODE STREAM PATTERN COMMAND...: that exit code, and a line that matches on that stream (out
# or err) and none on the other.
expect() {
  code=$1
  stream=$2
  other=out
  [ "$stream" = out ] && other=err
  pattern=$3
  shift 3
  cases=$((cases + 1))
  timeout 60 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  got=$?
  if [ $got -ne "$code" ] || [ -s "$scratch/$other" ] || ! grep -q -e "$pattern" "$scratch/$stream"; then
    echo "FAILED: $*: exit code $got, expected $code and a line like '$pattern': $(head -5 "$scratch/out" "$scratch/err")"
    failures=$((failures + 1))
  fi
}

for script in "$source"/tools/*.sh "$source/bindings/gen/regenerate.sh"; do
  expect 0 out "usage:" bash "$script" --help
  expect 2 err "$(basename "$script"): " bash "$script" --no-such
done

for program; do
  expect 0 out "usage:" "$program" --help
  expect 2 err "" "$program" --no-such
  case $program in
    */zero) expect 2 err "unknown command 'inf'" "$program" inf ;;
    *)
      # Each option without its last letter, unless that is another's name; those with a value have it
      # behind them.
      options=$("$program" --help | sed -n 's/^ *--\([a-z-]*\) [A-Z].*/\1=1/p; s/^ *--\([a-z-]*\)  .*/\1/p')
      for option in help $options; do
        value=${option#"${option%%=*}"}
        option=${option%%=*}
        case " $(echo $options) " in *" ${option%?}$value "*) continue ;; esac
        expect 2 err "unrecognized option '--${option%?}\|unknown option\|ambiguous" "$program" "--${option%?}$value"
        [ -z "$value" ] || expect 2 err "unrecognized option '--${option%?}'\|unknown option\|ambiguous" "$program" "--${option%?}" 1
      done
      ;;
  esac
done

folder=$(dirname "$regression")
for program in "$regression" "$folder/memory_wall" "$folder/deep_parts" "$folder/wide_line" "$folder/dense_images"; do
  [ -x "$program" ] || continue
  expect 2 err "a launcher has started it (OMPI_COMM_WORLD_SIZE is 2)" env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$program"
done
echo "$cases command lines, $failures failed"
[ $failures -eq 0 ]
