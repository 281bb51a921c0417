# Read by tests of examples (". launched.sh"): processes as torchrun starts them on one host.

# launched RANKS COMMAND...: what rank r prints goes to $scratch/rank<r>, its errors to $scratch/rank<r>.err. False where one fails.
launched() {
  launched_ranks=$1
  shift
  launched_pids=
  launched_result=0
  for launched_rank in $(seq 0 $((launched_ranks - 1))); do
    RANK=$launched_rank LOCAL_RANK=$launched_rank WORLD_SIZE=$launched_ranks LOCAL_WORLD_SIZE=$launched_ranks MASTER_ADDR=127.0.0.1 \
      MASTER_PORT=29500 TORCHELASTIC_RUN_ID="$(basename "$0").$$" timeout 120 "$@" >"$scratch/rank$launched_rank" \
      2>"$scratch/rank$launched_rank.err" &
    launched_pids="$launched_pids $!"
  done
  for launched_pid in $launched_pids; do wait "$launched_pid" || launched_result=1; done
  return $launched_result
}
