/**
 * @file
 * ZeRO optimizers: the parameters, gradients and optimizer states of a model, sharded over the
 * ranks of a group.
 *
 * Reference: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
 * Models", 2020.
 *
 * @code
 * zero_config_set_i64(config, ZERO_KEY_STAGE, 3);
 * zero_optimizer_create(group, config, &optimizer);
 * zero_optimizer_add_param(optimizer, NULL, "w", ZERO_DTYPE_F32, shape, 2, &w);
 * zero_optimizer_seal(optimizer);
 * zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL);                       // w is zero
 * for (int i = 0; i < steps; i++) {
 *   zero_optimizer_param_acquire(optimizer, w, NULL, 0, NULL, &weight);     // forward, backward
 *   zero_optimizer_param_release(optimizer, w);
 *   zero_optimizer_grad_ready(optimizer, w, gradient, 0, count, NULL);      // reduction starts
 *   zero_optimizer_step(optimizer, NULL, NULL);
 * }
 * @endcode
 *
 * **Stages.** ZERO_KEY_STAGE selects the data that is sharded:
 *
 * @verbatim
 * 0  nothing: plain data parallelism     2  optimizer states and gradients
 * 1  optimizer states                    3  optimizer states, gradients and parameters
 * @endverbatim
 *
 * All stages, bucket sizes, transports, thread counts and SIMD targets give the same bits.
 *
 * **Order of calls.** First create, add_param for each tensor, seal, first values, begin (or
 * zero_optimizer_resume(), checkpoint.h). Then, for each step: param_acquire and param_release
 * around each use of a parameter, grad_acquire, grad_ready, step. All ranks add the same parameters
 * in the same order; seal compares them.
 *
 * **Numerics of a gradient.** The library computes, in this order:
 *
 * @verbatim
 * s = sum over ranks of fp32(g), by the tree of group.h
 * a = s / divisor in fp32 (ZERO_KEY_DIVISOR), rounded to nearest even into the gradient slot
 * g = fp32(slot) * c, c = fp32(clip / loss scale)
 * clip = min(1, ZERO_KEY_CLIP_NORM / (norm + 1e-6)), or 1 without clipping by norm
 * @endverbatim
 *
 * With ZERO_KEY_CLIP_VALUE, g is then clamped. The two kinds of clipping exclude each other.
 *
 * **Update rules.** Updates are computed in fp32, from the master if there is one and otherwise
 * from the parameter, and are rounded into their slots. Each operation is correctly rounded, square
 * roots and quotients included, so the bits do not depend on the processor.
 *
 * In the rules, p is the parameter and t is the number of the step, counted from 1. With
 * ZERO_UNFILLED_UNTOUCHED, t is the number of the tensor's own update, as in PyTorch
 * (ZERO_SLOT_UPDATE_COUNT + 1).
 *
 * @verbatim
 * sgd      g += weight_decay * p
 *          b = momentum * b + (1 - dampening) * g   (b = g at t = 1)
 *          g += momentum * b with nesterov, otherwise g = b
 *          p -= lr * g
 *          (while momentum is 0: p -= lr * g, and b stays as it is)
 * adam     g += weight_decay * p, then as adamw without decay
 * adamw    p *= 1 - lr * weight_decay
 *          m += (1 - beta1) * (g - m)
 *          v = beta2 * v + (1 - beta2) * g^2
 *          p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
 *          (v may stay as it is: ZERO_KEY_CODE_FREEZE)
 * adagrad  g += weight_decay * p
 *          v += g^2
 *          p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(v) + epsilon)
 * lion     p *= 1 - lr * weight_decay
 *          p -= lr * sign(beta1 * m + (1 - beta1) * g)
 *          m = beta2 * m + (1 - beta2) * g
 * lamb     m and v as in adam
 *          r = m / (1 - beta1^t) / (sqrt(v) / sqrt(1 - beta2^t) + epsilon) + weight_decay * p
 *          p -= lr * |p| / |r| * r
 * muon     m = momentum * m + (1 - momentum) * g, orthogonalised by Newton-Schulz steps
 * @endverbatim
 *
 * Sources of the rules:
 * - sgd: as torch.optim.SGD; the Nesterov form of Sutskever et al., 2013, rearranged.
 * - adam: Kingma and Ba, "Adam", 2015, algorithm 1.
 * - adamw: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2.
 * - adagrad: Duchi, Hazan and Singer, 2011; as torch.optim.Adagrad.
 * - lion: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2.
 * - lamb: You et al., "Large Batch Optimization for Deep Learning", 2020, algorithm 2. The norms
 *   cover the whole tensor, even if shards cut it, and use m and v as they are stored.
 * - muon: Jordan et al., 2024; as torch.optim.Muon, in fp32.
 *
 * Muon updates two-dimensional tensors. Each tensor is whole on one rank, and the ranks share the
 * cost. Other tensors, unless frozen, make seal return ZERO_E_UNSUPPORTED: put them into a
 * parameter set with another algorithm. On devices the library multiplies matrices itself, in the
 * order of the host, because cuBLAS would give other bits.
 *
 * **Weights (ZERO_DIVISOR_WEIGHTS).** A rank with weight w contributes w * fp32(g), rounded to
 * fp32. The divisor is fp32(sum of all weights), added in fp64. 16-bit gradients travel without
 * their weight and are multiplied during the sum, so no product is rounded to 16 bits.
 *
 * In micro-steps of kind LOCAL a rank adds w * fp32(g) in fp32:
 * - For f32 gradients this sum is the contribution.
 * - For 16-bit gradients the contribution is the weighted mean: the sum / fp32(w), rounded to the
 *   dtype of the gradient. Here w is the sum of the rank's weights.
 * - In a world of one, 16-bit means and gradients are the a of the formula above.
 *
 * **Precision.** Parameters and gradients (ZERO_KEY_GRAD_DTYPE) are f32, f16 or bf16. For 16-bit
 * parameters ZERO_KEY_MASTER selects an fp32 master, the 16 bits that complete a bf16 parameter to
 * fp32, or nothing.
 *
 * Moments are f32, bf16, or 8-bit with a scale per 256 elements. For 8-bit moments:
 * - Tensors of fewer than 256 elements keep f32.
 * - A second moment above 0 never becomes 0.
 * - A non-finite element becomes NaN and leaves the other elements as they are.
 *
 * Bytes per element with adamw. In stages 1 to 3 a rank keeps all of the data that is not sharded,
 * and its part of the rest:
 *
 * @verbatim
 * f32                                          16
 * 16-bit with fp32 master                      16
 * bf16 with remainder                          14
 * bf16 with fp32 master and 8-bit moments      10 + 2 / 64
 * @endverbatim
 *
 * **8-bit parameters (ZERO_KEY_PARAM_DTYPE).** Tensors of 256 elements or more are stored as codes
 * with a scale per 256 elements. They are gathered in this form after a step or in stage 3. The
 * codes are E4M3 of the Open Compute Project's 8-bit formats. An element is code * scale; the scale
 * is the largest magnitude of the 256 elements / 448, and the code is rounded to nearest even. An
 * element takes 1 + 1 / 64 bytes.
 *
 * - 8-bit parameters need an fp32 master, also if the parameter is registered as f32. Each update
 *   makes the codes anew from the master.
 * - In every stage param_acquire decodes into a buffer, in the dtype the parameter was registered
 *   with. The rules and the memory count of stage 3 apply to this buffer. It is a whole copy to
 *   write before the first begin, and read-only later. It must be released before a step or begin.
 * - First values become masters as they were written, and codes of them. Frozen parameters keep the
 *   codes only.
 * - After masters were written, begin computes codes anew, except codes that already represent
 *   their masters exactly. A run restored from all slots therefore has the codes that were saved.
 *
 * **One copy (ZERO_KEY_ONE_COPY, stages 1 and 2, all ranks on one host).** Whole parameters are
 * stored once, in shared memory of rank 0. Each rank updates its shard in place, and nothing is
 * gathered. The bits are the same as with a copy per rank.
 *
 * - param_acquire gives every rank the address of that copy. Nobody may write through it, except
 *   before begin, when one rank writes for all: ZERO_SOURCE_LOCAL and ZERO_SOURCE_ROOT take the
 *   copy as it is.
 * - Parameters change between the start of a step (or of reduce) and its end. They also change
 *   while any rank is inside init_param, which does not wait for other ranks.
 * - 8-bit parameters are decoded into buffers of each rank, as always.
 * - In other stages create returns ZERO_E_UNSUPPORTED. If ranks cannot reach each other's memory,
 *   seal returns it.
 *
 * **Delayed update (ZERO_KEY_GRAD_DELAY, stages 0 and 1).** Step call t applies the gradients that
 * were given before call t - 1, and begins to reduce those given before it. The reduction runs
 * behind the caller's next pass (PipeDream-2BW: Narayanan et al., 2021, section 3; ZeRO-Offload:
 * Ren et al., 2021). With the update f and the gradient g at parameters w:
 *
 * @verbatim
 * w(t+1) = w(t) - f(g(w(t-1)))
 * @endverbatim
 *
 * It costs accuracy at once, and needs lower rates. On a quadratic of curvature h, sgd with rate lr
 * and momentum mu stays stable for lr h < 1 - mu; without delay the bound is 2 (1 + mu). Choose it
 * only where the reduction takes about as long as the pass, and codes or longer periods lose more
 * (replicas.h).
 *
 * - The first call applies nothing: in its result `step` is as before, and `skipped` and
 *   `grad_norm` are 0. At the end of a run a call without gradients applies the last ones.
 * - The result of a call, its weights, its unfilled tensors and the decision to skip are those of
 *   the gradients that it applies. Rates, the loss scale of the result and reasons to stop are
 *   those of the call.
 * - Gradients are divided by the loss scale that held when the call behind them began. An overflow
 *   is found one call later. Gradients given meanwhile still have the old scale; if they overflow
 *   too, a dynamic scale falls twice.
 * - In split steps reduce waits for the sums, and gather begins the next reduction.
 * - With ZERO_KEY_OVERLAP a progress thread reduces. Otherwise, and where no thread may use the
 *   transport, the reduction ends within the call. The bits are the same. All collectives but
 *   param_acquire and micro_step wait for it first, as does release. Its error is that of the next
 *   call.
 * - Saves contain the reduced gradients that wait, and a resumed run has the bits of one that never
 *   stopped, also with other ranks (but `unfilled_count` of its first call is 0). Saves with
 *   ZERO_UNFILLED_UNTOUCHED do not contain them. A load without the key, or of another gradient
 *   dtype, drops them (zero_checkpoint_skipped()).
 * - begin drops gradients that wait, as does a load whose save has none: the first call behind it
 *   applies nothing. zero_optimizer_sync() leaves them waiting.
 * - Memory: a second gradient of all elements on every rank. Traffic is that without the key.
 * - Refused (ZERO_E_UNSUPPORTED): stages 2 and 3, ZERO_KEY_ONE_COPY, ZERO_TIER_DEVICE,
 *   ZERO_KEY_SYNC_PERIOD above 1, ZERO_RESIDUAL_F32, ZERO_KEY_ROWS, algorithm "custom", and
 *   micro-steps of kind REDUCE. Algorithm "none" is ZERO_E_INVALID_ARGUMENT.
 *
 * **Devices (ZERO_KEY_DEVICE) with ZERO_TIER_HOST (ZERO_KEY_TIER).** States, and all else that the
 * library keeps, stay in host memory, and updates are made there (Ren et al., "ZeRO-Offload",
 * 2021). Gradients given to grad_ready, and dst given to param_acquire, may be memory of that CUDA
 * device or of the host. The library distinguishes them by the address, through CUDA.
 *
 * - Device memory is copied in parts through 4 MiB of pinned memory, which CUDA provides
 *   (ZERO_MEMORY_STAGING). One part travels while another is processed. The bits are those of host
 *   memory.
 * - `stream` is a cudaStream_t of that device; NULL is its default stream. Memory is read and
 *   written after all work the stream was given before. Gradients may be overwritten when
 *   grad_ready returns. Work given to the stream after param_acquire sees the parameter.
 * - Addresses that the library returns are host addresses.
 * - Errors also: ZERO_E_MODULE and ZERO_E_DEVICE in create, ZERO_E_DEVICE in seal,
 *   ZERO_E_INVALID_ARGUMENT for memory or a stream of another device, ZERO_E_DEVICE_FAILED.
 *
 * **Devices with ZERO_TIER_DEVICE (on all ranks).** Parameters, gradients and states are stored on
 * ZERO_KEY_DEVICE. Sums and updates run there and have the bits of the host.
 *
 * - Addresses of param_acquire, grad_acquire and views are device addresses. Data of read and
 *   write, module buffers and results are host memory.
 * - Calls may return before their work has ended. That work runs after all work `stream` was given
 *   before, and before all work it is given next.
 * - Gradients that were given may be overwritten by later work of the stream.
 * - Call param_release once all work that uses the parameter was given to the streams the parameter
 *   was acquired with. These streams must exist until the parameter is no longer held.
 * - Groups with ZERO_KEY_NCCL move data over NCCL. In other groups ranks may share a device. Ranks
 *   that are threads use each other's memory in place if devices reach it; all else passes through
 *   the host.
 * - create returns ZERO_E_UNSUPPORTED for more than 64 ranks and for ZERO_KEY_ONE_COPY. In groups
 *   without NCCL it also does so for MPI over several hosts or with ZERO_KEY_MPI_SHARED 0.
 * - verify, and steps with checksums, wait for the device.
 * - A full device makes seal return ZERO_E_OUT_OF_MEMORY. Device memory is counted in stats.h;
 *   memory hooks and memory limits do not see it.
 *
 * **Collectives.** seal, begin, reduce, apply, gather, step, read, write, verify and
 * sync_module_buffers are collectives over the group. So are micro_step of kind REDUCE and, in
 * stage 3 after begin, param_acquire. So are the saves and loads of checkpoint.h. Every rank calls
 * them in the same order. Errors also: ZERO_E_TIMEOUT .. ZERO_E_TRANSPORT.
 *
 * **After ranks were lost** (ZERO_E_TIMEOUT .. ZERO_E_TRANSPORT, except ZERO_E_MISMATCH), three
 * calls still read the data that lies on this rank. They need no other rank:
 * - zero_optimizer_view(). Ask for zero_optimizer_view_count() before ranks are lost.
 * - zero_optimizer_read() of a range that lies on this rank: in its own shard, or in a slot that it
 *   holds whole.
 * - zero_optimizer_param_acquire() of a parameter that it holds whole. Releasing the optimizer
 *   releases the parameter.
 *
 * All other calls return the loss. The values are those that the last step left. If ranks were lost
 * between the first update of a step and its end, the values may mix two steps. The three calls
 * then return ZERO_E_CORRUPT, "the step was half applied": create a new optimizer and load a save
 * (checkpoint.h). They also return it after a begin, a write or a load that was interrupted.
 *
 * In stages 1 and 2 over several hosts, parameters may arrive behind a step. If a parameter did not
 * arrive, param_acquire returns ZERO_E_CORRUPT for it, but the shards of that step are complete.
 *
 * Ranks of one host may write into one another's memory. A rank that fails closes its memory first,
 * and peers that are still running then write nothing there.
 *
 * **Errors of all functions.** ZERO_E_BAD_HANDLE; ZERO_E_INVALID_ARGUMENT; ZERO_E_STATE if the call
 * is made in the wrong phase (the text names the missing call); ZERO_E_UNSUPPORTED if `stream` is
 * not NULL without ZERO_KEY_DEVICE.
 *
 * **Threads.** One thread per optimizer at a time, unless a function says otherwise. While a
 * request other than that of param_acquire is in progress:
 * - Statistics, get_f64 and get_i64 work.
 * - Collectives queue behind the request; those without _async wait for it too.
 * - Other functions return ZERO_E_STATE.
 */
#ifndef ZERO_OPTIMIZER_H
#define ZERO_OPTIMIZER_H

#include <zero/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An optimizer and its tensors; the caller gives it back with zero_optimizer_release(). */
typedef struct zero_optimizer zero_optimizer;

/**
 * The data kept for a tensor. Most slots have one entry per element; scales have one per 256
 * elements, and update counts have one per tensor.
 */
enum zero_slot {
  /** The parameter as it is stored: in its dtype, or in f8_e4m3 (ZERO_KEY_PARAM_DTYPE). */
  ZERO_SLOT_PARAM = 1,
  /** The reduced gradient. */
  ZERO_SLOT_GRAD = 2,
  /** The master of 16-bit and 8-bit parameters: f32, or u16 (ZERO_MASTER_REMAINDER). With
      ZERO_KEY_GATHER_CODE f32 parameters have one too. */
  ZERO_SLOT_MASTER = 3,
  /** f32, with ZERO_KEY_AVERAGE; frozen parameters have none. Evaluation reads it tensor by tensor.
      */
  ZERO_SLOT_AVERAGE = 4,
  /** Scales of 8-bit parameters: one f32 per 256 elements of the tensor. */
  ZERO_SLOT_PARAM_SCALE = 5,
  /** With ZERO_KEY_SYNC_PERIOD above 1: the parameters that all replicas last had in common. With
      ZERO_KEY_SYNC_MIX: the newest results of the outer step. */
  ZERO_SLOT_ANCHOR = 6,
  /** With ZERO_UNFILLED_UNTOUCHED: the steps that updated the tensor, or a row of it. One i64,
      equal on all ranks. */
  ZERO_SLOT_UPDATE_COUNT = 8,
  /** sgd, muon: the momentum buffer; adam, adamw, lamb, lion: m. */
  ZERO_SLOT_FIRST_MOMENT = 10,
  /** adam, adamw, lamb: v; adagrad: the sum of squares. */
  ZERO_SLOT_SECOND_MOMENT = 11,
  /** With ZERO_KEY_OUTER_MOMENTUM above 0: the momentum of the outer step, f32. */
  ZERO_SLOT_OUTER_MOMENT = 12,
  /** Scales of 8-bit first moments: one f32 per 256 elements of the tensor. */
  ZERO_SLOT_FIRST_SCALE = 14,
  /** Scales of 8-bit second moments: one f32 per 256 elements of the tensor. */
  ZERO_SLOT_SECOND_SCALE = 15,
  /** The first slot of algorithm "custom", which has 20, 21, 22 and 23. */
  ZERO_SLOT_CUSTOM = 20
};

/** The origin of first values (zero_optimizer_begin()). */
enum zero_source {
  /** Every rank wrote the same values into acquired parameters. The library compares them;
      ZERO_E_REPLICAS_DIFFER names a tensor that differs. */
  ZERO_SOURCE_LOCAL = 0,
  /** Rank 0 wrote the values into acquired parameters; the other ranks receive them. */
  ZERO_SOURCE_ROOT = 1,
  /** The values were written by range with zero_optimizer_write(). This is the only way in which no
      rank of stage 3 holds the whole model. */
  ZERO_SOURCE_SHARDS = 2
};

/**
 * The distribution of values made by zero_optimizer_init_param(). Element i of parameter `id`
 * depends on seed, id and i alone.
 */
enum zero_initialiser {
  ZERO_INITIALISER_CONSTANT = 0, /**< The value a; b is not used. */
  ZERO_INITIALISER_UNIFORM = 1,  /**< Uniform in [a, b) as fp32; a if a = b. */
  ZERO_INITIALISER_NORMAL = 2    /**< Normal with mean a and standard deviation b. */
};

/** The rule by which zero_optimizer_sync_module_buffers() makes a module buffer equal. */
enum zero_sync {
  ZERO_SYNC_NONE = 0,     /**< Each rank keeps its own values. */
  ZERO_SYNC_AVERAGE = 1,  /**< The mean over ranks, as ZERO_REDUCE_AVG; f32, f64, f16, bf16 only. */
  ZERO_SYNC_BROADCAST = 2 /**< The values of rank 0. */
};

/** The result of zero_optimizer_verify(). */
enum zero_finding {
  ZERO_FINDING_NONE = 0,    /**< No difference was found. */
  ZERO_FINDING_SHARD = 1,   /**< A rank's own part differs from the values the last step left. */
  ZERO_FINDING_REPLICAS = 2 /**< Ranks that must hold the same bits do not. */
};

/** The treatment of the gradients of a micro-step (zero_optimizer_micro_step()). */
enum zero_micro_step {
  /** Reduced as they become ready, together with the sums of LOCAL micro-steps. The step follows.
      */
  ZERO_MICRO_STEP_LAST = 0,
  /** Added up on this rank, without communication. */
  ZERO_MICRO_STEP_LOCAL = 1,
  /** Reduced as they become ready, and added to fp32 sums of the elements this rank owns. In a
      world of one: as LOCAL. */
  ZERO_MICRO_STEP_REDUCE = 2
};

/** The outcome of a step. Only 8-byte fields; fields are appended, never moved. */
typedef struct zero_step_result {
  uint64_t struct_size;  /**< [in] sizeof(zero_step_result) as the caller knows it. */
  int64_t step;          /**< Steps applied so far, this one included. */
  int64_t skipped;       /**< 1 if a non-finite gradient on some rank made all ranks skip it. */
  int64_t skipped_total; /**< Steps skipped so far. */
  /** Elements for which this rank gave no gradient in this step: in no micro-step and by no name of
      a tied tensor. They counted as zero. */
  int64_t unfilled_count;
  /** L2 norm of the reduced gradient, without loss scale, the same bits on all ranks. It is
      computed if ZERO_KEY_GRAD_NORM is 1 or gradients are clipped by norm; otherwise it is 0. */
  double grad_norm;
  /** The factor by which the caller multiplies the loss of the next step. */
  double loss_scale;
  /** The largest reason that a rank gave to zero_optimizer_request_stop(), the same on all ranks;
      0 if no rank asked. */
  int64_t stop_reason;
  /** 1 if replicas were synchronised in this step, or since by zero_optimizer_sync(). Rounds with
      neighbours (ZERO_KEY_NEIGHBOURS) and fragments (ZERO_KEY_SYNC_FRAGMENTS) count; with
      ZERO_KEY_SYNC_DELAY, the step at whose end a result takes effect. */
  int64_t synced;
  /** With `synced`: how far replicas agreed: the norm of the mean of their changes since the last
      synchronisation, divided by the mean of the norms. 1 = all changed alike; 1 / sqrt(number of
      replicas) = as independent noise would. After a round with neighbours: the mean of the norms
      that the round left, divided by that before it; 1 / sqrt(3) (two replicas: 1 / sqrt(2)) = as
      independent noise would. Otherwise 0. */
  double spread;
} zero_step_result;

/**
 * Sets every field to zero, and struct_size to the given size.
 *
 * @param[out] out          The struct.
 * @param[in]  struct_size  sizeof(zero_step_result) as the caller knows it.
 * @return ZERO_OK or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_step_result_init(zero_step_result *out, uint64_t struct_size);

/**
 * The outcome of zero_optimizer_verify(). All fields but the last two are equal on all ranks. Only
 * 8-byte fields; fields are appended, never moved.
 */
typedef struct zero_verify_result {
  /** [in] sizeof(zero_verify_result) as the caller knows it. */
  uint64_t struct_size;
  /** A zero_finding. With ZERO_FINDING_NONE the fields up to `count` have no meaning. */
  int64_t found;
  /** Wrong pieces on all ranks together, each of at most 65536 bytes. The fields from `rank` to
      `count` describe the first piece. */
  int64_t chunk_count;
  /** The rank that holds wrong bits. */
  int64_t rank;
  /** -1; or, if equally many ranks hold either value, a rank that differs from `rank`. Then either
      of the two ranks is wrong. */
  int64_t other_rank;
  /** The id of the tensor. */
  int64_t param;
  /** A zero_slot. */
  int64_t slot;
  /** The first entry of the range of the slot that contains all wrong bits of the piece. */
  int64_t offset;
  /** The number of entries in that range. */
  int64_t count;
  /** Bytes of this rank that were compared with those of other ranks. */
  int64_t replica_nbytes;
  /** Bytes of this rank that were compared with the values the last step left. */
  int64_t shard_nbytes;
} zero_verify_result;

/**
 * Sets every field to zero, and struct_size to the given size.
 *
 * @param[out] out          The struct.
 * @param[in]  struct_size  sizeof(zero_verify_result) as the caller knows it.
 * @return ZERO_OK or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_verify_result_init(zero_verify_result *out, uint64_t struct_size);

/**
 * Creates an optimizer without parameters. Not a collective.
 *
 * @param[in]  group   The group; the optimizer keeps it alive.
 * @param[in]  config  The configuration, or NULL for defaults (adamw, stage 1).
 * @param[out] out     The optimizer, owned by the caller.
 * @return ZERO_OK. ZERO_E_UNSUPPORTED for an unknown algorithm, for a hyper-parameter that the
 *         algorithm lacks, for a key of single parameters, and for the combinations that
 *         ZERO_KEY_ONE_COPY excludes. ZERO_E_INVALID_ARGUMENT for other keys that clash.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_create(zero_group *group, const zero_config *config,
                                       zero_optimizer **out);

/**
 * Creates a parameter set: parameters that share an algorithm and hyper-parameters. Set 0 has those
 * of the optimizer's own config. Call it before seal, on all ranks alike. Not a collective.
 *
 * @param[in]  optimizer  The optimizer.
 * @param[in]  config     Keys 400 .. 499 and ZERO_KEY_ALGORITHM, or NULL. A key that is not set has
 *                        the value of set 0, or the default of the set's algorithm if that differs.
 * @param[out] out_set    1, 2, ...: the value of ZERO_KEY_SET for the parameters of the set.
 * @return ZERO_OK; ZERO_E_UNSUPPORTED for another key.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_add_set(zero_optimizer *optimizer, const zero_config *config,
                                        int64_t *out_set);

/**
 * Sets the model-parallel group: the ranks over which the model is cut (tensor, pipeline or expert
 * parallelism). These ranks together hold one replica; each has an optimizer over its own group of
 * replicas. Norm, clipping and the decision to skip then cover the whole model.
 *
 * Call it before seal, on all ranks of both groups. Seal, and every reduce or step, then become
 * collectives over the model-parallel group too. Over this group seal compares clipping, loss scale
 * and the treatment of non-finite gradients. zero_group_abort() of one group also ends steps that
 * wait in the other.
 *
 * Squares are summed over distinct elements:
 * - Parameters that every rank of the model-parallel group holds alike must have
 *   ZERO_KEY_REPLICATED; their squares count on its rank 0 alone.
 * - Some parameters are held alike by only some of its ranks. Examples are norms of one pipeline
 *   stage over tensor-parallel ranks, or an embedding tied over stages. For these the lowest such
 *   rank leaves the key at 0, and the others set it.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] group      The model-parallel group; the optimizer keeps it alive. It must contain
 *                       exactly one rank of each optimizer's group, because the other ranks of that
 *                       group hold the same part of the model.
 * @return ZERO_OK. ZERO_E_INVALID_ARGUMENT if `group` holds other ranks of the optimizer's group:
 *         here if it is that group itself, in seal for any other group.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_set_model_group(zero_optimizer *optimizer, zero_group *group);

/**
 * Registers a tensor as a parameter. Not a collective.
 *
 * @param[in]  optimizer  The optimizer.
 * @param[in]  config     Keys 350 .. 399; NULL = none.
 * @param[in]  name       1 to 255 bytes of UTF-8, unique in the optimizer.
 * @param[in]  dtype      ZERO_DTYPE_F32, ZERO_DTYPE_F16 or ZERO_DTYPE_BF16.
 * @param[in]  shape      ndim extents, each >= 0; may be NULL if ndim is 0 (a scalar).
 * @param[in]  ndim       0 .. 16.
 * @param[out] out_id     0, 1, 2, ... in order of registration.
 * @return ZERO_OK; ZERO_E_UNSUPPORTED for keys of other kinds and for other dtypes of arrays.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_add_param(zero_optimizer *optimizer, const zero_config *config,
                                          const char *name, int32_t dtype, const int64_t *shape,
                                          int64_t ndim, int64_t *out_id);

/**
 * Sets the order in which gradients become ready, which is the order of reductions. The default is
 * last registered first. Call it before seal, on all ranks alike. Not a collective.
 *
 * Gradients may still become ready in any order, at the price of memory (stages 2 and 3) and
 * overlap.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] ids        Every parameter exactly once.
 * @param[in] count      The number of ids.
 * @return ZERO_OK. If a parameter is added later, seal returns ZERO_E_STATE.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_set_order(zero_optimizer *optimizer, const int64_t *ids,
                                          int64_t count);

/**
 * Registers a module buffer: a tensor that belongs to the model but is no parameter, for example
 * the statistics of a batch normalisation. Every rank keeps all of it. Call it before seal, on all
 * ranks alike. Not a collective.
 *
 * @param[in]  optimizer  The optimizer.
 * @param[in]  name       As in zero_optimizer_add_param(); unique over parameters and module
 *                        buffers.
 * @param[in]  dtype      A zero_dtype that arrays may have.
 * @param[in]  shape      As in zero_optimizer_add_param().
 * @param[in]  ndim       As in zero_optimizer_add_param().
 * @param[in]  rule       A zero_sync.
 * @param[out] out_id     0, 1, 2, ...: ids of module buffers are counted apart from parameters.
 * @return ZERO_OK; ZERO_E_UNSUPPORTED for ZERO_SYNC_AVERAGE with integers.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_add_module_buffer(zero_optimizer *optimizer, const char *name,
                                                  int32_t dtype, const int64_t *shape,
                                                  int64_t ndim, int32_t rule, int64_t *out_id);

/**
 * Sets the order in which the first step of stage 3 acquires parameters, so that they are gathered
 * ahead (ZERO_KEY_PREFETCH_BYTES; needs ZERO_KEY_OVERLAP). Later steps follow the order of the step
 * before. By default the first step gathers nothing ahead. Call it before seal, on all ranks alike.
 * Not a collective.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] ids        Any sequence of parameters, for example forward and then backward.
 * @param[in] count      The number of ids.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_set_gather_order(zero_optimizer *optimizer, const int64_t *ids,
                                                 int64_t count);

/**
 * Cuts the parameters into shards, compares parameters and configuration over all ranks, and
 * allocates all memory. A collective.
 *
 * Before it allocates, the library adds up the memory that the ranks of each host need. If that is
 * more than the host has (ZERO_KEY_MEMORY_LIMIT), all ranks return ZERO_E_OUT_OF_MEMORY, and the
 * text gives the figures of all stages.
 *
 * After a lack of memory or of file descriptors the group stays usable. While zero_group_status()
 * returns ZERO_OK, all ranks may then call seal again, unless there is a model-parallel group.
 *
 * @param[in] optimizer  The optimizer.
 * @return ZERO_OK. ZERO_E_MISMATCH names the first difference between ranks. ZERO_E_OUT_OF_MEMORY,
 *         as above or on a rank whose allocation fails. ZERO_E_SYSTEM on a rank that has too few
 *         file descriptors (zero_group_create_local()). If one rank fails to allocate or lacks
 *         descriptors, the others return ZERO_E_PEER_FAILED.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_seal(zero_optimizer *optimizer);
/** Begins zero_optimizer_seal() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_seal_async(zero_optimizer *optimizer, zero_request **out);

/**
 * Takes over first values, before the first step and again after parameters were edited. Optimizer
 * states stay as they are. Parameters that were never written are zero. A collective.
 *
 * In stage 3, and for 8-bit parameters in all stages, acquired parameters are whole copies until
 * the first begin; later edits go through zero_optimizer_write(). After write or init_param,
 * gradients and steps return ZERO_E_STATE until begin was called. Edits through addresses or views
 * are not detected, and a step after such edits without a begin has undefined results.
 *
 * Masters follow parameters that were edited:
 * - An fp32 master that no longer rounds to its parameter takes the value of the parameter.
 * - A remainder becomes 0 if zero_optimizer_write() changed its element, unless part of the
 *   tensor's master was written since the last begin. It stays as it is after an edit through an
 *   address.
 *
 * Before the first step, an average that was not written starts as the fp32 master, or as the
 * parameter if there is no master.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] source     A zero_source, the same on all ranks. After write or init_param of
 *                       parameters: ZERO_SOURCE_SHARDS (others return ZERO_E_STATE).
 * @return ZERO_OK. ZERO_E_REPLICAS_DIFFER. ZERO_E_MISMATCH names sources that differ. ZERO_E_STATE
 *         while parameters or gradients are acquired.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_begin(zero_optimizer *optimizer, int32_t source);
/** Begins zero_optimizer_begin() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_begin_async(zero_optimizer *optimizer, int32_t source,
                                            zero_request **out);

/**
 * Fills a parameter with first values. Each rank fills only the elements that it updates, so that
 * no rank holds the whole tensor in stage 3. The bits are the same at any world size, stage and
 * shard weights. Call it on all ranks with the same arguments. Not a collective.
 *
 * Call it between seal and begin(ZERO_SOURCE_SHARDS), or later before another begin. While
 * parameters are acquired or gradients of a step are in progress, it returns ZERO_E_STATE.
 *
 * Values are made in fp64 and rounded to fp32. An fp32 master or remainder keeps them exactly, and
 * the parameter is the rounding of that.
 *
 * @param[in] optimizer    The optimizer.
 * @param[in] id           The parameter. A tied one is ZERO_E_INVALID_ARGUMENT: initialise the
 *                         parameter that it is tied to.
 * @param[in] initialiser  A zero_initialiser.
 * @param[in] a            Finite; for uniform, a <= b. No value may exceed the largest value of the
 *                         parameter's dtype.
 * @param[in] b            Finite; for normal, b >= 0.
 * @param[in] seed         Any. With one seed, each parameter has values of its own.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_init_param(zero_optimizer *optimizer, int64_t id,
                                           int32_t initialiser, double a, double b, int64_t seed);

/**
 * Returns the address of a module buffer: whole on every rank, zero at first, and writable by the
 * caller. It is valid from seal to release.
 *
 * @param[in]  optimizer  The optimizer.
 * @param[in]  id         The module buffer.
 * @param[out] out_data   Aligned to 64 bytes; NULL for a buffer without elements.
 * @param[out] out_count  The number of elements.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_module_buffer(zero_optimizer *optimizer, int64_t id,
                                              void **out_data, int64_t *out_count);

/**
 * Makes all module buffers equal on all ranks, each by its rule. A collective, at any time after
 * seal.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] stream     NULL, or a stream of ZERO_KEY_DEVICE.
 * @return ZERO_OK or an error of collectives.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_sync_module_buffers(zero_optimizer *optimizer, void *stream);
/** Begins zero_optimizer_sync_module_buffers(); the request is in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_sync_module_buffers_async(zero_optimizer *optimizer, void *stream,
                                                          zero_request **out);

/**
 * Returns an address of the whole tensor, valid until zero_optimizer_param_release().
 *
 * In stages 0 to 2 every rank holds the tensor; 8-bit parameters are decoded. In stage 3 it is
 * gathered from the shards: all ranks must acquire the same parameters in the same order. Acquiring
 * a parameter again while it is held must also happen on all ranks. It returns the first address,
 * which may be the dst of the first call.
 *
 * Elements have the dtype the parameter was registered with. After begin the memory is read-only,
 * unless the caller calls begin again before the next step.
 *
 * @param[in]  optimizer  The optimizer.
 * @param[in]  id         The parameter.
 * @param[in]  dst        Memory of the caller to fill instead of the library's; NULL = the
 *                        library's, on its tier.
 * @param[in]  dst_count  Exactly the number of elements of the tensor; 0 if dst is NULL.
 * @param[in]  stream     NULL, or a stream of ZERO_KEY_DEVICE.
 * @param[out] out_data   dst, or the library's address (aligned to 64 bytes); NULL for a tensor
 *                        without elements.
 * @return ZERO_OK; in stage 3 after begin also an error of collectives. ZERO_E_CORRUPT if ranks
 *         were lost within a step.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_param_acquire(zero_optimizer *optimizer, int64_t id, void *dst,
                                              int64_t dst_count, void *stream, void **out_data);
/** Begins zero_optimizer_param_acquire() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_param_acquire_async(zero_optimizer *optimizer, int64_t id,
                                                    void *dst, int64_t dst_count, void *stream,
                                                    void **out_data, zero_request **out);

/**
 * Ends one zero_optimizer_param_acquire(). Never waits.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] id         The parameter.
 * @return ZERO_OK; ZERO_E_STATE if the parameter is not acquired.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_param_release(zero_optimizer *optimizer, int64_t id);

/**
 * Returns an address for the gradient of a tensor in the library's memory. It is valid until the
 * whole tensor was given to zero_optimizer_grad_ready(). Elements that are not given before the
 * step count as zero, whatever was written there.
 *
 * Elements have the dtype of the gradient: ZERO_KEY_GRAD_DTYPE, by default that of the parameter.
 * If the pool of stages 2 and 3 is empty, the call may wait for reductions in progress. Only one
 * name of a tied tensor may be acquired at a time.
 *
 * @param[in]  optimizer       The optimizer.
 * @param[in]  id              The parameter.
 * @param[in]  stream          NULL, or a stream of ZERO_KEY_DEVICE.
 * @param[out] out_data        Aligned to 64 bytes; NULL for a tensor without elements.
 * @param[out] out_accumulate  0: overwrite (first time in this step); 1: add to the present values.
 * @return ZERO_OK. ZERO_E_STATE if the gradient is ready. ZERO_E_UNSUPPORTED if parts of it are
 *         ready and have weights. ZERO_E_POOL_LIMIT.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_grad_acquire(zero_optimizer *optimizer, int64_t id, void *stream,
                                             void **out_data, int64_t *out_accumulate);

/**
 * Declares elements [offset, offset + count) of the tensor's gradient final for this step. When the
 * last tensor of a bucket is ready, the reduction of the bucket starts.
 *
 * Ranges of one tensor may become ready one by one, each element once per step. Every name of a
 * tied tensor gives a gradient of its own, and the library adds them. With ZERO_DIVISOR_WEIGHTS the
 * gradient of a second name must be in the caller's memory.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] id         The parameter.
 * @param[in] grad       NULL: the acquired address was filled. Otherwise `count` elements of the
 *                       gradient's dtype in memory of the caller. They are copied, and are free on
 *                       return (for devices see the head of this file).
 * @param[in] offset     The first element within the tensor.
 * @param[in] count      The number of elements.
 * @param[in] stream     NULL, or a stream of ZERO_KEY_DEVICE.
 * @return ZERO_OK. ZERO_E_STATE if an element was ready before, if grad is NULL without
 *         grad_acquire, or if the gradient is acquired by another name. ZERO_E_POOL_LIMIT. The
 *         error of a failed reduction.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_grad_ready(zero_optimizer *optimizer, int64_t id, const void *grad,
                                           int64_t offset, int64_t count, void *stream);

/**
 * Gives the gradient of a whole tensor by rows, and declares it final for this step. Rows that are
 * not given are zero. For tables of which a batch uses few rows, such as embeddings.
 *
 * The tensor was added with ZERO_KEY_ROWS 1. Its first dimension counts the rows; a row is all
 * elements with the same first index. A row that is given several times is added up in the order
 * given, in the dtype of the gradient: each sum is made in fp32 and rounded to it.
 *
 * - Results have the bits of a whole gradient with the same rows, in all stages and algorithms.
 *   Unless ZERO_UNFILLED_UNTOUCHED is set, moments and weight decay change all other rows too.
 * - Only given rows travel in reductions, each as its elements and a number of 8 bytes, to the rank
 *   that owns them (Renggli et al., "SparCML", 2019). In stage 0 the sums travel likewise.
 * - Each rank gives what rows it has, perhaps none, and calls this function once per micro-step. A
 *   rank that gives no gradient contributes zeros. zero_optimizer_grad_ready() may be called
 *   instead, on some ranks too: the rows of the range it gives then travel.
 * - A tied name is a gradient of its own, and may be given whole where another is given by rows.
 * - The tensor is a bucket of its own. Tensors of fewer than 256 elements are reduced whole, unless
 *   ZERO_UNFILLED_UNTOUCHED is set.
 * - Memory: that of a whole gradient, two bytes per row, and ZERO_MEMORY_WORKSPACE for rows on
 *   their way. The workspace grows with the rows of a step, up to twice the bytes that the rank
 *   sends and receives for the tensor. It comes from the system, not from a memory hook, and
 *   ZERO_KEY_MEMORY_LIMIT does not count it. ZERO_UNFILLED_UNTOUCHED takes one byte per row more,
 *   and as much workspace again for gathers.
 *
 * With ZERO_UNFILLED_UNTOUCHED a step updates the rows that some rank gave, in any of its
 * micro-steps and by any name, and leaves all other rows untouched (as SparseAdam of PyTorch):
 * - The parameter, master, states and average of an untouched row keep their bits. Updated rows
 *   have the bits of an update of the whole tensor.
 * - Updates are counted per tensor (ZERO_SLOT_UPDATE_COUNT), and the bias correction follows that
 *   count. A step in which no rank gives a row does not count; a call with `count` 0 gives none.
 * - A rank with weight 0 (zero_optimizer_set_weight()) gives its rows like others.
 * - Norms are over the given rows. A skipped step changes nothing, and its rows are forgotten.
 * - In stages 1 and 2 zero_optimizer_step() gathers the updated rows only, each as its elements and
 *   a number of 8 bytes. zero_optimizer_gather() gathers whole tensors, because callers may change
 *   any row through views before it. In stage 3 zero_optimizer_param_acquire() gathers the whole
 *   tensor.
 * - One such tensor keeps all steps of the optimizer from writing into the memory of other ranks,
 *   because those writes are of whole parts of tensors. Steps reduce, update and gather instead.
 * - With algorithm "custom" the caller's own update decides which rows change.
 * - A master that was written reaches the rows of its parameter that a step updates; the others
 *   follow in zero_optimizer_begin().
 *
 * zero_optimizer_add_param() returns ZERO_E_UNSUPPORTED for ZERO_KEY_ROWS with ZERO_TIER_DEVICE or
 * ZERO_KEY_REPLICA_RANKS. The same holds for ZERO_UNFILLED_UNTOUCHED together with ZERO_KEY_ROWS
 * and lamb, muon, or a parameter or moments of 8 bits, whose updates change elements of several
 * rows together.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] id         The parameter.
 * @param[in] rows       `count` row numbers from 0, in any order. Host memory, free on return.
 * @param[in] values     `count` rows of the gradient's dtype, end to end. Host memory, free on
 *                       return.
 * @param[in] count      The number of rows given; 0: none, and `rows` and `values` may be NULL.
 * @param[in] stream     NULL, or a stream of ZERO_KEY_DEVICE.
 * @return ZERO_OK. ZERO_E_STATE if the tensor was added without ZERO_KEY_ROWS, if a part of its
 *         gradient is ready or if it is acquired. ZERO_E_INVALID_ARGUMENT for a row that the tensor
 *         does not have; nothing is taken in then. ZERO_E_UNSUPPORTED for device memory.
 *         ZERO_E_POOL_LIMIT. The error of a failed reduction.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_grad_ready_rows(zero_optimizer *optimizer, int64_t id,
                                                const int64_t *rows, const void *values,
                                                int64_t count, void *stream);

/**
 * Declares the gradients of several parameters final: zero_optimizer_grad_ready() of each whole
 * tensor, in the given order, with the same results. Languages whose calls into C are expensive
 * make one such call per step.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] ids        The parameters; no parameter may occur twice. Every name of a tied tensor
 *                       is a parameter of its own.
 * @param[in] count      The number of parameters; may be 0.
 * @param[in] grads      For each parameter `grad` of zero_optimizer_grad_ready(): NULL, or all
 *                       elements of its gradient. NULL for the array: all gradients were acquired.
 * @param[in] stream     NULL, or a stream of ZERO_KEY_DEVICE.
 * @return As zero_optimizer_grad_ready(). The call ends at the first error, whose text names the
 *         position in `ids`. Gradients before that position are ready; the others are unchanged.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_grads_ready(zero_optimizer *optimizer, const int64_t *ids,
                                            int64_t count, const void *const *grads, void *stream);

/**
 * Sets this rank's weight of the step or, after zero_optimizer_micro_step(), of that micro-step.
 * The weight is for example the number of samples; 0 means that the rank has no data, and its
 * gradients are then not read. Call it before the first grad_ready of the step or micro-step;
 * afterwards the weight is 1 again. Only with ZERO_DIVISOR_WEIGHTS.
 *
 * If the weights of a step add up to 0, or to more than fp32 holds, the step returns
 * ZERO_E_INVALID_ARGUMENT and drops its gradients. A product of weight and gradient, or a sum of
 * products, that fp32 does not hold is an overflow (ZERO_KEY_NONFINITE).
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] weight     0, or positive and within fp32: 2^-149 .. 3.4e38.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_set_weight(zero_optimizer *optimizer, double weight);

/**
 * Begins a micro-step: the gradients of a part of the step's batch. Each micro-step of a step is
 * begun with its kind, and the kinds may differ. A step of one micro-step needs no call.
 *
 * - LOCAL and LAST: the call does not wait for other ranks. Ranks may make different numbers of
 *   LOCAL micro-steps in a step, also none, and may end it with or without LAST. Ranks of unequal
 *   speed divide the batch with zero_group_balance(); ZERO_DIVISOR_WEIGHTS makes the mean exact.
 * - REDUCE: a collective, as is the call that follows one in the same step. All ranks make equally
 *   many. After the last one, either all ranks make further micro-steps or none does. Otherwise
 *   every rank returns ZERO_E_MISMATCH.
 *
 * Gradients not given in a micro-step count as zero in it. Gradients of all micro-steps are added;
 * only ZERO_DIVISOR_WEIGHTS divides, by the weights of all of them. In a world of one REDUCE is
 * LOCAL.
 *
 * Memory, allocated in the first micro-step of the kind:
 * - LOCAL: a full gradient per rank, in the gradient's dtype or fp32 (ZERO_KEY_ACCUMULATE_DTYPE),
 *   unless stage 0 or 1 keeps one of that dtype already. With ZERO_DIVISOR_WEIGHTS always 4 bytes
 *   per element.
 * - REDUCE: 4 bytes per element that the rank owns.
 *
 * Local sums are rounded to the gradient's dtype before they travel. Without weights, f16 sums
 * above 65504 on a rank are therefore an overflow even if their mean over ranks is not.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] kind       A zero_micro_step. If it is REDUCE on one rank, it is REDUCE on all.
 * @param[in] stream     NULL, or a stream of ZERO_KEY_DEVICE.
 * @return ZERO_OK. ZERO_E_STATE while gradients are acquired, after a micro-step of kind LAST, or
 *         if a weight was set before the first micro-step. ZERO_E_UNSUPPORTED for REDUCE with
 *         ZERO_KEY_GRAD_DELAY.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_micro_step(zero_optimizer *optimizer, int32_t kind, void *stream);
/** Begins zero_optimizer_micro_step() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_micro_step_async(zero_optimizer *optimizer, int32_t kind,
                                                 void *stream, zero_request **out);

/**
 * Makes one step: reduces gradients, agrees with all ranks whether to apply them, updates, gathers
 * parameters. Gradients never made ready count as zero. All ranks apply, or all skip, or all return
 * an error. A collective.
 *
 * In stage 3, and with 8-bit parameters, no parameter may be acquired (ZERO_E_STATE). In stage 0,
 * ranks of one host that reach one another's memory update a shard each (not with
 * ZERO_TIER_DEVICE). Each writes its shard, with its states, into the memory of all. If this fails
 * midway, ranks may hold states that were written in part.
 *
 * @param[in]     optimizer   The optimizer.
 * @param[in]     stream      NULL, or a stream of ZERO_KEY_DEVICE.
 * @param[in,out] out_result  struct_size set by the caller; or NULL. With NULL and ZERO_TIER_DEVICE
 *                            the step may still run on return (graph.h).
 * @return ZERO_OK. ZERO_E_MISMATCH if hyper-parameters, loss scales or counters differ between
 *         ranks, or a rank calls reduce instead of step. ZERO_E_STATE with algorithms "custom" and
 *         "none".
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_step(zero_optimizer *optimizer, void *stream,
                                     zero_step_result *out_result);
/** Begins zero_optimizer_step() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_step_async(zero_optimizer *optimizer, void *stream,
                                           zero_step_result *out_result, zero_request **out);

/**
 * First part of a step: sums the gradients and agrees with all ranks whether to apply them. Call
 * reduce and gather always, and apply at most once between them. A collective.
 *
 * With algorithm "custom" the caller updates the views between reduce and gather:
 * - Gradients in views are neither unscaled nor clipped (see c at the head of this file).
 * - The caller writes both masters and 16-bit parameters, and moves averages.
 * - If the ranks agreed to skip the step, the caller writes nothing.
 *
 * @param[in]     optimizer   The optimizer.
 * @param[in]     stream      NULL, or a stream of ZERO_KEY_DEVICE.
 * @param[in,out] out_result  As in zero_optimizer_step().
 * @return ZERO_OK or an error of zero_optimizer_step().
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_reduce(zero_optimizer *optimizer, void *stream,
                                       zero_step_result *out_result);
/** Begins zero_optimizer_reduce() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_reduce_async(zero_optimizer *optimizer, void *stream,
                                             zero_step_result *out_result, zero_request **out);
/**
 * Second part of a step: updates this rank's shard, in stage 0 everything, with the built-in
 * algorithm. Does nothing if the ranks agreed to skip. A collective.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] stream     NULL, or a stream of ZERO_KEY_DEVICE.
 * @return ZERO_OK; ZERO_E_STATE with algorithm "custom": update the views instead.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_apply(zero_optimizer *optimizer, void *stream);
/** Begins zero_optimizer_apply() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_apply_async(zero_optimizer *optimizer, void *stream,
                                            zero_request **out);
/**
 * Last part of a step: makes the new parameters visible and ends the step. A collective.
 *
 * In stages 1 and 2, gather and step may return while new parameters still travel. This happens if
 * ranks cannot write into one another's memory, ZERO_KEY_OVERLAP is 1 and no parameter is acquired.
 * Then param_acquire waits for the parameters of its tensor; every other call that needs them waits
 * for all, and so does zero_optimizer_release(). A process that ends without release may leave
 * other ranks without these parameters (ZERO_E_PEER_LOST).
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] stream     NULL, or a stream of ZERO_KEY_DEVICE.
 * @return ZERO_OK or an error of collectives.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_gather(zero_optimizer *optimizer, void *stream);
/** Begins zero_optimizer_gather() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_gather_async(zero_optimizer *optimizer, void *stream,
                                             zero_request **out);

/**
 * Returns the number of views (zero_optimizer_view()).
 *
 * @param[in]  optimizer  The optimizer.
 * @param[out] out_count  The number of views.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_view_count(const zero_optimizer *optimizer, int64_t *out_count);

/**
 * Returns a view of the elements that this rank updates: in stage 0 all of them, otherwise its
 * shard. Each tensor has at most one piece, contiguous in every slot.
 *
 * Gradients in views are valid between reduce and gather. Parameters and states are valid from
 * begin on, outside step. To edit parameters through a view outside reduce .. gather, acquire them
 * first and call begin afterwards.
 *
 * @param[in]  optimizer   The optimizer.
 * @param[in]  index       0 .. count - 1.
 * @param[in]  slot        A zero_slot.
 * @param[out] out_param   The id of the tensor.
 * @param[out] out_offset  The first element within the tensor (row-major).
 * @param[out] out_count   The elements of this view.
 * @param[out] out_data    The address. For ZERO_SLOT_UPDATE_COUNT it is the tensor's one entry,
 *                         which is read-only.
 * @return ZERO_OK; ZERO_E_UNSUPPORTED for a slot that the algorithm does not have, and for
 *         ZERO_SLOT_PARAM with ZERO_KEY_GATHER_CODE (replicas.h). ZERO_E_CORRUPT if ranks were lost
 *         within a step.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_view(zero_optimizer *optimizer, int64_t index, int32_t slot,
                                     int64_t *out_param, int64_t *out_offset, int64_t *out_count,
                                     void **out_data);

/**
 * Checks that memory holds the values that the library wrote. A collective between steps.
 *
 * It compares two kinds of data:
 * - Data that several ranks keep alike must have the same bits on all of them. These are parameters
 *   of stages 0 to 2, those that stay gathered in stage 3, and in stage 0 also states.
 * - Within the window of ZERO_KEY_VERIFY_EVERY, each rank's own part must have the values it had
 *   after the last step. After a step, wrong bits of an own part are the same everywhere, so only
 *   the window finds them.
 *
 * Findings are reported, not repaired, and the optimizer stays usable.
 *
 * The window of ZERO_KEY_VERIFY_EVERY = K: after step n*K - 1 (for n*K = 1: after begin) each rank
 * takes checksums of the data it updates. These are parameters, masters, moments, scales and
 * averages, in stage 0 all of them. Step n*K compares before it changes anything; a difference
 * makes it fail with ZERO_E_CORRUPT on all ranks. write, init_param and begin renew the checksums
 * of the values they write. Values edited in that window through addresses or views are
 * differences, unless begin follows.
 *
 * @param[in]     optimizer   The optimizer.
 * @param[in]     stream      NULL, or a stream of ZERO_KEY_DEVICE.
 * @param[in,out] out_result  struct_size set by the caller.
 * @return ZERO_OK; ZERO_E_STATE if parameters were written since the last begin.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_verify(zero_optimizer *optimizer, void *stream,
                                       zero_verify_result *out_result);
/** Begins zero_optimizer_verify() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_verify_async(zero_optimizer *optimizer, void *stream,
                                             zero_verify_result *out_result, zero_request **out);

/**
 * Releases the handle; NULL is allowed. Addresses that were handed out become invalid. Not a
 * collective.
 *
 * The call waits for parameters that are being gathered ahead (ZERO_KEY_PREFETCH_BYTES): until the
 * slowest rank has made the same param_acquire, at most until the deadline. Threads: any.
 *
 * @param[in] optimizer  The optimizer, or NULL.
 * @since ZERO_0.1
 */
ZERO_API void zero_optimizer_release(zero_optimizer *optimizer);

#ifdef __cplusplus
}
#endif

#endif
