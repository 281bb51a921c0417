#!/bin/sh
# train_gpt answers bad input with one clear line on standard error and a non-zero exit, before it trains, and never with a signal.
# usage: gpt_bad_input.sh TRAIN_GPT SCRATCH PRODUCTS
set -u
program=$1
scratch=$2
products=$3
rm -rf "$scratch" || exit 1
mkdir -p "$scratch/empty" || exit 1
seq 1 2000 >"$scratch/text"
failures=0
cases=0
variables=

# reject PATTERN ARGUMENTS...: one line that matches, exit code 1 to 127, and nothing printed. What were not rejected would run for hours.
reject() {
  pattern=$1
  shift
  cases=$((cases + 1))
  # shellcheck disable=SC2086
  env $variables timeout 20 "$program" --quiet --steps 1000000 --products "$products" --text "$scratch/text" "$@" >"$scratch/out" \
    2>"$scratch/err" </dev/null
  code=$?
  lines=$(wc -l <"$scratch/err")
  if [ $code -eq 0 ] || [ $code -ge 124 ] || [ "$lines" -ne 1 ] || [ -s "$scratch/out" ] || ! grep -q -e "$pattern" "$scratch/err"; then
    echo "FAILED: $* : exit code $code, $lines lines, expected one like '$pattern':"
    cat "$scratch/out" "$scratch/err"
    failures=$((failures + 1))
  fi
}
. "$(dirname "$0")/bad_options.sh"

reject "unrecognized option.*--no-such" --no-such
reject "unrecognized option '--stag': --stage is written in full" --stag 1
reject "requires an argument" --stage
reject "doesn't allow an argument" --quiet=1
reject "unexpected argument 'extra'" extra
reject "model huge: expected tiny, small or gpt2" --model huge
reject "stage 4: expected a whole number from 0 to 3" --stage 4
reject "stage -1: expected" --stage -1
reject "stage 3x: expected" --stage 3x
reject "ranks 0: expected a whole number from 1 to 1024" --ranks 0
reject "ranks four: expected" --ranks four
reject "mode thread: expected threads or processes" --mode thread
reject "precision f16: expected f32 or bf16" --precision f16
reject "steps 0: expected" --steps 0
reject "steps 99999999999999999999: expected" --steps 99999999999999999999
reject "batch : expected" --batch ""
reject "batch 0: expected" --batch 0
reject "batch 2: expected a multiple of 4: 4 ranks x 1 micro-steps" --batch 2
reject "batch 8: expected a multiple of 12: 4 ranks x 3 micro-steps" --micro-steps 3
reject "micro-steps 0: expected" --micro-steps 0
reject "context 0: expected" --context 0
reject "context 129: model tiny has places for 128 tokens at most" --context 129
reject "lr nan: expected a number" --lr nan
reject "lr -1: expected" --lr -1
reject "warm-up -1: expected" --warm-up -1
reject "weight-decay x: expected" --weight-decay x
reject "clip-norm inf: expected" --clip-norm inf
reject "seed -1: expected" --seed -1
reject "validate x: expected" --validate x
reject "validation-batches 0: expected" --validation-batches 0
reject "sample-length 0: expected" --sample-length 0
reject "temperature -1: expected" --temperature -1
reject_strategies
reject "staleness x: expected" --server 1 --staleness x
for option in "stage 3" "replica-ranks 1" "param-ranks 1" "sync-every 2" "sync-after 2" "outer mean" "sync-fragments 2" "sync-delay 1" "sync-mix 0.5" \
  "neighbours ring" "grad-code i8" "gather-code i8" "sync-code i8" "compress sign" "code-after 2" "residual f32" "flush-every 2" "delay 1" \
  "strategy hsdp" "precision bf16" "micro-steps 2" "clip-norm 1" "warm-up 40" "validate 5" "save $scratch/refused" \
  "save-every 2" "keep 2" resume "stop-exit 3" "export $scratch/refused" report "report-file $scratch/refused" "plot $scratch/refused" \
  "write-first $scratch/refused" "write-gradients $scratch/refused" "write-logits $scratch/refused"; do
  # shellcheck disable=SC2086
  reject "^train_gpt: --$option does not go with --server: " --csv "$scratch/csv" --server 1 --$option
done
[ ! -e "$scratch/refused" ] || reject "nothing is made by a run that is refused" --no-such
reject "products mkl: expected blas or plain" --products mkl
reject "nowhere: No such file.*Debian's package anarchism" --text "$scratch/nowhere"
reject "empty: there is no text" --text "$scratch/empty"
: >"$scratch/nothing"
reject "nothing: there is no text" --text "$scratch/nothing"
seq 1 300 >"$scratch/short"
reject "short: has 1092 bytes, too few: nine tenths must hold more than a step's 8 x 128" --text "$scratch/short"
seq 1 10 | gzip | head -c 30 >"$scratch/cut.gz"
reject "cut.gz: " --text "$scratch/cut.gz"
reject "text: is no token file of llm.c" --tokens "$scratch/text"
reject "none: No such file" --tokens "$scratch/none"
reject "sample is for a text" --tokens "$scratch/text" --sample x
reject "plot draws what --csv writes; give both" --plot "$scratch/picture"
reject "plot: .*\(matplotlib is not installed\|nowhere/file: No such file\)" --csv "$scratch/csv" --plot "$scratch/nowhere/file"
reject "export .*nowhere/model: No such file" --export "$scratch/nowhere/model"
mkdir "$scratch/taken" && : >"$scratch/taken/x.safetensors"
reject "export .*taken: holds a model or saves already" --export "$scratch/taken"
mkdir "$scratch/init" && echo '{"n_layer": 4, "n_head": 2}' >"$scratch/init/config.json"
reject "init .*: config.json has n_head 2, but model tiny has 4" --init "$scratch/init"
[ "$products" = blas ] || reject "this build has no BLAS: install one (Debian: libopenblas-dev)" --products blas

# Under a launcher its ranks are those of the training: the program starts none.
for launcher in OMPI_COMM_WORLD_RANK=0:OMPI_COMM_WORLD_SIZE=2 PMI_RANK=0:PMI_SIZE=2 \
  SLURM_STEP_ID=0:SLURM_PROCID=0:SLURM_STEP_NUM_TASKS=2 RANK=0:LOCAL_WORLD_SIZE=2:LOCAL_RANK=0:MASTER_PORT=1:WORLD_SIZE=2; do
  variables=$(echo $launcher | tr : ' ')
  size=$(echo "${variables##* }" | sed 's/=/ is /')
  reject "ranks is for ranks that this program starts, .*($size)" --ranks 2
  reject "mode is for ranks that this program starts, .*($size)" --mode threads
done
variables="RANK=0 WORLD_SIZE=1"
reject "batch 4: expected a multiple of 3" --batch 4 --micro-steps 3
variables=

# Files that cannot be written are told before the training.
for option in report-file csv write-first write-gradients write-logits; do
  reject "^train_gpt: $scratch/nowhere/file: No such file" --$option "$scratch/nowhere/file"
  for mode in threads processes; do
    case $option in report-file | csv) [ ! -e /dev/full ] || reject "^train_gpt: /dev/full: No space" --mode $mode --$option /dev/full ;; esac
  done
done

# A full disk takes the report: no run without a result ends well.
few="--quiet --products $products --text $scratch/text --steps 1 --batch 2 --context 4 --validation-batches 1 --ranks 2"
for options in --help --report-header "--report" "--mode processes --sample x --sample-length 1"; do
  [ -e /dev/full ] || break
  cases=$((cases + 1))
  # shellcheck disable=SC2086
  timeout 60 "$program" $few $options >/dev/full 2>"$scratch/err" </dev/null
  code=$?
  if [ $code -ne 1 ] || ! grep -q -e "standard output: " "$scratch/err"; then
    echo "FAILED: $options with a full disk: exit code $code: $(cat "$scratch/err")"
    failures=$((failures + 1))
  fi
done

echo "$cases cases of bad input, $failures failed"
[ $failures -eq 0 ]
