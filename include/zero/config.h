/**
 * @file
 * Config: an opaque set of keys and values from which groups, buffers, optimizers and parameters
 * are created.
 *
 * @code
 * zero_config *config;
 * zero_config_create(&config);
 * zero_config_set_i64(config, ZERO_KEY_STAGE, 2);
 * zero_config_set_str(config, ZERO_KEY_ALGORITHM, "adamw");
 * zero_config_set_f64(config, ZERO_KEY_LR, 3e-4);
 * zero_config_set_f64(config, ZERO_KEY_CLIP_NORM, 1.0);
 * zero_optimizer_create(group, config, &optimizer);
 * zero_config_release(config);                              // the optimizer has copied it
 * @endcode
 *
 * - A new key never changes a layout. A key that this build does not know is an error, never
 *   ignored.
 * - Groups, buffers and optimizers do not read keys of other nouns, so one config may serve them
 *   all. Parameters, parameter sets and checkpoints reject such keys.
 * - An object copies the values it needs. The config may be changed or released afterwards.
 */
#ifndef ZERO_CONFIG_H
#define ZERO_CONFIG_H

#include <zero/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A config; the caller gives it back with zero_config_release(). */
typedef struct zero_config zero_config;

/**
 * Keys. Values are stable, with gaps by noun. The text of each begins with its type, its bounds and
 * its default; zero_config_bounds() returns them too.
 */
enum zero_key {
  /* group: 100 .. 199 */

  /** i64, 1 .. 2^40, default 600000: milliseconds that a blocking call waits for the other ranks.
      Time during which the process is stopped (SIGSTOP, debugger) counts toward the deadline. */
  ZERO_KEY_DEADLINE_MS = 100,
  /** i64, 1 .. 2^40, default 60000: milliseconds that the creation of a group waits for the other
      ranks. */
  ZERO_KEY_RENDEZVOUS_MS = 101,
  /** i64, 0 .. 4096, default 0: host threads that a rank may use in kernels. A group uses them for
      its sums, an optimizer for the rest. 0 = the variable ZERO_THREADS; without it cores / ranks,
      and at least 1. The cores are those that its thread may use (affinity). The ranks are those of
      the host that may use the same cores. All ranks of the process count, and all ranks of the
      host if they share no memory. */
  ZERO_KEY_THREADS = 102,
  /** i64, 4096 .. 2^30, default 1048576: bytes per rank for data that peers cannot read in place.
      Equal on all ranks. */
  ZERO_KEY_STAGING_BYTES = 103,
  /** str: path of libzero_mpi.so. Default: the variable ZERO_MPI_MODULE, then the folder of
      libzero.so. */
  ZERO_KEY_MPI_MODULE = 104,
  /** i64, 0 .. 1, default 1: MPI ranks of one host move data through shared memory; 0: all data
      moves through MPI. Equal on all ranks. */
  ZERO_KEY_MPI_SHARED = 105,
  /** i64, 0 .. 1, default 0: collectives also take memory of the device ZERO_KEY_DEVICE, which
      moves between ranks over NCCL (group.h). Equal on all ranks. */
  ZERO_KEY_NCCL = 106,
  /** str: path of libzero_nccl.so. Default: the variable ZERO_NCCL_MODULE, then the folder of
      libzero.so. */
  ZERO_KEY_NCCL_MODULE = 107,
  /** i64, 0 .. 65535, default 0: TCP port at which ranks of several hosts meet (group.h). 0 = any
      free port, and under a launcher one that follows from its variables. */
  ZERO_KEY_RENDEZVOUS_PORT = 108,
  /** str: name or address by which other hosts reach this one. Default: its first address that is
      not local to the host. */
  ZERO_KEY_RENDEZVOUS_HOST = 109,

  /* buffer and partition: 200 .. 299 */

  /** str: a non-negative integer per rank, with commas and no spaces ("2,1,1"). Their sum is from 1
      to 2^31. Shard sizes follow these weights. Default: equal. The same on all ranks. */
  ZERO_KEY_SHARD_WEIGHTS = 200,

  /* optimizer: 300 .. 399. They must be equal on all ranks, or seal returns ZERO_E_MISMATCH.
     ZERO_KEY_POOL_LIMIT, _MEMORY_LIMIT, _TRACE_EVENTS, _DEVICE and _CUDA_MODULE may differ. */

  /** i64, 0 .. 3, default 1: the data that is sharded: 0 nothing, 1 optimizer states, 2 also
      gradients, 3 also parameters. */
  ZERO_KEY_STAGE = 300,
  /** str, default "adamw": "sgd", "adam", "adamw", "adagrad", "lion", "lamb", "muon", "custom" (the
      caller's own, with the split step) or "none" (parameters only, for evaluation and inference).
      */
  ZERO_KEY_ALGORITHM = 301,
  /** i64, 0 or 1024 .. 2^40, default 0: a bucket takes whole tensors until it would exceed this
      number of bytes. 0 = 1/80 of the bytes that the memory formula gives a rank
      (zero_memory_stats), but at least 64 KiB and at most 25 MiB. The optimizer's own groups then
      together take at most the larger of 1/80 of those bytes and 256 KiB as staging. */
  ZERO_KEY_BUCKET_BYTES = 302,
  /** i64, a zero_divisor, default ZERO_DIVISOR_RANKS: the divisor of the sum of gradients. */
  ZERO_KEY_DIVISOR = 303,
  /** i64, a zero_nonfinite, default ZERO_NONFINITE_SKIP: the effect of a NaN or infinity in a
      gradient. */
  ZERO_KEY_NONFINITE = 304,
  /** i64, 0 .. 1, default 0: compute the global gradient norm in each step. */
  ZERO_KEY_GRAD_NORM = 305,
  /** i64, 0 .. 1, default 1: reduce and gather buckets on a progress thread while the caller works.
      0: inside calls; in stages 0 and 1, if ranks share memory, within the update itself, which
      moves the fewest bytes. */
  ZERO_KEY_OVERLAP = 306,
  /** i64, 0 .. 2^62, default 0: most bytes of gradient buckets held unreduced in stages 2 and 3; 0
      = no limit. In worlds of more than one rank, less than the largest bucket is
      ZERO_E_INVALID_ARGUMENT in seal. Gradients that arrive too far out of order are
      ZERO_E_POOL_LIMIT in grad_acquire, grad_ready, micro_step, reduce or step. */
  ZERO_KEY_POOL_LIMIT = 307,
  /** i64, 0 .. 4, default 0: fp32 slots per element that algorithm "custom" keeps. */
  ZERO_KEY_CUSTOM_SLOTS = 308,
  /** f64, 0 .. 1e30, default 0: gradients are scaled down so that their global norm is at most
      this; 0 = off. */
  ZERO_KEY_CLIP_NORM = 309,
  /** f64, 0 .. 1e30, default 0: elements of gradients are clamped to [-value, value]; 0 = off. Not
      together with ZERO_KEY_CLIP_NORM. */
  ZERO_KEY_CLIP_VALUE = 310,
  /** f64, 2^-100 .. 2^100, default 1 (dynamic: 2^16): the factor by which the caller multiplies its
      loss. Gradients are divided by it. */
  ZERO_KEY_LOSS_SCALE = 311,
  /** i64, 0 .. 1, default 0: the loss scale follows overflows. Needs ZERO_NONFINITE_SKIP. */
  ZERO_KEY_LOSS_SCALE_DYNAMIC = 312,
  /** i64, 1 .. 2^62, default 2000: steps without overflow after which the scale grows. */
  ZERO_KEY_LOSS_SCALE_WINDOW = 313,
  /** i64, 1 .. 2^62, default 1: overflows, since the scale last grew, before the scale backs off.
   */
  ZERO_KEY_LOSS_SCALE_HYSTERESIS = 314,
  /** f64, 2^-30 .. below 1, default 0.5: the factor of a back-off. */
  ZERO_KEY_LOSS_SCALE_BACKOFF = 315,
  /** f64, 1 .. 2^30, default 2: the factor of a growth. */
  ZERO_KEY_LOSS_SCALE_GROWTH = 316,
  /** f64, 2^-100 .. 2^100, default 1: the lower limit of the scale. */
  ZERO_KEY_LOSS_SCALE_MIN = 317,
  /** f64, 2^-100 .. 2^100, default 2^32: the upper limit of the scale. */
  ZERO_KEY_LOSS_SCALE_MAX = 318,
  /** i64, a zero_rounding, default ZERO_ROUNDING_NEAREST: the rounding of 16-bit parameters without
      master, and of states. */
  ZERO_KEY_ROUNDING = 319,
  /** i64, 0 .. 2^62, default 0: the seed of stochastic rounding. */
  ZERO_KEY_SEED = 320,
  /** i64, a zero_unfilled, default ZERO_UNFILLED_ZERO: the treatment of parameters that no rank
      filled in a step. */
  ZERO_KEY_UNFILLED = 321,
  /** i64, 0 or ZERO_DTYPE_F32, default 0: the dtype of sums over micro-steps on one rank. 0 = the
      gradient's dtype, but fp32 with ZERO_DIVISOR_WEIGHTS. */
  ZERO_KEY_ACCUMULATE_DTYPE = 322,
  /** i64, 0 .. 1, default 0: keep an exponential moving average of each parameter
      (ZERO_KEY_AVERAGE_DECAY). */
  ZERO_KEY_AVERAGE = 323,
  /** i64, 0 .. 2^62, default 0: tensors of fewer elements stay whole on every rank in stage 3. The
      key moves elements in the flat space. Another value therefore gives other bits with
      ZERO_ROUNDING_STOCHASTIC, and may round the gradient norm differently. */
  ZERO_KEY_GATHER_BELOW = 324,
  /** i64, 0 .. 2^62, default 16777216: most bytes of parameters gathered ahead of param_acquire in
      stage 3. If this key is not set and ZERO_KEY_BUCKET_BYTES is 0, also at most 1/20 of the bytes
      that the memory formula gives a rank. */
  ZERO_KEY_PREFETCH_BYTES = 325,
  /** i64, 0 .. 2^62, default 0: K > 0: every K-th step first compares each shard with the values
      that the step before it left. A difference is ZERO_E_CORRUPT (see zero_optimizer_verify()). 0
      = never. */
  ZERO_KEY_VERIFY_EVERY = 326,
  /** i64, 0 .. 2^62, default 0: bytes that the ranks of a host may take together; if they need
      more, seal fails. 0 = the memory available on the host and in their control groups. It counts
      the bytes that formulas give at seal (stats.h). It does not count later sums of micro-steps,
      staging of groups, or the rest of pages. */
  ZERO_KEY_MEMORY_LIMIT = 327,
  /** i64, 0 .. 2^24, default 0: newest events kept for zero_stats_optimizer_trace(), 40 bytes each.
   */
  ZERO_KEY_TRACE_EVENTS = 328,
  /** i64, 0 .. 1, default 0: ranks of one host keep one copy of the parameters (optimizer.h).
      Stages 1 and 2. */
  ZERO_KEY_ONE_COPY = 329,
  /** i64, -1 .. 4095, default -1: CUDA device whose memory may hold the caller's gradients and
      parameters (optimizer.h). The library uses its primary context, as CUDA's run time does. -1 =
      host memory only. May differ between ranks. */
  ZERO_KEY_DEVICE = 330,
  /** str: path of libzero_cuda.so. Default: the variable ZERO_CUDA_MODULE, then the folder of
      libzero.so. */
  ZERO_KEY_CUDA_MODULE = 331,
  /** i64, a zero_tier, default ZERO_TIER_HOST: the memory that holds parameters, gradients and
      states. Equal on all ranks. */
  ZERO_KEY_TIER = 332,
  /** i64, -1 .. 2^20, default 0: consecutive ranks that hold one replica of the model. States,
      gradients and parameters are sharded over them (replicas.h). 0 = all ranks, which is one
      replica; -1 = the ranks of a host. It divides the number of ranks, and is a power of two or
      all of them. */
  ZERO_KEY_REPLICA_RANKS = 333,
  /** i64, 1 .. 2^40, default 1: steps from one synchronisation of the replicas to the next. 1 =
      gradients are summed over all replicas in every step. 2^40 = only zero_optimizer_sync()
      synchronises. */
  ZERO_KEY_SYNC_PERIOD = 334,
  /** i64, 0 .. 2^62, default 0: the period is 1 until so many steps have been made, skipped ones
      included. */
  ZERO_KEY_SYNC_AFTER = 335,
  /** i64, 1 .. 4096, default 1: parts into which the tensors that train are cut, and which are
      brought together in turn, each once per period (replicas.h). It divides ZERO_KEY_SYNC_PERIOD
      and is at most the number of these tensors. */
  ZERO_KEY_SYNC_FRAGMENTS = 336,
  /** i64, 0 .. 2^40, default 0: steps from the one whose values replicas exchange to the one at
      whose end the result is used. The exchange goes on behind these steps. Below
      ZERO_KEY_SYNC_PERIOD / ZERO_KEY_SYNC_FRAGMENTS. */
  ZERO_KEY_SYNC_DELAY = 337,
  /** i64, 1 .. 64, default 4: R, the rank to which ZERO_CODE_LOW_RANK brings matrices. */
  ZERO_KEY_CODE_RANK = 338,
  /** i64, a zero_code, default ZERO_CODE_NONE: the form in which sums of gradients travel between
      replicas, in steps that they make together. */
  ZERO_KEY_GRAD_CODE = 339,
  /** i64, a zero_code, default ZERO_CODE_NONE: in stages 1 and 2 parameters follow their fp32
      masters by differences in this form, which are gathered in place of parameters
      (replicas.h). */
  ZERO_KEY_GATHER_CODE = 340,
  /** i64, a zero_code, default ZERO_CODE_NONE: the form in which changes of parameters travel
      between replicas in synchronisations. */
  ZERO_KEY_SYNC_CODE = 341,
  /** i64, 1 .. 64, default 8: values that ZERO_CODE_TOP keeps of each line of 256. */
  ZERO_KEY_CODE_TOP = 342,
  /** i64, 0 .. 2^62, default 0: steps, counted by their calls, before which all that the keys
      ZERO_KEY_GRAD_CODE, ZERO_KEY_GATHER_CODE and ZERO_KEY_SYNC_CODE code travels in full. */
  ZERO_KEY_CODE_AFTER = 343,
  /** i64, a zero_residual, default ZERO_RESIDUAL_NONE: what becomes of the rounding errors of
      ZERO_KEY_GRAD_CODE. */
  ZERO_KEY_RESIDUAL = 344,
  /** i64, 0 .. 2^62, default 0: with ZERO_KEY_GRAD_CODE or ZERO_KEY_GATHER_CODE every so many
      steps, counted by their calls, one sends gradients, residuals included, and parameters in
      full. 0 = none does. */
  ZERO_KEY_FLUSH_PERIOD = 345,
  /** i64, -1 .. 2^20, default 0: in stage 3, consecutive ranks over which parameters are sharded,
      while states and gradients stay sharded over all ranks of a replica (replicas.h). 0 =
      parameters are sharded as states; -1 = over the ranks of a host. It divides the number of
      ranks of a replica. Stages 0 to 2 return ZERO_E_UNSUPPORTED. */
  ZERO_KEY_PARAM_RANKS = 346,
  /** i64, a zero_neighbours, default ZERO_NEIGHBOURS_NONE: the replicas that the end of a period
      (ZERO_KEY_SYNC_PERIOD) averages: all of them, or each with its neighbours (replicas.h). */
  ZERO_KEY_NEIGHBOURS = 347,
  /** i64, 0 .. 1, default 0: steps by which updates lag behind their gradients (optimizer.h). 1 =
      each step applies the gradients that the step before was given, and theirs are reduced behind
      the caller's next pass. Stages 0 and 1. */
  ZERO_KEY_GRAD_DELAY = 348,
  /** str, default "": a name for keys that suit a link, which are set unless the config sets them
      itself: "hsdp", "diloco", "zeropp" or "slow_link" (replicas.h).
      zero_describe_optimizer() tells them. */
  ZERO_KEY_STRATEGY = 349,

  /* parameters: 350 .. 399. Dtypes and master may also be set in the optimizer's config, for all
     parameters; the other keys may not. */

  /** i64, 0 .. 4095, default 0: the parameter set (zero_optimizer_add_set()). */
  ZERO_KEY_SET = 350,
  /** i64, 0 .. 1, default 0: the parameter is never updated and has no gradient and no states. */
  ZERO_KEY_FROZEN = 351,
  /** i64, f32, f16, bf16 or 0, default 0: the dtype of the gradient; 0 = that of the parameter. */
  ZERO_KEY_GRAD_DTYPE = 352,
  /** i64, a zero_master, default ZERO_MASTER_F32: the form in which 16-bit parameters are kept for
      updates. */
  ZERO_KEY_MASTER = 353,
  /** i64, f32, bf16 or f8_e4m3, default f32. Ignored with algorithms that have no first moment. */
  ZERO_KEY_FIRST_MOMENT_DTYPE = 354,
  /** i64, f32, bf16 or f8_ue5m3, default f32. Ignored with algorithms that have no second moment.
   */
  ZERO_KEY_SECOND_MOMENT_DTYPE = 355,
  /** i64, 0 .. 1, default 0: other ranks of the model-parallel group hold the same values. In the
      norm the parameter counts on rank 0 of that group alone (zero_optimizer_set_model_group()). */
  ZERO_KEY_REPLICATED = 356,
  /** i64, 0 .. 2^62: the id of an earlier parameter whose memory this one shares. It must then be
      the only key. */
  ZERO_KEY_TIED_TO = 357,
  /** i64, f8_e4m3 or 0, default 0: the form in which a parameter is stored and gathered; 0 = in its
      own dtype. */
  ZERO_KEY_PARAM_DTYPE = 358,
  /** i64, 0 .. 1, default 0. 1 = gradients of this parameter are given and reduced by rows, which
      its first dimension counts (zero_optimizer_grad_ready_rows()). With ZERO_UNFILLED_UNTOUCHED
      only rows that a rank gave are updated. In stages 1 and 2 zero_optimizer_step() gathers only
      these. */
  ZERO_KEY_ROWS = 359,

  /* hyper-parameters: 400 .. 499. zero_optimizer_set_f64() changes them at any step, unless the
     text of a key says otherwise. */

  /** f64, 0 .. 1e30, default 1e-3 (adagrad: 1e-2, lion: 1e-4): the learning rate. */
  ZERO_KEY_LR = 400,
  /** f64, 0 .. 1, default 0 (muon: 0.95): sgd, muon. In sgd a value of 0 at seal stays 0. */
  ZERO_KEY_MOMENTUM = 401,
  /** f64, 0 .. 1, default 0: sgd. */
  ZERO_KEY_DAMPENING = 402,
  /** f64, 0 or 1, default 0 (muon: 1): sgd, muon. Needs momentum > 0 and dampening 0. */
  ZERO_KEY_NESTEROV = 403,
  /** f64, 0 .. below 1, default 0.9: adam, adamw, lamb, lion. */
  ZERO_KEY_BETA1 = 404,
  /** f64, 0 .. below 1, default 0.999 (lion: 0.99): adam, adamw, lamb, lion. */
  ZERO_KEY_BETA2 = 405,
  /** f64, 0 .. 1e30, default 1e-8 (adagrad: 1e-10, lamb: 1e-6, muon: 1e-7): all but sgd and lion.
   */
  ZERO_KEY_EPSILON = 406,
  /** f64, 0 .. 1e30, default 0 (adamw, lamb: 0.01, muon: 0.1): added to the gradient in sgd, adam
      and adagrad; decoupled in the others. */
  ZERO_KEY_WEIGHT_DECAY = 407,
  /** f64, 0 .. 1e30, default 0: adagrad. The rate of step t is lr / (1 + (t - 1) * lr_decay). */
  ZERO_KEY_LR_DECAY = 408,
  /** f64, 0 .. 1e30, default 0: adagrad. The sum of squares before the first step, with its value
      at seal. */
  ZERO_KEY_INITIAL_ACCUMULATOR = 409,
  /** f64, 1 .. 99, a whole number, default 5: muon. */
  ZERO_KEY_NEWTON_SCHULZ_STEPS = 410,
  /** f64, 0 .. 1, default 0.999: average = decay * average + (1 - decay) * parameter. */
  ZERO_KEY_AVERAGE_DECAY = 411,
  /** f64, 0 .. 1e30, default 1: the rate of the outer step, which follows every synchronisation of
      replicas (replicas.h). One value for all parameter sets. */
  ZERO_KEY_OUTER_LR = 412,
  /** f64, 0 .. below 1, default 0: the Nesterov momentum of the outer step. A value of 0 when
      the optimizer is created stays 0. One value for all parameter sets. */
  ZERO_KEY_OUTER_MOMENTUM = 413,
  /** f64, 0 .. 1, default 0: the weight that a replica's own parameters keep at the end of a
      period, beside the result of the outer step (replicas.h). One value for all parameter sets. */
  ZERO_KEY_SYNC_MIX = 414,
  /** f64, 0 .. below 1, default 0: with ZERO_KEY_GRAD_CODE = ZERO_CODE_TOP, the momentum that each
      replica applies to its gradients before they are coded (momentum correction, replicas.h). It
      stays as it is when the optimizer is created. */
  ZERO_KEY_CODE_MOMENTUM = 415,
  /** i64, 0 .. 1, default 0. 1 = once codes have begun (ZERO_KEY_CODE_AFTER), ZERO_KEY_GRAD_CODE
      sends the first moment of adam and adamw in the place of gradients, and the second moment
      stays as it is (1-bit Adam, replicas.h). Only in the config of an optimizer. */
  ZERO_KEY_CODE_FREEZE = 416,

  /* scalars of a running optimizer: 500 .. 599, for zero_optimizer_get_i64() and _set_i64(). No
     config takes them. */

  /** i64, 0 .. 2^62: steps applied so far, skipped ones not counted. Setting it also sets
      ZERO_SLOT_UPDATE_COUNT of every tensor. */
  ZERO_KEY_STEP_COUNT = 500,
  /** i64, 0 .. 2^62: steps skipped so far. */
  ZERO_KEY_SKIPPED_COUNT = 501,
  /** i64, 0 .. 2^62: dynamic loss scale: steps without overflow since the scale last changed. */
  ZERO_KEY_GROWTH_COUNT = 502,
  /** i64, 0 .. 2^62: dynamic loss scale: overflows that hysteresis has absorbed. */
  ZERO_KEY_OVERFLOW_COUNT = 503,

  /* checkpoints (checkpoint.h): 600 .. 699. They must be equal on all ranks; of these, a save
     compares _MODEL_FILES and _FILE_BYTES. ZERO_KEY_CHECKPOINT_STAGING_BYTES and _DIRECT may
     differ. */

  /** i64, 65536 .. 2^34, default 33554432: bytes of memory through which files are written and
      read. */
  ZERO_KEY_CHECKPOINT_STAGING_BYTES = 600,
  /** i64, 0 .. 2^31, default 0: the number of saves of this run that are kept in the folder, newest
      first; 0 = all. */
  ZERO_KEY_CHECKPOINT_KEEP = 601,
  /** i64, 0 .. 1, default 1: files bypass the page cache if the file system can (O_DIRECT). */
  ZERO_KEY_CHECKPOINT_DIRECT = 602,
  /** i64, 0 .. 1, default 1. 0 = a power cut may lose a save; this is faster, for scratch
      folders. */
  ZERO_KEY_CHECKPOINT_SYNC = 603,
  /** i64, a zero_snapshot, default ZERO_SNAPSHOT_COPY: how an asynchronous save keeps what it saves
      while steps go on. */
  ZERO_KEY_CHECKPOINT_SNAPSHOT = 605,
  /** i64, 4096 .. 2^62, default 4294967296: the size in bytes beyond which no tensor is added to a
      model file. */
  ZERO_KEY_CHECKPOINT_FILE_BYTES = 606,
  /** i64, 1 .. 2^40, default 600000: the longest time in milliseconds in which a rank may write or
      read nothing. */
  ZERO_KEY_CHECKPOINT_PROGRESS_MS = 607,
  /** i64, 0 .. 1, default 0. 1 = a load converts moments of another dtype. */
  ZERO_KEY_CHECKPOINT_CONVERT = 608,
  /** i64, 0 .. 1, default 0. 1 = a load leaves tensors that the save lacks as they are. */
  ZERO_KEY_CHECKPOINT_MISSING = 609,
  /** i64, 0 .. 1, default 0. 1 = a load ignores tensors that only the save has. */
  ZERO_KEY_CHECKPOINT_EXTRA = 610,
  /** i64, 0 .. 1, default 1. 0 = a save has no files with whole parameters for other tools; each
      rank saves its shard. */
  ZERO_KEY_CHECKPOINT_MODEL_FILES = 611,

  /* server (server.h): 700 .. 749. They must be equal on all ranks, or zero_server_seal() returns
     ZERO_E_MISMATCH. */

  /** i64, 1 .. 2^20, default 1: the first so many ranks of the group are servers, all others are
      workers. At least one rank must be a worker. */
  ZERO_KEY_SERVER_RANKS = 700,
  /** i64, a zero_server_order, default ZERO_SERVER_ORDER_ROUND_ROBIN: the order in which servers
      apply what workers push. */
  ZERO_KEY_SERVER_ORDER = 701,
  /** i64, 0 .. 2^40, default 0: pushes that a worker may be ahead of the slowest one. 2^40 = no
      limit in practice. Only with ZERO_SERVER_ORDER_ARRIVAL. */
  ZERO_KEY_SERVER_STALENESS = 702,
  /** i64, a zero_server_rule, default ZERO_SERVER_RULE_UPDATE: the content of a push, and its
      effect on servers. */
  ZERO_KEY_SERVER_RULE = 703,
  /** f64, 0 .. 1, default 0.5: the weight of a pushed value. Only with ZERO_SERVER_RULE_AVERAGE. */
  ZERO_KEY_SERVER_RATE = 704,
  /** i64, 0 .. 2^40, default 0: the pushes whose mean becomes the parameters; 0 = as many as there
      are workers. Only with ZERO_SERVER_RULE_MEAN. */
  ZERO_KEY_SERVER_PERIOD = 705
};

/** The order in which servers apply what workers push (ZERO_KEY_SERVER_ORDER). */
enum zero_server_order {
  /** In rounds: once every worker has pushed, all pushes are applied, by rank. The result is that
      of a sequential program, bit for bit. A worker that is lost makes all ranks fail. */
  ZERO_SERVER_ORDER_ROUND_ROBIN = 0,
  /** As they arrive, within ZERO_KEY_SERVER_STALENESS. Servers record the order. Other workers go
      on without a worker that is lost. */
  ZERO_SERVER_ORDER_ARRIVAL = 1
};

/** The content of a push, and its effect on servers (ZERO_KEY_SERVER_RULE). */
enum zero_server_rule {
  /** A gradient. It makes one step of ZERO_KEY_ALGORITHM. */
  ZERO_SERVER_RULE_UPDATE = 0,
  /** Parameters w of a worker: W = (1 - a) W + a w, with a = ZERO_KEY_SERVER_RATE. */
  ZERO_SERVER_RULE_AVERAGE = 1,
  /** Parameters of a worker: after every ZERO_KEY_SERVER_PERIOD pushes, W = their mean. */
  ZERO_SERVER_RULE_MEAN = 2
};

/** How an asynchronous save keeps what it saves (ZERO_KEY_CHECKPOINT_SNAPSHOT). */
enum zero_snapshot {
  /** It copies all that this rank saves before the next step may begin. The copy's memory stays
      allocated for the next save, until the optimizer is released. */
  ZERO_SNAPSHOT_COPY = 0,
  /** It reads the optimizer's memory while the program works with parameters and gradients. The
      next step (or reduce, where apply and gather are calls of their own) waits until all ranks
      have read theirs, or until at most ZERO_KEY_CHECKPOINT_STAGING_BYTES are left, which it
      copies. Do not write parameters or states through addresses before. Host memory only. */
  ZERO_SNAPSHOT_LAZY = 1
};

/** The rounding of 16-bit parameters without master, and of states (ZERO_KEY_ROUNDING). */
enum zero_rounding {
  ZERO_ROUNDING_NEAREST = 0, /**< To nearest, ties to even. */
  /** Up or down, with probabilities that keep the mean. The random numbers depend on seed, step and
      place of the element, never on the rank. */
  ZERO_ROUNDING_STOCHASTIC = 1
};

/** The treatment of parameters that no rank filled in a step (ZERO_KEY_UNFILLED). */
enum zero_unfilled {
  ZERO_UNFILLED_ZERO = 0, /**< Their gradient counts as zero. */
  /** Parameter and states stay as they are, but the average moves as in every step. All ranks
      decide alike. The updates of each tensor are counted (ZERO_SLOT_UPDATE_COUNT). With
      ZERO_KEY_ROWS this holds row by row, and averages of untouched rows stay too
      (zero_optimizer_grad_ready_rows()). */
  ZERO_UNFILLED_UNTOUCHED = 1
};

/** The form in which 16-bit parameters are kept for updates (ZERO_KEY_MASTER). */
enum zero_master {
  ZERO_MASTER_F32 = 0,  /**< An fp32 copy: 4 bytes per element; f32 parameters are their own. */
  ZERO_MASTER_NONE = 1, /**< The 16-bit parameter itself is updated. */
  /** bf16 parameters: the 16 bits that complete the parameter to fp32. Ties of the parameter are
      then rounded away from zero. */
  ZERO_MASTER_REMAINDER = 2
};

/** The divisor of the sum of gradients (ZERO_KEY_DIVISOR). */
enum zero_divisor {
  ZERO_DIVISOR_RANKS = 0, /**< The number of ranks: the average. */
  ZERO_DIVISOR_ONE = 1,   /**< One: the plain sum. */
  /** The sum of weights. Each rank's gradient is multiplied by its weight, in fp32
      (zero_optimizer_set_weight()). */
  ZERO_DIVISOR_WEIGHTS = 2
};

/** The effect of a NaN or infinity in a gradient (ZERO_KEY_NONFINITE). */
enum zero_nonfinite {
  /** A non-finite gradient on any rank makes all ranks skip the same step, with bit-identical
      state. */
  ZERO_NONFINITE_SKIP = 0,
  ZERO_NONFINITE_PROPAGATE = 1 /**< Gradients are not inspected. */
};

/**
 * The form of fp32 values that travel between replicas (ZERO_KEY_GRAD_CODE, ZERO_KEY_SYNC_CODE): a
 * scale per line of 256 elements, and 8, 4 or 1 bits per element, or a few elements of 8 bits.
 * Lines that tensors of fewer elements share travel in full.
 *
 * ZERO_CODE_TOP and ZERO_CODE_SIGN lose most of what they code. With ZERO_KEY_GRAD_CODE they need
 * ZERO_KEY_RESIDUAL; with ZERO_KEY_GATHER_CODE they are ZERO_E_UNSUPPORTED (replicas.h).
 *
 * ZERO_CODE_LOW_RANK codes matrices, not lines. Only ZERO_KEY_GRAD_CODE takes it, with
 * ZERO_KEY_RESIDUAL and replicas of one rank (replicas.h).
 */
enum zero_code {
  ZERO_CODE_NONE = 0, /**< In fp32. */
  ZERO_CODE_F8 = 1,   /**< f8_e4m3: an error of at most 1/16 of the value. */
  ZERO_CODE_I8 = 2,   /**< Integers to 127: an error of at most 1/254 of the line's largest. */
  ZERO_CODE_I4 = 3,   /**< Integers to 7: an error of at most 1/14 of the line's largest. */
  /** The ZERO_KEY_CODE_TOP largest magnitudes of a line, as ZERO_CODE_I8; the other values are
      0. If magnitudes are equal, the first are kept. */
  ZERO_CODE_TOP = 4,
  /** Two factors of ZERO_KEY_CODE_RANK columns per matrix, in fp32 (PowerSGD). */
  ZERO_CODE_LOW_RANK = 5,
  /** The sign of each value, times the mean magnitude of the line; a value of 0 counts as
      positive. Lines that a tensor does not fill travel in full. */
  ZERO_CODE_SIGN = 6
};

/** Rounding errors of coded gradients (ZERO_KEY_RESIDUAL). */
enum zero_residual {
  ZERO_RESIDUAL_NONE = 0, /**< They are dropped. */
  ZERO_RESIDUAL_F32 = 1   /**< They are kept in fp32 and added to the gradients of the next step. */
};

/** The replicas that are averaged at the end of a period (ZERO_KEY_NEIGHBOURS). */
enum zero_neighbours {
  ZERO_NEIGHBOURS_NONE = 0, /**< All of them: a full synchronisation. */
  /** A round: each replica, with the one before it and the one behind it. The first and the last
      are neighbours too. */
  ZERO_NEIGHBOURS_RING = 1
};

/** The memory in which an optimizer keeps parameters, gradients and states (ZERO_KEY_TIER). */
enum zero_tier {
  ZERO_TIER_HOST = 0, /**< Host memory. */
  /** Memory of the device ZERO_KEY_DEVICE. Updates and sums are made there too (optimizer.h). */
  ZERO_TIER_DEVICE = 1
};

/**
 * Creates an empty config, in which every key has its default.
 *
 * @param[out] out  The config, owned by the caller.
 * @return ZERO_OK, ZERO_E_INVALID_ARGUMENT or ZERO_E_OUT_OF_MEMORY. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_config_create(zero_config **out);

/**
 * Sets a key of type i64.
 *
 * @param[in] config  The config.
 * @param[in] key     A zero_key.
 * @param[in] value   A value within the bounds of the key.
 * @return ZERO_OK. ZERO_E_BAD_HANDLE. ZERO_E_UNSUPPORTED for an unknown key.
 *         ZERO_E_INVALID_ARGUMENT if the key has another type, or if the value is out of bounds or
 *         not among the values that the key lists. Threads: one thread per config at a time.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_config_set_i64(zero_config *config, int32_t key, int64_t value);
/**
 * Sets a key of type f64. Errors and threads as zero_config_set_i64(). A value that is not a number
 * is ZERO_E_INVALID_ARGUMENT.
 *
 * @param[in] config  The config.
 * @param[in] key     A zero_key.
 * @param[in] value   A value within the bounds of the key.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_config_set_f64(zero_config *config, int32_t key, double value);
/**
 * Sets a key of type str. Errors and threads as zero_config_set_i64(). NULL is
 * ZERO_E_INVALID_ARGUMENT. The content of a string is checked by the object that uses it.
 *
 * @param[in] config  The config.
 * @param[in] key     A zero_key.
 * @param[in] value   At most 4095 bytes, which are copied. "" is as if the key were not set.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_config_set_str(zero_config *config, int32_t key, const char *value);

/** The type, bounds and default of a key. Only 8-byte fields; fields are appended, never moved. */
typedef struct zero_key_bounds {
  uint64_t struct_size; /**< [in] sizeof(zero_key_bounds) as the caller knows it. */
  int64_t type;         /**< 1 = i64, 2 = f64, 3 = str. */
  int64_t min_i64;      /**< i64 keys: the least value allowed. */
  int64_t max_i64;      /**< i64 keys: the greatest value allowed. */
  int64_t default_i64;  /**< i64 keys: the default. */
  double min_f64;       /**< f64 keys: the least value allowed. */
  double max_f64;       /**< f64 keys: the greatest value allowed. */
  double default_f64;   /**< f64 keys: the default. */
} zero_key_bounds;

/**
 * Sets every field to zero, and struct_size to the given size.
 *
 * @param[out] out          The struct.
 * @param[in]  struct_size  sizeof(zero_key_bounds) as the caller knows it.
 * @return ZERO_OK or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_key_bounds_init(zero_key_bounds *out, uint64_t struct_size);

/**
 * Returns type, bounds and default of a key. Defaults that single algorithms have stand only in the
 * text of the key (zero_key).
 *
 * @param[in]     key  A zero_key.
 * @param[in,out] out  struct_size set by the caller.
 * @return ZERO_OK. ZERO_E_UNSUPPORTED for an unknown key. ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_config_bounds(int32_t key, zero_key_bounds *out);

/**
 * Allocates private memory for the library (zero_config_set_allocator()).
 *
 * Allocator functions run on the thread that makes the libzero call, never under a lock that the
 * caller can see. They must not call libzero.
 *
 * @param[in] nbytes     Bytes to allocate.
 * @param[in] alignment  Alignment in bytes, a power of two.
 * @param[in] user       The pointer given to zero_config_set_allocator().
 * @return Memory aligned to `alignment`, or NULL.
 */
typedef void *(*zero_alloc_fn)(uint64_t nbytes, uint64_t alignment, void *user);
/** Frees memory that zero_alloc_fn returned, with the same nbytes. The same rules hold. */
typedef void (*zero_free_fn)(void *data, uint64_t nbytes, void *user);
/**
 * Receives the change of shared memory: +bytes when an arena is allocated, -bytes when it is freed.
 * The library allocates arenas that other ranks (threads or processes) read or write by itself. The
 * same rules hold.
 */
typedef void (*zero_shared_fn)(int64_t delta_nbytes, void *user);

/**
 * Gives a memory hook to every object created from this config. The library allocates private
 * arenas with alloc and frees them with free_fn. The library allocates arenas that other ranks read
 * or write by itself, and only reports them to the hook.
 *
 * Without a callback, zero_stats_optimizer_memory() and zero_stats_buffer_memory() return the
 * bytes.
 *
 * @param[in] config   The config.
 * @param[in] alloc    Together with free_fn, or both NULL.
 * @param[in] free_fn  Together with alloc, or both NULL.
 * @param[in] shared   Receives the change of shared memory; may be NULL.
 * @param[in] user     Passed through. It must outlive every object created from the config.
 * @return ZERO_OK, ZERO_E_BAD_HANDLE or ZERO_E_INVALID_ARGUMENT. Threads: one thread per config at
 *         a time.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_config_set_allocator(zero_config *config, zero_alloc_fn alloc,
                                           zero_free_fn free_fn, zero_shared_fn shared, void *user);

/**
 * Releases the handle; NULL is allowed. Threads: any.
 *
 * @param[in] config  The config, or NULL.
 * @since ZERO_0.1
 */
ZERO_API void zero_config_release(zero_config *config);

#ifdef __cplusplus
}
#endif

#endif
