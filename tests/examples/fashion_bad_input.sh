#!/bin/sh
# train_fashion answers bad input with one clear line on standard error and a non-zero exit, and never with a signal.
# usage: fashion_bad_input.sh TRAIN_FASHION SCRATCH
set -u
program=$1
scratch=$2
. "$(dirname "$0")/fashion_data.sh"
rm -rf "$scratch" || exit 1
for folder in empty short magic labels gzip wide many; do
  mkdir -p "$scratch/$folder" || exit 1
done
failures=0
cases=0
variables=

# reject PATTERN ARGUMENTS...: one line that matches, exit code 1 to 127.
reject() {
  pattern=$1
  shift
  cases=$((cases + 1))
  # shellcheck disable=SC2086
  env $variables "$program" --quiet --limit 64 --epochs 1 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
  lines=$(wc -l <"$scratch/err")
  if [ $code -eq 0 ] || [ $code -ge 128 ] || [ "$lines" -ne 1 ] || [ -s "$scratch/out" ] || ! grep -q -e "$pattern" "$scratch/err"; then
    echo "FAILED: $* : exit code $code, $lines lines, expected one like '$pattern':"
    cat "$scratch/out" "$scratch/err"
    failures=$((failures + 1))
  fi
}
. "$(dirname "$0")/bad_options.sh"

# Four good files in a folder, plain instead of gzipped where a case replaces them.
good() {
  for file in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
    ln -s "$data/$file-ubyte.gz" "$scratch/$1/$file-ubyte.gz"
  done
}

reject "unrecognized option.*--no-such" --no-such
reject "requires an argument" --stage
reject "doesn't allow an argument" --quiet=1
reject "unexpected argument 'extra'" extra
reject "stage 4: expected a whole number from 0 to 3" --stage 4
reject "stage -1: expected" --stage -1
reject "stage 3x: expected" --stage 3x
reject "ranks 0: expected" --ranks 0
reject "ranks four: expected" --ranks four
reject "epochs 0: expected" --epochs 0
reject "batch : expected" --batch ""
reject "limit 99999999999999999999: expected" --limit 99999999999999999999
reject "bucket-bytes 10: expected" --bucket-bytes 10
reject "lr nan: expected" --lr nan
reject "lr -1: expected" --lr -1
reject "mode thread: expected threads or processes" --mode thread
reject "mode env: expected threads or processes" --mode env
reject "device gpu: expected cpu, cuda or cuda:N" --device gpu
reject "device : expected cpu, cuda or cuda:N" --device ""
reject "device -1: expected a whole number from 0 to 4095" --device cuda:-1
reject "device : expected a whole number" --device cuda:
reject "device 1x: expected a whole number" --device cuda:1x
reject "device 4096: expected a whole number" --device cuda:4096
reject "tier gpu: expected host or device" --device cuda --tier gpu
reject "tier is for --device cuda" --tier host
reject "tier is for --device cuda" --device cpu --tier device
reject "divisor mean: expected weights, ranks or one" --divisor mean
reject "precision f64: expected f32, bf16 or f16" --precision f64
reject "accumulate 0: expected" --accumulate 0
reject "accumulate-manner both: expected local or reduce" --accumulate-manner both
reject "clip-norm inf: expected" --clip-norm inf
reject "optimizer newton: expected adamw, adam, adagrad, lamb, lion, sgd or muon" --optimizer newton
reject "loss-scale 0: expected dynamic or a number from 1" --loss-scale 0
reject "loss-scale inf: expected" --loss-scale inf
reject "first-scale 1e30: expected a number from 1" --loss-scale dynamic --first-scale 1e30
reject "first-scale is for --loss-scale dynamic" --loss-scale 8 --first-scale 8
reject_strategies
reject "compress-momentum 2: expected a number from 0 to 1" --compress-momentum 2
reject "compress-momentum is for --optimizer sgd" --replica-ranks 1 --compress topk:8 --compress-momentum 0.5
reject "server 1024: expected" --server 1024
reject "staleness -1: expected a whole number from 0" --server 1 --staleness -1
reject "server 3: there are 2 ranks" --server 3 --ranks 2 --staleness 1
for option in "stage 3" "bucket-bytes 65536" caller-memory "replica-ranks 1" "param-ranks 1" "sync-every 2" "sync-after 2" "outer mean" \
  "sync-fragments 2" "sync-delay 1" "sync-mix 0.5" "neighbours ring" "grad-code i8" "gather-code i8" "sync-code i8" "compress sign" \
  "compress-momentum 0.5" "code-after 2" "residual f32" "flush-every 2" "delay 1" "strategy hsdp" "precision bf16" "device cuda:0" \
  "optimizer lamb" "optimizer muon" \
  "accumulate 2" "accumulate-manner reduce" "divisor weights" "clip-norm 1" "loss-scale 8" "loss-scale dynamic" "first-scale 8" \
  "save $scratch/refused" "save-every 2" "keep 2" resume "stop-exit 3" report "report-file $scratch/refused"; do
  # shellcheck disable=SC2086
  reject "^train_fashion: --$option does not go with --server: " --server 1 --$option
done
[ ! -e "$scratch/refused" ] || reject "nothing is made by a run that is refused" --no-such
reject "nowhere/train-images-idx3-ubyte: No such file.*dataset-fashion-mnist" --data "$scratch/nowhere"
reject "empty/train-images-idx3-ubyte: No such file" --data "$scratch/empty"

good short
rm "$scratch/short/train-images-idx3-ubyte.gz"
gzip -dc "$data/train-images-idx3-ubyte.gz" | head -c 20000 >"$scratch/short/train-images-idx3-ubyte"
reject "train-images-idx3-ubyte: truncated: 30192 bytes are missing" --data "$scratch/short"
head -c 7 "$scratch/short/train-images-idx3-ubyte" >"$scratch/cut" && mv "$scratch/cut" "$scratch/short/train-images-idx3-ubyte"
reject "train-images-idx3-ubyte: truncated" --data "$scratch/short"
: >"$scratch/short/train-images-idx3-ubyte"
reject "train-images-idx3-ubyte: truncated" --data "$scratch/short"

good gzip
rm "$scratch/gzip/train-images-idx3-ubyte.gz"
head -c 5000 "$data/train-images-idx3-ubyte.gz" >"$scratch/gzip/train-images-idx3-ubyte.gz"
reject "train-images-idx3-ubyte.gz: " --data "$scratch/gzip"

good magic
rm "$scratch/magic/t10k-labels-idx1-ubyte.gz"
cp "$data/t10k-images-idx3-ubyte.gz" "$scratch/magic/t10k-labels-idx1-ubyte.gz"
reject "t10k-labels-idx1-ubyte.gz: magic number is 00000803, expected 00000801" --data "$scratch/magic"

good labels
rm "$scratch/labels/t10k-labels-idx1-ubyte.gz"
{ printf '\000\000\010\001\000\000\047\020'; head -c 10000 /dev/zero | tr '\000' '\012'; } >"$scratch/labels/t10k-labels-idx1-ubyte"
reject "label 0 is 10, expected 0 to 9" --data "$scratch/labels"

good many
rm "$scratch/many/t10k-labels-idx1-ubyte.gz"
{ printf '\000\000\010\001\000\000\000\005'; head -c 5 /dev/zero; } >"$scratch/many/t10k-labels-idx1-ubyte"
reject "5 labels for 10000 images" --data "$scratch/many"

good wide
rm "$scratch/wide/train-images-idx3-ubyte.gz"
printf '\000\000\010\003\000\000\000\100\000\000\000\034\000\000\000\035' >"$scratch/wide/train-images-idx3-ubyte"
head -c 60000 /dev/zero >>"$scratch/wide/train-images-idx3-ubyte"
reject "images are 29 pixels wide or high, expected 28" --data "$scratch/wide"

# On a machine with devices the last that can be named is hardly there; one rank, whose line comes alone.
variables="RANK=0 WORLD_SIZE=1"
reject "device cuda:4095: .*\(CUDA\|device\)" --device cuda:4095
reject "server 1: there are 1 ranks, and at least one must be a worker" --server 1
variables=
for mode in threads processes; do
  cases=$((cases + 1))
  timeout 60 "$program" --quiet --limit 64 --epochs 1 --ranks 3 --mode $mode --device cuda:4095 >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
  if [ $code -ne 1 ] || [ -s "$scratch/out" ] || ! grep -q -e "device cuda:4095: .*\(CUDA\|device\)" "$scratch/err"; then
    echo "FAILED: --mode $mode --device cuda:4095: exit code $code: $(cat "$scratch/out" "$scratch/err")"
    failures=$((failures + 1))
  fi
done

# Under a launcher its ranks are those of the training: the program starts none.
for launcher in OMPI_COMM_WORLD_RANK=0:OMPI_COMM_WORLD_SIZE=2 PMI_RANK=0:PMI_SIZE=2 \
  SLURM_STEP_ID=0:SLURM_PROCID=0:SLURM_STEP_NUM_TASKS=2 RANK=0:LOCAL_WORLD_SIZE=2:LOCAL_RANK=0:MASTER_PORT=1:WORLD_SIZE=2; do
  variables=$(echo $launcher | tr : ' ')
  size=$(echo "${variables##* }" | sed 's/=/ is /')
  reject "ranks is for ranks that this program starts, .*($size)" --ranks 2
  reject "mode is for ranks that this program starts, .*($size)" --mode threads
done
variables="OMPI_COMM_WORLD_RANK=0"
reject "OMPI_COMM_WORLD_SIZE is not" --ranks 2
variables=

# Files that cannot be written are told before the training, which would take hours.
for option in report-file losses; do
  for file in "$scratch/nowhere/file" /dev/full; do
    [ "$file" != /dev/full ] || [ -e /dev/full ] || continue
    cases=$((cases + 1))
    timeout 60 "$program" --quiet --limit 640 --epochs 100000 --ranks 2 --$option "$file" >"$scratch/out" 2>"$scratch/err" </dev/null
    code=$?
    if [ $code -ne 1 ] || [ -s "$scratch/out" ] || ! grep -q "^train_fashion: $file: \(No such file\|No space\)" "$scratch/err"; then
      echo "FAILED: --$option $file: exit code $code: $(cat "$scratch/out" "$scratch/err")"
      failures=$((failures + 1))
    fi
  done
done

head -c 400 /dev/zero >"$scratch/init"
reject "init: expected 52138 floats" --init "$scratch/init"
reject "none: No such file" --init "$scratch/none"

# A full disk takes the report: no run without a result ends well.
for options in --help --report-header "--mode threads --report" "--mode processes --report" "--mode processes"; do
  [ -e /dev/full ] || break
  cases=$((cases + 1))
  # shellcheck disable=SC2086
  timeout 60 "$program" --quiet --limit 64 --epochs 1 --ranks 2 $options >/dev/full 2>"$scratch/err" </dev/null
  code=$?
  if [ $code -ne 1 ] || ! grep -q -e "standard output: " "$scratch/err"; then
    echo "FAILED: $options with a full disk: exit code $code: $(cat "$scratch/err")"
    failures=$((failures + 1))
  fi
done

echo "$cases cases of bad input, $failures failed"
[ $failures -eq 0 ]
