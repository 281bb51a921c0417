#!/bin/sh
# carry_on: 30 steps at once, and 10 and 10 and 10 by other numbers of ranks in other stages, end with the same parameters and the same file.
# What is wrong with a file is told.
# usage: carry_on.sh CARRY_ON SCRATCH
set -u
program=$1
scratch=$2
. "$(dirname "$0")/launched.sh"
rm -rf "$scratch"
mkdir -p "$scratch" || exit 1
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# run RANKS FILE STEPS STAGE: rank 0's line.
run() {
  ranks=$1
  shift
  launched "$ranks" "$program" "$@" || fail "$ranks ranks ended with an error: $(cat "$scratch"/rank*.err)"
  cat "$scratch/rank0"
}

whole=$(run 1 "$scratch/whole" 30 0)
run 4 "$scratch/parts" 10 3
run 1 "$scratch/parts" 10 1
last=$(run 2 "$scratch/parts" 10 0)
echo "$whole"
echo "$last"
[ -n "${whole##* }" ] && [ "${whole##* }" = "${last##* }" ] || fail "parameters are ${whole##* } and ${last##* }"
cmp "$scratch/whole" "$scratch/parts" || fail "the files differ"
case $last in "went on at step 20, saved at step 30 by 2 ranks:"*) ;; *) fail "not told where it went on: $last" ;; esac
# Where the run goes on matters: otherwise nothing was compared.
again=$(run 2 "$scratch/parts" 1 3)
[ "${again##* }" != "${last##* }" ] || fail "a step more changed nothing"

# refused FILE TEXT: the file is not taken, for this reason, and stays as it is.
refused() {
  cp "$1" "$scratch/before"
  text=$(timeout 60 "$program" "$1" 1 2>&1 >/dev/null) && fail "$1 was taken"
  [ "$text" = "carry_on: $2 $1" ] || fail "of $1 it says: $text"
  cmp "$1" "$scratch/before" || fail "$1 was refused, and has changed"
}

head -c 1000 "$scratch/whole" >"$scratch/short"
refused "$scratch/short" "too little in"
cat "$scratch/whole" "$scratch/short" >"$scratch/long"
refused "$scratch/long" "too much in"
for steps in x -1 1x '' 9223372036854775808; do
  timeout 60 "$program" "$scratch/none" "$steps" 2>"$scratch/usage" && fail "'$steps' steps were taken"
  grep -q "^usage: carry_on FILE" "$scratch/usage" || fail "of '$steps' steps it says: $(cat "$scratch/usage")"
done
[ ! -e "$scratch/none" ] || fail "a run that was refused was saved"
timeout 60 "$program" --help 2>"$scratch/usage" && fail "--help was taken for a file"
grep -q "^usage: carry_on FILE" "$scratch/usage" || fail "of --help it says: $(cat "$scratch/usage")"

# A file that is there but cannot be opened is not replaced, and what the system refuses is told with its reason.
ln -s loop "$scratch/loop"
text=$(timeout 60 "$program" "$scratch/loop" 1 2>&1 >/dev/null) && fail "a file that cannot be opened was taken"
case $text in "carry_on: cannot read $scratch/loop: "?*) ;; *) fail "of a file that cannot be opened it says: $text" ;; esac
[ -L "$scratch/loop" ] || fail "a file that cannot be opened was replaced"
text=$(timeout 60 "$program" "$scratch/no/file" 1000000000 2>&1 >/dev/null) && fail "a folder that is not there was taken"
case $text in "carry_on: cannot write $scratch/no/file.new: "?*) ;; *) fail "of a folder that is not there it says: $text" ;; esac
[ $failures -eq 0 ]
