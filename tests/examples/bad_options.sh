# Read by the tests of trainers that get bad input (". bad_options.sh"), which define reject: options that all trainers have.

reject_strategies() {
  reject "neighbours x: expected none or ring" --neighbours x
  for how in x topk topk: topk:0 topk:65 topk:-1 topk:8x "topk: 8" signs lowrank lowrank:0 lowrank:65 lowrank:4x 1bit-adam 1bit-adam:0; do
    reject "compress $how: expected topk:K or lowrank:R with K and R from 1 to 64, sign, or 1bit-adam:N" --compress "$how"
  done
  reject "code-after -1: expected a whole number from 0" --compress sign --code-after -1
  reject "param-ranks -2: expected a whole number from -1" --stage 3 --param-ranks -2
  reject "sync-after -1: expected a whole number from 0" --sync-every 2 --sync-after -1
  reject "sync-fragments 0: expected" --sync-fragments 0
  reject "sync-delay -1: expected" --sync-delay -1
  reject "delay -1: expected a whole number from 0" --delay -1
  reject "sync-mix 1.5: expected" --sync-mix 1.5
  reject "sync-mix nan: expected" --sync-mix nan
  reject "server 0: expected a whole number from 1 to 1023" --server 0
  reject "staleness is for --server" --staleness 2
  reject "server 4: there are 4 ranks, and at least one must be a worker" --server 4
}
