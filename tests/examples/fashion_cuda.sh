#!/bin/sh
# train_fashion on the first CUDA device, a row per run: as accurate as on the host, within half a point, and the same bits whatever the stage,
# the tier and the kind of ranks. Bits are those of the host where exp and log of device and C library round alike, which is told.
# usage: fashion_cuda.sh TRAIN_FASHION
set -u
program=$1
. "$(dirname "$0")/fashion_data.sh"
if ! why=$("$program" --data "$data" --quiet --limit 64 --steps 1 --ranks 1 --device cuda 2>&1 >/dev/null); then
  case $why in
    *"no CUDA"* | *"CUDA driver"*)
      echo "skipped: $why"
      exit 77
      ;;
  esac
fi
failures=0
size=

# train OPTIONS...: sets accuracy, hash and seconds.
train() {
  begun=$(date +%s)
  # shellcheck disable=SC2086
  result=$(timeout 60 "$program" --data "$data" --quiet $size "$@") || result=
  seconds=$(($(date +%s) - begun))
  accuracy=$(echo "$result" | sed -n 's/^accuracy=\(.*\) hash=.*/\1/p')
  hash=${result##*hash=}
}

row() { printf '%-52s %8s  %-16s  %-28s %4d s\n' "$1" "$accuracy" "$hash" "${2:-}" "$seconds"; }

# on_host OPTIONS...: what the runs on the device that follow are compared with.
on_host() {
  train "$@"
  host_accuracy=$accuracy
  host_hash=$hash
  device_hash=
  row "cpu $*"
}

on_device() {
  train --device cuda "$@"
  [ -n "$device_hash" ] || device_hash=$hash
  verdict=passed
  awk -v got="$accuracy" -v wanted="$host_accuracy" 'BEGIN { d = got - wanted; exit !(wanted > 50 && got > 50 && d <= 0.5 && -d <= 0.5) }' ||
    verdict='FAILED: accuracy'
  [ -n "$hash" ] && [ "$hash" = "$device_hash" ] || verdict='FAILED: other bits'
  case $verdict in
    FAILED*) failures=$((failures + 1)) ;;
    *) [ "$hash" != "$host_hash" ] || verdict="passed, the host's bits" ;;
  esac
  row "cuda $*" "$verdict"
}

printf '%-52s %8s  %-16s  %-28s %6s\n' train_fashion accuracy hash result time
size='--limit 20000 --epochs 1'
for ranks in 1 2; do
  on_host --ranks $ranks
  for stage in 0 3; do
    for tier in device host; do on_device --ranks $ranks --stage $stage --tier $tier; done
  done
done
on_device --ranks 2 --stage 3 --mode processes
size=
on_host --ranks 4
on_device --ranks 4
[ $failures -eq 0 ]
