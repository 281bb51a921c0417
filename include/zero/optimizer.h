/*
 * ZeRO optimizers: parameters, gradients and optimizer states of a model, sharded over the ranks of a group (Rajbhandari et al., "ZeRO:
 * Memory Optimizations Toward Training Trillion Parameter Models", 2020). Key ZERO_KEY_STAGE says what is sharded:
 *   0  nothing: plain data parallel        2  optimizer states and gradients
 *   1  optimizer states                    3  optimizer states, gradients and parameters
 * All stages, bucket sizes, transports, thread counts and SIMD targets give the same bits.
 *
 * Life: create, add_param ..., seal, first values, begin; then for each step param_acquire / param_release around use, grad_acquire,
 * grad_ready, step. All ranks add the same parameters in the same order (seal compares them).
 *
 * Numerics. s = sum over ranks of fp32(g) by the tree of group.h; a = s / divisor in fp32 (ZERO_KEY_DIVISOR), rounded to nearest even into
 * the gradient slot; g = fp32(slot) * c, c = fp32(clip / loss scale), clip = min(1, ZERO_KEY_CLIP_NORM / (norm + 1e-6)) or 1; then clamped
 * where ZERO_KEY_CLIP_VALUE, which excludes the other, says so. Updates are computed in fp32 from the master where there is one, otherwise
 * from the parameter, and rounded into their slots. Each operation is correctly rounded, square
 * roots and quotients too, so bits do not depend on the processor. In the rules p is the parameter,
 * and t the number of the step from 1, or with ZERO_UNFILLED_UNTOUCHED the number of the tensor's
 * own update, as in PyTorch (ZERO_SLOT_UPDATE_COUNT + 1):
 *   sgd      (as torch.optim.SGD; Nesterov form of Sutskever et al., 2013, rearranged)
 *              g += weight_decay * p;  b = momentum * b + (1 - dampening) * g (b = g where t = 1);  nesterov: g += momentum * b, else
 *              g = b;  p -= lr * g.  While momentum is 0, p -= lr * g, and b stays as it is
 *   adam     (Kingma and Ba, "Adam", 2015, algorithm 1)       g += weight_decay * p, then as below without decay
 *   adamw    (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2)
 *              p *= 1 - lr * weight_decay;  m += (1 - beta1) * (g - m);  v = beta2 * v + (1 - beta2) * g^2;
 *              p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
 *   adagrad  (Duchi, Hazan and Singer, 2011; as torch.optim.Adagrad)
 *              g += weight_decay * p;  v += g^2;  p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(v) + epsilon)
 *   lion     (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2)
 *              p *= 1 - lr * weight_decay;  p -= lr * sign(beta1 * m + (1 - beta1) * g);  m = beta2 * m + (1 - beta2) * g
 *   lamb     (You et al., "Large Batch Optimization for Deep Learning", 2020, algorithm 2)   m and v as in adam;
 *              r = m / (1 - beta1^t) / (sqrt(v) / sqrt(1 - beta2^t) + epsilon) + weight_decay * p;  p -= lr * |p| / |r| * r, norms over
 *              the whole tensor although shards cut it, and of m and v as they are stored
 *   muon     (Jordan et al., 2024; as torch.optim.Muon, in fp32)   of two-dimensional tensors, each whole on one rank (ranks share the
 *              cost); m = momentum * m + (1 - momentum) * g, orthogonalised by Newton-Schulz steps. Other tensors, unless frozen,
 *              are ZERO_E_UNSUPPORTED in seal: put them into a parameter set with another algorithm. On devices the library multiplies
 *              itself, in the host's order: cuBLAS would give other bits.
 *
 * Weights (ZERO_DIVISOR_WEIGHTS). A rank whose weight is w contributes w * fp32(g), rounded to
 * fp32. The divisor is fp32(sum of all weights), added up in fp64. 16-bit gradients travel without
 * their weight and are multiplied where they are summed, so that no product is rounded to 16 bits.
 * In micro-steps of kind LOCAL a rank adds w * fp32(g) up in fp32. Of f32 gradients this sum is the
 * contribution. Of 16-bit ones it is the weighted mean: the sum / fp32(w), rounded to the gradient's
 * dtype, with w the sum of the rank's weights. In a world of one, 16-bit means and gradients are a.
 *
 * Precision. Parameters are f32, f16 or bf16, gradients likewise (ZERO_KEY_GRAD_DTYPE). 16-bit parameters keep an fp32 master, 16 bits that
 * complete them to fp32 (bf16), or nothing (ZERO_KEY_MASTER); moments are f32, bf16 or 8-bit with a scale per 256 elements (tensors of
 * fewer than 256 elements keep f32; a second moment above 0 never becomes 0, and what is not finite becomes NaN by itself). Bytes per
 * element with adamw: f32 16; 16-bit with fp32 master 16; bf16 with remainder 14; bf16 with fp32 master and 8-bit moments 10 + 2 / 64. In
 * stages 1 to 3 a rank keeps all of what is not sharded and its cut of the rest.
 *
 * 8-bit parameters (ZERO_KEY_PARAM_DTYPE). Tensors of 256 elements or more are stored, and gathered after a step or in stage 3, as codes
 * (E4M3 of the Open Compute Project's 8-bit formats) with a scale per 256 elements: element = code * scale, scale = largest magnitude of the
 * 256 / 448, code to nearest even; 1 + 1 / 64 bytes per element. They need an fp32 master (also f32 parameters keep one then), from which
 * each update makes them anew. In every stage param_acquire decodes them into a buffer, in the dtype they were registered with, which
 * counts as that of stage 3 does: whole copies to be written before the first begin, read-only later, released before a step or begin.
 * First values become masters as they were written, and codes of them; frozen parameters keep the codes only. Where masters are written,
 * begin makes codes anew but those that stand for their masters to the bit, so that what was read from all slots comes back as it was.
 *
 * One copy (ZERO_KEY_ONE_COPY, stages 1 and 2, all ranks on one host). Whole parameters lie in shared memory of rank 0, once; each rank
 * updates its shard of them in place, and nothing is gathered. param_acquire gives every rank the address of that copy, so nobody may write
 * through it but before begin, and then one rank for all: ZERO_SOURCE_LOCAL and ZERO_SOURCE_ROOT take it as it is. Between the start of a
 * step (or of reduce) and its end parameters change, and while any rank is in init_param, which waits for nobody. Bits are the same as with
 * a copy per rank. 8-bit parameters are decoded into buffers of each rank as always. Other stages are ZERO_E_UNSUPPORTED in create, ranks
 * that cannot reach each other's memory in seal.
 *
 * Devices (ZERO_KEY_DEVICE). With ZERO_TIER_HOST (ZERO_KEY_TIER) states, and what else libzero keeps, stay in the host's memory, where
 * updates are made (Ren et al., "ZeRO-Offload", 2021); what the caller gives to grad_ready and to param_acquire as dst may then lie in
 * memory of that CUDA device or of the host, as CUDA tells from the address. It passes in parts through 4 MiB of pinned memory, so that one
 * part travels while another is worked on (ZERO_MEMORY_STAGING; CUDA provides it). The bits are those of host memory. `stream` is a
 * cudaStream_t of that device, NULL its default stream: memory is read and written after what the stream was given before, gradients may be
 * overwritten when grad_ready returns, and what the stream is given after param_acquire sees the parameter. Addresses that the library
 * hands out are the host's then. Errors also: ZERO_E_MODULE and ZERO_E_DEVICE in create, ZERO_E_DEVICE in seal, ZERO_E_INVALID_ARGUMENT for
 * memory or a stream of another device, ZERO_E_DEVICE_FAILED.
 *
 * On a device (ZERO_TIER_DEVICE, on all ranks). Parameters, gradients and states lie on ZERO_KEY_DEVICE, where sums and updates have the
 * host's bits. Addresses of param_acquire, grad_acquire and views are the device's; data of read and write, module buffers and results the
 * host's. Calls may return before their work has ended, which comes after what `stream` was given before, and before what it is given next:
 * gradients that were given may be overwritten by later work of the stream, and param_release comes when all that uses the parameter was
 * given to the streams it was acquired with, which live until nobody holds it. Groups with ZERO_KEY_NCCL move data over NCCL. In others
 * ranks may share a device, threads use each other's memory in place where devices reach it, and the rest passes through the host; of them,
 * MPI over several hosts or with ZERO_KEY_MPI_SHARED 0 is ZERO_E_UNSUPPORTED in create, as are over 64 ranks and ZERO_KEY_ONE_COPY. verify
 * and steps with checksums wait for the device. A full one is ZERO_E_OUT_OF_MEMORY in seal; its memory counts in stats.h, not for hooks or
 * limits.
 *
 * Collectives. seal, begin, micro_step, reduce, apply, gather, step, read, write, verify and sync_module_buffers, in stage 3 after begin also
 * param_acquire, are collectives over the group, in the same order on every rank. Errors also: ZERO_E_TIMEOUT .. ZERO_E_TRANSPORT.
 * Errors of all functions: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT, ZERO_E_STATE (called in the wrong phase; the text says which call
 * is missing). `stream` must be NULL without ZERO_KEY_DEVICE (ZERO_E_UNSUPPORTED).
 * Threads: one thread per optimizer at a time. While a request but that of param_acquire is under way, statistics, get_f64 and get_i64
 * work; collectives queue behind it, and those without _async then wait for it too; other functions are ZERO_E_STATE.
 */
#ifndef ZERO_OPTIMIZER_H
#define ZERO_OPTIMIZER_H

#include <zero/group.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zero_optimizer zero_optimizer;

/* What is kept per element; scales are kept per 256 elements, and update counts per tensor. */
enum zero_slot {
  ZERO_SLOT_PARAM = 1,          /* the parameter as it is stored: its dtype, or f8_e4m3 (ZERO_KEY_PARAM_DTYPE) */
  ZERO_SLOT_GRAD = 2,
  ZERO_SLOT_MASTER = 3,         /* of 16-bit and 8-bit parameters: f32, or u16 (ZERO_MASTER_REMAINDER) */
  ZERO_SLOT_AVERAGE = 4,        /* f32, with ZERO_KEY_AVERAGE; frozen parameters have none. Evaluation reads it tensor by tensor */
  ZERO_SLOT_PARAM_SCALE = 5,    /* of 8-bit parameters: one f32 per 256 elements of the tensor */
  ZERO_SLOT_UPDATE_COUNT = 8,   /* with ZERO_UNFILLED_UNTOUCHED: steps that updated the tensor; one
                                   i64 per tensor, the same on all ranks */
  ZERO_SLOT_FIRST_MOMENT = 10,  /* sgd, muon: momentum buffer; adam, adamw, lamb, lion: m */
  ZERO_SLOT_SECOND_MOMENT = 11, /* adam, adamw, lamb: v; adagrad: sum of squares */
  ZERO_SLOT_FIRST_SCALE = 14,   /* of 8-bit first moments: one f32 per 256 elements of the tensor */
  ZERO_SLOT_SECOND_SCALE = 15,  /* of 8-bit second moments */
  ZERO_SLOT_CUSTOM = 20         /* algorithm "custom": 20, 21, 22, 23 */
};

/* Where first values come from (zero_optimizer_begin). */
enum zero_source {
  ZERO_SOURCE_LOCAL = 0,  /* every rank wrote the same values into acquired parameters; checked: ZERO_E_REPLICAS_DIFFER names the tensor */
  ZERO_SOURCE_ROOT = 1,   /* rank 0 wrote them into acquired parameters; the others receive them */
  ZERO_SOURCE_SHARDS = 2  /* written by range with zero_optimizer_write; the only way in which no rank of stage 3 holds the whole model */
};

/* How zero_optimizer_init_param makes values. Element i of parameter `id` depends on seed, id and i alone. */
enum zero_initialiser {
  ZERO_INITIALISER_CONSTANT = 0, /* a; b is not used */
  ZERO_INITIALISER_UNIFORM = 1,  /* uniform in [a, b) as fp32; a when a = b */
  ZERO_INITIALISER_NORMAL = 2    /* normal with mean a and deviation b */
};

/* How module buffers are brought in line (zero_optimizer_sync_module_buffers). */
enum zero_sync {
  ZERO_SYNC_NONE = 0,     /* each rank keeps its own */
  ZERO_SYNC_AVERAGE = 1,  /* the mean over ranks, as ZERO_REDUCE_AVG of group.h; f32, f64, f16 and bf16 only */
  ZERO_SYNC_BROADCAST = 2 /* that of rank 0 */
};

/* What zero_optimizer_verify found. */
enum zero_finding {
  ZERO_FINDING_NONE = 0,
  ZERO_FINDING_SHARD = 1,   /* a rank's own part is not what the last step left there */
  ZERO_FINDING_REPLICAS = 2 /* ranks that must hold the same bits do not */
};

/* What becomes of the gradients of a micro-step (zero_optimizer_micro_step). */
enum zero_micro_step {
  ZERO_MICRO_STEP_LAST = 0,  /* reduced, together with what LOCAL micro-steps left, as they become ready; the step follows */
  ZERO_MICRO_STEP_LOCAL = 1, /* added up on this rank, without communication */
  ZERO_MICRO_STEP_REDUCE = 2 /* reduced as they become ready, and added to fp32 sums of the elements that this rank owns; in a world of one
                                as LOCAL */
};

/* The outcome of a step. Only 8-byte fields; fields are appended, never moved. */
typedef struct zero_step_result {
  uint64_t struct_size;   /* [in] sizeof(zero_step_result) as the caller knows it */
  int64_t step;           /* steps applied so far, this one included */
  int64_t skipped;        /* 1 when a non-finite gradient on some rank made all ranks skip this step */
  int64_t skipped_total;  /* steps skipped so far */
  int64_t unfilled_count; /* elements this rank gave no gradient for in this step, in no micro-step and by no name of a tied
                             tensor; they counted as zero */
  double grad_norm;       /* L2 norm of the reduced gradient, without loss scale, when ZERO_KEY_GRAD_NORM is 1 or gradients are clipped by
                             norm, otherwise 0; the same bits on all ranks */
  double loss_scale;      /* what the caller multiplies the loss of the next step by */
  int64_t stop_reason;    /* the largest reason that a rank gave to zero_optimizer_request_stop, the
                             same on all ranks; 0: none did */
} zero_step_result;

/* Sets every field to zero and struct_size to the given size. Errors: ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1. */
ZERO_API int32_t zero_step_result_init(zero_step_result *out, uint64_t struct_size);

/* The outcome of zero_optimizer_verify, the same on all ranks but for the last two fields. Only 8-byte fields; fields are appended, never
   moved. */
typedef struct zero_verify_result {
  uint64_t struct_size;   /* [in] sizeof(zero_verify_result) as the caller knows it */
  int64_t found;          /* a zero_finding; with ZERO_FINDING_NONE the fields up to `count` say nothing */
  int64_t chunk_count;    /* pieces of at most 65536 bytes that are wrong, on all ranks together; what follows is of the first */
  int64_t rank;           /* the rank that holds wrong bits */
  int64_t other_rank;     /* -1; where as many ranks hold one as the other, a rank that differs from `rank`: either is wrong */
  int64_t param;          /* the tensor's id */
  int64_t slot;           /* a zero_slot */
  int64_t offset;         /* the entries of the slot between which all wrong bits of the piece lie */
  int64_t count;
  int64_t replica_nbytes; /* bytes of this rank that were compared with other ranks' */
  int64_t shard_nbytes;   /* bytes of this rank that were compared with what the last step left */
} zero_verify_result;

/* Sets every field to zero and struct_size to the given size. Errors: ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1. */
ZERO_API int32_t zero_verify_result_init(zero_verify_result *out, uint64_t struct_size);

/*
 * Makes an optimizer without parameters.
 *   group   [in]  kept alive by the optimizer
 *   config  [in]  or NULL for defaults (adamw, stage 1)
 *   out     [out] the optimizer, the caller's
 * Errors: ZERO_E_UNSUPPORTED for an unknown algorithm, a hyper-parameter it lacks, a key of single parameters and what ZERO_KEY_ONE_COPY excludes,
 * otherwise ZERO_E_INVALID_ARGUMENT for keys that clash. Not a collective. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_create(zero_group *group, const zero_config *config, zero_optimizer **out);

/*
 * Makes a parameter set: parameters that share an algorithm and hyper-parameters. Set 0 has those of the optimizer's own config. Before
 * seal, the same on all ranks. Not a collective.
 *   config   [in]  or NULL; keys 400 .. 499 and ZERO_KEY_ALGORITHM: what is not set is as in set 0, or the default of another algorithm
 *   out_set  [out] 1, 2 ...: the value of ZERO_KEY_SET for its parameters
 * Errors also: ZERO_E_UNSUPPORTED for another key. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_add_set(zero_optimizer *optimizer, const zero_config *config, int64_t *out_set);

/*
 * Names the ranks over which a model is cut (tensor, pipeline or expert parallel): those that together hold one replica, each with an
 * optimizer over its own group of replicas. Norm, clipping and the decision to skip are then those of the whole model: squares are summed
 * over distinct elements, so parameters that every rank of the model group holds alike must have ZERO_KEY_REPLICATED: their squares then
 * count on its rank 0 alone. Of parameters that only some of its ranks hold alike (norms of one stage of a pipeline over tensor-parallel
 * ranks, an embedding tied over stages) the lowest of these ranks leaves the key at 0, and the others set it. Before seal, on all ranks of
 * both groups; seal and every reduce or step become collectives over the model group too. seal compares clipping, loss scale and what
 * becomes of non-finite gradients over it. zero_group_abort of one of the groups also ends steps that wait in the other one.
 *   group  [in] kept alive by the optimizer; of the ranks of one optimizer's group it has one: others hold the same part of the model, and
 *               are ZERO_E_INVALID_ARGUMENT, here for the optimizer's own group, in seal for any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_set_model_group(zero_optimizer *optimizer, zero_group *group);

/*
 * Registers a tensor. Not a collective.
 *   config  [in]  keys 350 .. 399; NULL = none. Keys of other kinds are ZERO_E_UNSUPPORTED
 *   name    [in]  1 to 255 bytes of UTF-8, unique in the optimizer
 *   dtype   [in]  ZERO_DTYPE_F32, _F16 or _BF16; other dtypes of arrays are ZERO_E_UNSUPPORTED
 *   shape   [in]  ndim extents, each >= 0; may be NULL when ndim is 0 (a scalar)
 *   ndim    [in]  0 .. 16
 *   out_id  [out] 0, 1, 2 ... in order of registration
 * Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_add_param(zero_optimizer *optimizer, const zero_config *config, const char *name, int32_t dtype,
                                          const int64_t *shape, int64_t ndim, int64_t *out_id);

/*
 * Gives the order in which gradients become ready, which is the order of reductions; default: last registered first. Before seal, the same
 * on all ranks. Gradients may still become ready in any order, at the price of memory (stages 2 and 3) and overlap.
 *   ids, count  [in] every parameter exactly once (a parameter added later: ZERO_E_STATE in seal)
 * Not a collective. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_set_order(zero_optimizer *optimizer, const int64_t *ids, int64_t count);

/*
 * Registers a tensor that is no parameter but belongs to the model: statistics of a batch normalisation and the like. Every rank keeps all
 * of it. Before seal, the same on all ranks. Not a collective.
 *   name, shape, ndim  [in]  as in zero_optimizer_add_param; names are unique over parameters and module buffers
 *   dtype              [in]  a zero_dtype that arrays may have
 *   rule               [in]  a zero_sync
 *   out_id             [out] 0, 1, 2 ...: ids of module buffers, counted apart from those of parameters
 * Errors also: ZERO_E_UNSUPPORTED for ZERO_SYNC_AVERAGE with integers. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_add_module_buffer(zero_optimizer *optimizer, const char *name, int32_t dtype, const int64_t *shape,
                                                  int64_t ndim, int32_t rule, int64_t *out_id);

/*
 * Gives the order in which the first step of stage 3 acquires parameters, so that they are gathered ahead (ZERO_KEY_PREFETCH_BYTES, needs
 * ZERO_KEY_OVERLAP); later steps follow the step before. Default: the first step gathers nothing ahead. Before seal, the same on all ranks.
 *   ids, count  [in] any sequence of parameters, for example forward and then backward
 * Not a collective. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_set_gather_order(zero_optimizer *optimizer, const int64_t *ids, int64_t count);

/*
 * Cuts the parameters into shards, agrees with all ranks that they have the same parameters and configuration (ZERO_E_MISMATCH names the
 * first difference) and allocates everything. Before that it adds up what the ranks of each host need: ZERO_E_OUT_OF_MEMORY on all ranks
 * when that is more than the host has (ZERO_KEY_MEMORY_LIMIT), with the figures of all stages. Errors also: ZERO_E_OUT_OF_MEMORY on a rank
 * whose allocation fails, ZERO_E_SYSTEM on one that has too few file descriptors (see
 * zero_group_create_local; ZERO_E_PEER_FAILED on the others; the group stays usable). As long as zero_group_status is ZERO_OK, all ranks may
 * then call seal again, but not with a model group. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_seal(zero_optimizer *optimizer);
ZERO_API int32_t zero_optimizer_seal_async(zero_optimizer *optimizer, zero_request **out);

/*
 * Takes over first values, before the first step and again after parameters were edited. Optimizer states stay as they are.
 *   source  [in] a zero_source, the same on all ranks; after write or init_param of parameters ZERO_SOURCE_SHARDS (others are ZERO_E_STATE)
 * Parameters never written are zero. In stage 3, and of 8-bit parameters in all stages, acquired ones are whole copies until the first
 * begin; later edits go through zero_optimizer_write. Gradients and steps after write or init_param without a begin are ZERO_E_STATE; edits
 * through addresses or views are not seen, and what a step makes of them without a begin is undefined. Masters follow parameters that were
 * edited: in fp32 those that no longer round to their parameter; remainders become 0 where zero_optimizer_write changed an element, unless
 * part of the tensor's master was written since the last begin, and stay where it was edited at an address. Before the first step averages
 * that were not written begin with the fp32 master or, where there is none, the parameter. Errors also: ZERO_E_REPLICAS_DIFFER;
 * ZERO_E_MISMATCH names sources that differ; ZERO_E_STATE while parameters or gradients are acquired. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_begin(zero_optimizer *optimizer, int32_t source);
ZERO_API int32_t zero_optimizer_begin_async(zero_optimizer *optimizer, int32_t source, zero_request **out);

/*
 * Fills a parameter with first values: each rank only what it updates of it, so that no rank holds the whole tensor in stage 3. The same bits
 * at any world size, stage and shard weights. Between seal and begin(ZERO_SOURCE_SHARDS), or later before another begin and the acquires and
 * gradients of a step (ZERO_E_STATE while they are under way); on all ranks with the same arguments. Not a collective.
 *   initialiser  [in] a zero_initialiser
 *   a, b         [in] finite; uniform: a <= b; normal: b >= 0; no value may lie beyond the largest of the parameter's dtype
 *   seed         [in] any; parameters of one seed have values of their own each
 * Values are made in fp64 and rounded to fp32; an fp32 master or remainder keeps them exactly, and the parameter is the rounding of that. A
 * tied parameter is ZERO_E_INVALID_ARGUMENT: initialise the one it is tied to. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_init_param(zero_optimizer *optimizer, int64_t id, int32_t initialiser, double a, double b, int64_t seed);

/*
 * The address of a module buffer, whole on every rank, zero at first, the caller's to write. Valid from seal to release.
 *   id         [in]
 *   out_data   [out] aligned to 64 bytes; NULL for a buffer without elements
 *   out_count  [out] elements. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_module_buffer(zero_optimizer *optimizer, int64_t id, void **out_data, int64_t *out_count);

/* Brings all module buffers in line by their rules. A collective, at any time after seal. Since ZERO_0.1. */
ZERO_API int32_t zero_optimizer_sync_module_buffers(zero_optimizer *optimizer, void *stream);
ZERO_API int32_t zero_optimizer_sync_module_buffers_async(zero_optimizer *optimizer, void *stream, zero_request **out);

/*
 * An address of the whole tensor, valid until param_release. In stages 0 to 2 every rank holds it (8-bit parameters are decoded); in stage
 * 3 it is gathered from the shards: ranks acquire alike, in one order, and again while acquired all or none. The address is then the
 * first one's, which may be the dst of that call.
 *   id              [in]
 *   dst, dst_count  [in]  the caller's memory to fill instead, of exactly the tensor's elements; NULL, 0 = the library's, on its tier
 *   out_data        [out] dst or the library's address (aligned to 64 bytes); NULL for a tensor without elements
 * Elements have the dtype that the parameter was registered with. After begin the memory is read-only, but for who calls begin before the
 * next step. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_param_acquire(zero_optimizer *optimizer, int64_t id, void *dst, int64_t dst_count, void *stream,
                                              void **out_data);
ZERO_API int32_t zero_optimizer_param_acquire_async(zero_optimizer *optimizer, int64_t id, void *dst, int64_t dst_count, void *stream,
                                                    void **out_data, zero_request **out);

/* Ends one param_acquire. Never waits. Errors: ZERO_E_STATE when it is not acquired. Since ZERO_0.1. */
ZERO_API int32_t zero_optimizer_param_release(zero_optimizer *optimizer, int64_t id);

/*
 * An address for the tensor's gradient in the library's memory, valid until the whole tensor was given to grad_ready; what is not given
 * before the step counts as zero, whatever was written there. Elements have the gradient's dtype: ZERO_KEY_GRAD_DTYPE, by default that of
 * the parameter. May wait for reductions under way when the pool of stages 2 and 3 is empty. Of the names of a tied tensor one at a time.
 *   out_data        [out] aligned to 64 bytes; NULL for a tensor without elements
 *   out_accumulate  [out] 0: overwrite (first time in this step); 1: add to what is there
 * Errors also: ZERO_E_STATE when it is ready; ZERO_E_UNSUPPORTED when parts are and have weights; ZERO_E_POOL_LIMIT. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_grad_acquire(zero_optimizer *optimizer, int64_t id, void *stream, void **out_data, int64_t *out_accumulate);

/*
 * Says that elements [offset, offset + count) of the tensor's gradient are final for this step; when the last tensor of a bucket is, its
 * reduction starts. Ranges of one tensor may come one by one, each element once per step. Every name of a tied tensor gives a gradient of
 * its own, and they are added up (with ZERO_DIVISOR_WEIGHTS a second name's must lie in the caller's memory).
 *   grad           [in] NULL: the acquired address was filled; otherwise the caller's count elements of the gradient's dtype, copied and
 *                  free on return (see above)
 *   offset, count  [in] within the tensor
 * Errors also: ZERO_E_STATE: ready before, grad NULL without grad_acquire, or acquired by another name; ZERO_E_POOL_LIMIT; a failed
 * reduction's. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_grad_ready(zero_optimizer *optimizer, int64_t id, const void *grad, int64_t offset, int64_t count,
                                           void *stream);

/*
 * Sets this rank's weight of the step, or after zero_optimizer_micro_step of that micro-step (for example its samples; 0 when it ran out of
 * data: its gradients are then not read). Before their first grad_ready; then 1 again. Only with ZERO_DIVISOR_WEIGHTS. Since ZERO_0.1.
 *   weight  [in] 0, or positive and within fp32, 2^-149 .. 3.4e38; a step whose weights add up to 0, or to more than fp32 has, returns
 *                ZERO_E_INVALID_ARGUMENT and drops its gradients. A product of weight and gradient,
 *                or a sum of products, that fp32 does not hold is an overflow (ZERO_KEY_NONFINITE)
 */
ZERO_API int32_t zero_optimizer_set_weight(zero_optimizer *optimizer, double weight);

/*
 * Begins a micro-step: gradients of a part of the step's batch. Every micro-step of a step is begun with its kind, which may differ from
 * one to the next; a step of one micro-step needs no call. What was not given in a micro-step counts as zero in it. Local sums (kind LOCAL)
 * cost a rank a full gradient, in the gradient's dtype or fp32 (ZERO_KEY_ACCUMULATE_DTYPE), unless stage 0 or 1 keeps one of that dtype
 * already; with ZERO_DIVISOR_WEIGHTS always 4 bytes per element. Sums of shards (kind REDUCE) cost 4 bytes
 * per element that the rank owns. Both are made in the first such micro-step. In a world of one
 * REDUCE is LOCAL. Gradients of all micro-steps are added; only ZERO_DIVISOR_WEIGHTS divides by the
 * weights of all of them. Local sums are rounded to the gradient's dtype before they travel: without
 * weights, f16 sums above 65504 on a rank are an overflow even if their mean over ranks is not.
 *   kind  [in] a zero_micro_step, the same on all ranks
 * A collective. Errors also: ZERO_E_STATE while gradients are acquired, after a micro-step of kind LAST, or for a weight that was set
 * before the first one. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_micro_step(zero_optimizer *optimizer, int32_t kind, void *stream);
ZERO_API int32_t zero_optimizer_micro_step_async(zero_optimizer *optimizer, int32_t kind, void *stream, zero_request **out);

/*
 * One step: reduce, vote, apply, gather. Gradients never made ready count as zero. All ranks apply, or all skip, or all get an error.
 *   out_result  [in, out] struct_size set by the caller; or NULL (with ZERO_TIER_DEVICE a step may then go on: graph.h)
 * In stage 0 ranks that reach one another's memory on one host (not with ZERO_TIER_DEVICE) update a shard each and write it, with its
 * states, into the memory of all; where that fails midway, they may hold states that were written in part. In stage 3, and with 8-bit
 * parameters, nothing is acquired (ZERO_E_STATE). Errors also: ZERO_E_MISMATCH (other hyper-parameters, loss scales, counters, reduce
 * instead of step); "custom", "none": ZERO_E_STATE. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_step(zero_optimizer *optimizer, void *stream, zero_step_result *out_result);
ZERO_API int32_t zero_optimizer_step_async(zero_optimizer *optimizer, void *stream, zero_step_result *out_result, zero_request **out);

/*
 * The parts of a step. reduce: sums the gradients and votes; result as in step. apply: updates this rank's shard, in stage 0 everything, with
 * the built-in algorithm (ZERO_E_STATE for "custom": the caller updates the views instead; nothing when the vote was to skip). gather: makes
 * the new parameters visible and ends the step. reduce and gather are always called, apply at most once between them. With "custom" the
 * gradients in views are neither unscaled nor clipped (c of the head); the caller writes masters and 16-bit parameters both, moves averages,
 * and writes nothing when the vote was to skip.
 *
 * In stages 1 and 2, where ranks cannot write into one another's memory, with ZERO_KEY_OVERLAP and no parameter acquired, step and gather
 * return while new parameters still travel: param_acquire waits for those of its tensor, every other call that needs them for all, and so
 * does zero_optimizer_release. A process that ends without it may leave other ranks without them (ZERO_E_PEER_LOST). Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_reduce(zero_optimizer *optimizer, void *stream, zero_step_result *out_result);
ZERO_API int32_t zero_optimizer_reduce_async(zero_optimizer *optimizer, void *stream, zero_step_result *out_result, zero_request **out);
ZERO_API int32_t zero_optimizer_apply(zero_optimizer *optimizer, void *stream);
ZERO_API int32_t zero_optimizer_apply_async(zero_optimizer *optimizer, void *stream, zero_request **out);
ZERO_API int32_t zero_optimizer_gather(zero_optimizer *optimizer, void *stream);
ZERO_API int32_t zero_optimizer_gather_async(zero_optimizer *optimizer, void *stream, zero_request **out);

/*
 * Asks all ranks to stop, for example before a job is pre-empted:
 *
 *     static zero_optimizer *training;
 *     static void on_term(int number) { zero_optimizer_request_stop(training, number); }
 *     ...
 *     signal(SIGTERM, on_term);
 *     do {
 *         ... gradients of a batch ...
 *         zero_optimizer_step(training, NULL, &result);
 *     } while (result.stop_reason == 0);
 *     zero_optimizer_save(training, folder, NULL);
 *
 * The next step or reduce of this rank carries the request to all ranks, and all of them find the
 * largest reason in the result of that same step, whether it is applied or skipped. That step
 * clears the request; a result that was not asked for is still there in zero_optimizer_result. A
 * larger reason that arrives during the step is reported by the next one. A step that fails
 * reports nothing. The library itself stops nothing.
 *   reason  [in] above 0; what the numbers mean is the program's affair
 * Safe in a signal handler, which may interrupt any call. For that reason errors have no text:
 * zero_last_error_copy keeps what it had. Not a collective.
 * Errors: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT, ZERO_E_FORKED, and ZERO_E_UNSUPPORTED once
 * a step was captured into a CUDA graph (graph.h), because runs of a graph do not look at the
 * host; a capture while a request waits is ZERO_E_UNSUPPORTED too.
 * Threads: any, also while a call or a request is under way. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_request_stop(zero_optimizer *optimizer, int64_t reason);

/*
 * Views of what this rank updates: of each tensor at most one piece, contiguous in every slot. In stage 0 all of it, otherwise the shard.
 * Gradients in them are valid between reduce and gather, parameters and states from begin on, outside step. Who writes parameters through
 * them at other times than between reduce and gather acquires those parameters first, and calls begin afterwards.
 *   index       [in]  0 .. count - 1
 *   slot        [in]  a zero_slot
 *   out_count   [out] number of views (view_count); elements of this view (view)
 *   out_param   [out] the tensor's id
 *   out_offset  [out] first element within the tensor (row-major)
 *   out_data    [out] of ZERO_SLOT_UPDATE_COUNT the tensor's one entry, which is only to be read
 * Errors also: ZERO_E_UNSUPPORTED for a slot the algorithm does not have. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_view_count(const zero_optimizer *optimizer, int64_t *out_count);
ZERO_API int32_t zero_optimizer_view(zero_optimizer *optimizer, int64_t index, int32_t slot, int64_t *out_param, int64_t *out_offset,
                                     int64_t *out_count, void **out_data);

/*
 * Tells whether memory holds what libzero wrote: whether what several ranks keep alike (parameters of stages 0 to 2 and those that stay
 * gathered in stage 3, in stage 0 states too) has the same bits on all of them, and, within the window of ZERO_KEY_VERIFY_EVERY, whether
 * each rank's own part is what it was after the last step. Wrong bits of an own part are alike everywhere after a step, so only the window
 * finds them. What is found is told, not mended, and the optimizer stays usable.
 * The window of ZERO_KEY_VERIFY_EVERY = K: after step n*K - 1 (for n*K = 1 after begin) each rank takes checksums of what it updates
 * (parameters, masters, moments, scales, averages; in stage 0 all of them); step n*K compares before it changes anything, and a difference
 * makes it fail with ZERO_E_CORRUPT on all ranks. write, init_param and begin take the checksums of what they write anew; values edited in
 * that window through addresses or views are differences, unless begin follows.
 *   out_result  [in, out] struct_size set by the caller
 * A collective between steps. Errors also: ZERO_E_STATE when parameters were written since the last begin. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_verify(zero_optimizer *optimizer, void *stream, zero_verify_result *out_result);
ZERO_API int32_t zero_optimizer_verify_async(zero_optimizer *optimizer, void *stream, zero_verify_result *out_result, zero_request **out);

/*
 * Gives the handle back; NULL is allowed. Not a collective. Addresses handed out become invalid. Waits for parameters that are being gathered
 * ahead (ZERO_KEY_PREFETCH_BYTES): until the slowest rank has made the same param_acquire, until the deadline. Threads: any. Since ZERO_0.1.
 */
ZERO_API void zero_optimizer_release(zero_optimizer *optimizer);

#ifdef __cplusplus
}
#endif

#endif
