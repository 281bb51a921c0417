/**
 * @file
 * Process groups: N ranks that call the same collectives in the same order.
 *
 * @code
 * zero_group *group;
 * float sums[4], values[4] = {1, 2, 3, 4};
 * int64_t rank;
 * zero_group_create_env(NULL, &group);             // the ranks of the launcher, or a world of one
 * zero_group_rank(group, &rank);
 * zero_group_all_reduce(group, values, 4, sums, 4, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, NULL);
 * zero_group_broadcast(group, values, 4, ZERO_DTYPE_F32, 0, NULL);
 * zero_group_barrier(group);
 * zero_group_release(group);
 * @endcode
 *
 * **Order and agreement.** Each collective carries a fingerprint: sequence number, operation,
 * dtype, count, reduce op and root. If ranks differ, every rank returns ZERO_E_MISMATCH with both
 * calls named, and neither call has changed user memory.
 *
 * **Sums.** Every transport adds along one tree over ranks:
 *
 * @verbatim
 * T(lo, hi) = T(lo, mid) + T(mid, hi), mid = lo + the largest power of two below hi - lo
 * @endverbatim
 *
 * The same inputs give the same bits, whatever the transport.
 * - f16, bf16 and f32 are added in fp32, f64 in fp64. The result is rounded to the element type
 *   once, to nearest even.
 * - Integers add and multiply in 64 bits and wrap. An integer average is the 64-bit sum divided by
 *   N, truncated towards zero.
 * - min and max return NaN if any input is NaN. They treat -0 as less than 0.
 *
 * **Failure.** A collective or message waits at most for the group's deadline. A call of a buffer
 * or an optimizer may consist of several. After ZERO_E_TIMEOUT .. ZERO_E_TRANSPORT the group is
 * poisoned: every living rank returns the error, and later calls return it again with its cause.
 *
 * A dead rank is detected as follows:
 * - In general: immediately; after a crash, once its core dump is written.
 * - Over MPI between hosts: at the deadline. The launcher, as a rule, ends all ranks before.
 * - Between hosts without MPI: immediately, unless processes that the rank forked live on. They
 *   hold its sockets open until they end or run another program (exec); until then the rank is
 *   detected at the deadline.
 *
 * A thread that gives up calls zero_group_abort() or releases its group. Until then it counts as a
 * rank that is late.
 *
 * Over shared memory, surviving ranks can create a new, smaller group in the same process and
 * continue from a checkpoint. The program determines the survivors and their new ranks itself; an
 * error text names one rank that ended.
 *
 * **Threads.** The contract is one collective at a time per group. Calls from several threads run
 * one after another in their order of arrival, so all ranks must issue them in the same order.
 * Different groups are independent.
 *
 * **Devices (ZERO_KEY_NCCL and ZERO_KEY_DEVICE, on all ranks).** Memory given to a call may then be
 * on that CUDA device or on the host, independently on each rank and for each argument. Data on a
 * device moves over NCCL, and all other data as in a group without the key. The library makes the
 * sums itself, so results have the same bits.
 *
 * - The memory of the sender determines how a message of send and recv moves. The first message
 *   over NCCL from one rank to another creates a communicator, which later ones in that direction
 *   use.
 * - `stream` is a cudaStream_t of the device; NULL is its default stream. The call runs after all
 *   work the stream was given before. On return, or once the request has ended, every stream may
 *   use the results.
 * - Ranks meet in a call, and a CUDA graph cannot repeat that. A stream that is being captured is
 *   ZERO_E_STATE, and the capture continues without the call.
 * - At most 64 ranks. NCCL decides whether several ranks may share a device. Split groups reach the
 *   device too.
 * - Creation also fails with ZERO_E_MODULE, ZERO_E_DEVICE, ZERO_E_OUT_OF_MEMORY or ZERO_E_TRANSPORT
 *   (with the text of NCCL). Other ranks then return ZERO_E_PEER_FAILED.
 * - Neither NCCL nor a stream has a deadline. If a call fails inside NCCL, or before `stream` has
 *   reached it, memory may still be in use. The call waits a quarter of a second for the use to
 *   end. If it has not ended, the library frees nothing on that device until it has;
 *   zero_group_quiet() reports the end.
 *
 * **Shares.** reduce_scatter, all_gather, gather and scatter cut a whole of `count` elements over N
 * ranks. Rank r owns elements [r * count / N, (r + 1) * count / N) in integer arithmetic. Any count
 * works, also one below N.
 */
#ifndef ZERO_GROUP_H
#define ZERO_GROUP_H

#include <zero/config.h>
#include <zero/dtype.h>
#include <zero/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Reduce operations over ranks (the head of this file states their arithmetic). */
enum zero_reduce {
  ZERO_REDUCE_SUM = 1, /**< The sum. */
  ZERO_REDUCE_AVG = 2, /**< The sum divided by the number of ranks. */
  ZERO_REDUCE_MIN = 3, /**< The least value; NaN if any input is NaN. */
  ZERO_REDUCE_MAX = 4, /**< The greatest value; NaN if any input is NaN. */
  ZERO_REDUCE_PROD = 5 /**< The product. */
};

/** Operations, as statistics and texts name them. */
enum zero_operation {
  ZERO_OPERATION_BARRIER = 1,        /**< zero_group_barrier() */
  ZERO_OPERATION_BROADCAST = 2,      /**< zero_group_broadcast() */
  ZERO_OPERATION_ALL_REDUCE = 3,     /**< zero_group_all_reduce() */
  ZERO_OPERATION_REDUCE_SCATTER = 4, /**< zero_group_reduce_scatter() */
  ZERO_OPERATION_ALL_GATHER = 5,     /**< zero_group_all_gather() */
  ZERO_OPERATION_REDUCE = 6,         /**< zero_group_reduce() */
  ZERO_OPERATION_GATHER = 7,         /**< zero_group_gather() */
  ZERO_OPERATION_SCATTER = 8,        /**< zero_group_scatter() */
  ZERO_OPERATION_ALL_TO_ALL = 9,     /**< zero_group_all_to_all() */
  ZERO_OPERATION_SEND = 10,          /**< zero_group_send() */
  ZERO_OPERATION_RECV = 11           /**< zero_group_recv() */
};

/** The communicator handle that stands for MPI_COMM_WORLD in zero_group_create_mpi(). */
#define ZERO_MPI_WORLD (-1)

/**
 * Creates a group of ranks on this host: threads of one process, processes, or both. The ranks meet
 * by name. Nothing of the name remains once all have met, or after a kill. A process that is forked
 * while they meet keeps the name taken until it ends or runs another program.
 *
 * Waits for all ranks, at most ZERO_KEY_RENDEZVOUS_MS.
 *
 * File descriptors:
 * - If all ranks are threads of one process, the process needs 3 for each of them while they meet,
 *   and none afterwards. This includes groups split from it, buffers and optimizers.
 * - If there are other processes, a process needs 2 * size + 2 for each of its ranks, for a moment.
 *   It needs them while ranks meet, are split or share memory.
 * - It keeps one for each other process of the group, one for each buffer, and up to 3 for each
 *   optimizer of its ranks.
 * - If the limit of the process (RLIMIT_NOFILE, ulimit -n) is lower, the call returns ZERO_E_SYSTEM
 *   and the text names the limit. The library never raises it.
 *
 * @param[in]  name    1 to 64 bytes of UTF-8. Ranks of the same user and network namespace that
 *                     give the same name meet. May be NULL if size is 1.
 * @param[in]  rank    0 .. size - 1, each exactly once.
 * @param[in]  size    1 .. 1024, the same on all ranks.
 * @param[in]  config  The configuration, or NULL for defaults.
 * @param[out] out     The group, owned by the caller.
 * @return ZERO_OK. ZERO_E_RENDEZVOUS names missing, doubled or disagreeing ranks.
 *         ZERO_E_INVALID_ARGUMENT, ZERO_E_BAD_HANDLE, ZERO_E_OUT_OF_MEMORY, ZERO_E_SYSTEM. Threads:
 *         any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_create_local(const char *name, int64_t rank, int64_t size,
                                         const zero_config *config, zero_group **out);
/** Begins zero_group_create_local(); zero_request_group() returns the group. @since ZERO_0.1 */
ZERO_API int32_t zero_group_create_local_async(const char *name, int64_t rank, int64_t size,
                                               const zero_config *config, zero_request **out);

/**
 * Creates a group of the ranks of an MPI communicator. It works on its own duplicate of the
 * communicator.
 *
 * **Life of MPI.** The library initialises MPI if nobody has. Then releasing the last group over
 * MPI, or the last one split from such a group, finalises MPI, and later creation is an error. That
 * release first informs ranks that wait for this one that it has left. Then it waits for the
 * releases of the other ranks (at most ZERO_KEY_RENDEZVOUS_MS). A process that ends with status 0
 * (exit, or a return from main) releases such groups at its end. A process that ends with another
 * status leaves the others to the launcher.
 *
 * After a group has failed, messages may be in flight that no rank receives any more. The library
 * then leaves MPI alone, and MPI_Finalize may hang or end the process. Programs that end there call
 * MPI_Abort or exit.
 *
 * **Slurm.** Open MPI ends a process in a job step without PMIx (srun without --mpi=pmix). The
 * library therefore returns ZERO_E_LAUNCHER there before it initialises MPI. It does not check this
 * if the program has initialised MPI.
 *
 * **Hosts.** Ranks of one host meet through MPI, and then move data through shared memory, as in a
 * local group (ZERO_KEY_MPI_SHARED). MPI carries the data that crosses hosts. Ranks share a host if
 * they share a kernel, host name and network namespace, or if the variable ZERO_HOST_ID has one
 * value for them. Only ranks that can share memory may have the same value; otherwise creation
 * returns ZERO_E_RENDEZVOUS.
 *
 * **Hierarchy.** It applies if the world is a whole number of runs of 2, 4, 8, ... ranks that each
 * share a host. Then reduce_scatter, all_reduce and all_gather of more than 1 KiB per rank work
 * inside such runs first; averages of integers do not. A run sends its sums, in fp32 for 16-bit
 * floats, instead of the contributions of its ranks. Gathered data enters a run once. Results have
 * the same bits either way.
 *
 * @param[in]  comm    A Fortran handle (MPI_Comm_c2f), or ZERO_MPI_WORLD.
 * @param[in]  config  The configuration, or NULL.
 * @param[out] out     The group, owned by the caller.
 * @return ZERO_OK. ZERO_E_MODULE names the package to install. ZERO_E_LAUNCHER if the world
 *         disagrees with the launcher's variables, or in a job step without PMIx.
 *         ZERO_E_RENDEZVOUS, ZERO_E_TRANSPORT, ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT. Threads:
 *         one at a time per process.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_create_mpi(int64_t comm, const zero_config *config, zero_group **out);
/** Begins zero_group_create_mpi(); zero_request_group() returns the group. @since ZERO_0.1 */
ZERO_API int32_t zero_group_create_mpi_async(int64_t comm, const zero_config *config,
                                             zero_request **out);

/**
 * Creates a group of ranks on any hosts, each with a CUDA device, without MPI. The ranks meet over
 * TCP at rank 0, by an id that the program carries to all of them by any means. Waits for all
 * ranks, at most ZERO_KEY_RENDEZVOUS_MS, and for the system to resolve the host name.
 *
 * zero_group_unique_id() returns the id in the process of rank 0. If the host of rank 0 and a free
 * port are known beforehand, it may also be a text "host:port/token" of the program's own.
 *
 * - The group behaves as if ZERO_KEY_NCCL were 1: memory of devices moves over NCCL. Host memory of
 *   more than 4 KiB moves over NCCL too, by way of the device.
 * - If all ranks share a host, they form a local group.
 * - Between hosts a socket stays open for each pair of ranks. Over it they compare calls, exchange
 *   flags, and detect that one ended. Besides the port of rank 0, ranks of different hosts connect
 *   to one another at ports that the system chooses.
 * - This traffic is neither encrypted nor protected against an attacker, as with NCCL itself. The
 *   network between the hosts must be trusted.
 *
 * @param[in]  id      "host:port/token", at most 255 bytes, the same on all ranks. The host is a
 *                     DNS name, an IPv4 address, or an IPv6 address in brackets. The port is 1 ..
 *                     65535. The token has letters, digits and ._-, and differs for each group that
 *                     is created at the same time.
 * @param[in]  rank    0 .. size - 1, each exactly once.
 * @param[in]  size    1 .. 64, the same on all ranks.
 * @param[in]  config  Names the device (ZERO_KEY_DEVICE).
 * @param[out] out     The group, owned by the caller.
 * @return ZERO_OK. The errors of zero_group_create_local(), and those of groups with devices (head
 *         of this file). Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_create_nccl(const char *id, int64_t rank, int64_t size,
                                        const zero_config *config, zero_group **out);
/** Begins zero_group_create_nccl(); zero_request_group() returns the group. @since ZERO_0.1 */
ZERO_API int32_t zero_group_create_nccl_async(const char *id, int64_t rank, int64_t size,
                                              const zero_config *config, zero_request **out);

/**
 * Creates an id for zero_group_create_nccl(). This process listens from now on, and rank 0 must
 * then be created in it. Each id serves once.
 *
 * @param[in]  config      ZERO_KEY_RENDEZVOUS_HOST and ZERO_KEY_RENDEZVOUS_PORT are read; or NULL.
 * @param[out] out         Receives the id, its NUL included; NULL if out_nbytes is 0, and then
 *                         nothing listens.
 * @param[in]  out_nbytes  Bytes at out: 0, or at least 256.
 * @param[out] out_needed  Bytes that were written; 256 if out_nbytes is 0; may be NULL.
 * @return ZERO_OK. ZERO_E_SYSTEM, for example for a port that is taken. ZERO_E_INVALID_ARGUMENT,
 *         ZERO_E_BAD_HANDLE. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_unique_id(const zero_config *config, char *out, int64_t out_nbytes,
                                      int64_t *out_needed);

/**
 * Creates the group that the launcher's variables describe. A world above 1 whose transport is not
 * there is an error, never N worlds of one.
 *
 * The first of these that applies decides:
 *
 * -# torchrun (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, and TORCHELASTIC_RUN_ID if there are
 *    variables of the following launchers as well). On one host: a local group of processes. On
 *    several hosts, with ZERO_KEY_NCCL: a group as of zero_group_create_nccl(). Rank 0 listens on
 *    port MASTER_PORT + 1 of MASTER_ADDR. Ray sets these variables too.
 * -# Open MPI or MPICH (mpirun), or Slurm with PMIx (srun --mpi=pmix): an MPI group.
 * -# A job step of Slurm (SLURM_STEP_NUM_TASKS). On one node: a local group of processes. On
 *    several nodes, with ZERO_KEY_NCCL: a group as of zero_group_create_nccl(). Rank 0 listens on
 *    the first node of SLURM_STEP_NODELIST, at a port from 61000 to 64999 that follows from the
 *    numbers of job and step. Without that key: an MPI group, if this MPI finds the ranks.
 * -# A pod of Kubernetes without torchrun: a rank per pod, with ZERO_KEY_NCCL. Either RANK and
 *    WORLD_SIZE count pods, as in a PyTorchJob, or PET_NODE_RANK and PET_NNODES do. The variable
 *    PET_NPROC_PER_NODE must be 1 or not set; beside RANK it may be "auto".
 * -# None of them: a world of one. A batch script and a shell of salloc are no job steps.
 *
 * ZERO_KEY_RENDEZVOUS_PORT replaces the port at which rank 0 listens.
 *
 * @param[in]  config  The configuration, or NULL.
 * @param[out] out     The group, owned by the caller.
 * @return ZERO_OK. The text of ZERO_E_LAUNCHER names the variables that were found and the launch
 *         to use. Otherwise the errors of the functions above. Threads: one at a time per process.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_create_env(const zero_config *config, zero_group **out);
/** Begins zero_group_create_env(); zero_request_group() returns the group. @since ZERO_0.1 */
ZERO_API int32_t zero_group_create_env_async(const zero_config *config, zero_request **out);

/**
 * Returns the name of the variable in which a launcher states how many ranks it started, for
 * example "OMPI_COMM_WORLD_SIZE". The text is empty if no launcher started this process.
 *
 * The variables are read as by zero_group_create_env(), and nothing is started. A program that
 * starts ranks of its own without a launcher calls this first, and may fork afterwards.
 *
 * @param[out] out         Receives the text, always terminated, cut to fit; NULL if out_nbytes is
 *                         0.
 * @param[in]  out_nbytes  Bytes at out, >= 0; 64 hold every name.
 * @param[out] out_needed  Bytes that the whole text needs, its NUL included; may be NULL.
 * @return ZERO_OK. ZERO_E_LAUNCHER as zero_group_create_env(). ZERO_E_INVALID_ARGUMENT. Threads:
 *         any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_launcher(char *out, int64_t out_nbytes, int64_t *out_needed);

/**
 * Splits a group into disjoint groups. Ranks with the same color form one group, ordered by key,
 * then by parent rank. Parent and children may be used at the same time. A collective over the
 * parent.
 *
 * @param[in]  group  The parent.
 * @param[in]  color  >= 0, or negative to be in no group.
 * @param[in]  key    The order within the new group.
 * @param[out] out    The new group, owned by the caller; NULL for a negative color.
 * @return ZERO_OK, or an error of collectives or of zero_group_create_local(). Threads: as
 *         collectives.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_split(zero_group *group, int64_t color, int64_t key, zero_group **out);
/** Begins zero_group_split(); zero_request_group() returns the group. @since ZERO_0.1 */
ZERO_API int32_t zero_group_split_async(zero_group *group, int64_t color, int64_t key,
                                        zero_request **out);

/**
 * Returns this rank.
 *
 * @param[in]  group  The group.
 * @param[out] out    0 .. size - 1.
 * @return ZERO_OK, ZERO_E_BAD_HANDLE or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_rank(const zero_group *group, int64_t *out);
/** Returns the number of ranks. Errors and threads as zero_group_rank(). @since ZERO_0.1 */
ZERO_API int32_t zero_group_size(const zero_group *group, int64_t *out);
/**
 * Returns this rank's number among the ranks of the group on this host. Errors and threads as
 * zero_group_rank().
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_local_rank(const zero_group *group, int64_t *out);
/**
 * Returns the number of ranks of the group on this host. Errors and threads as zero_group_rank().
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_local_size(const zero_group *group, int64_t *out);
/** Returns the number of hosts. Errors and threads as zero_group_rank(). @since ZERO_0.1 */
ZERO_API int32_t zero_group_host_count(const zero_group *group, int64_t *out);

/**
 * Returns the part of `count` elements that a rank owns in reduce_scatter, all_gather, gather and
 * scatter.
 *
 * @param[in]  group       The group.
 * @param[in]  count       Elements of the whole, >= 0.
 * @param[in]  rank        0 .. size - 1.
 * @param[out] out_offset  The first element.
 * @param[out] out_count   The number of elements.
 * @return ZERO_OK, ZERO_E_BAD_HANDLE or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_share(const zero_group *group, int64_t count, int64_t rank,
                                  int64_t *out_offset, int64_t *out_count);

/**
 * Returns ZERO_OK while the group works, and afterwards the error that poisoned it. The call makes
 * progress on outstanding requests. Threads: any.
 *
 * @param[in] group  The group.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_status(zero_group *group);

/**
 * Poisons the group, the groups split from it and the optimizers created from it, on every rank,
 * with ZERO_E_ABORTED. Does not wait for other ranks.
 *
 * Calls that are waiting return at once. In a child group whose calls never block, the error is
 * reported within the next 16 calls. If the group had failed before, only groups that contain this
 * rank are poisoned.
 *
 * @param[in] group   The group.
 * @param[in] reason  Text for the error of the other ranks, or NULL.
 * @return ZERO_OK or ZERO_E_BAD_HANDLE. Threads: any, also while other threads wait in the group.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_abort(zero_group *group, const char *reason);

/**
 * Sets the deadline of calls that begin later on this rank, also in optimizers created from the
 * group. Groups already split from it keep theirs. A call that was made before, but is queued
 * behind other calls in the group, begins later.
 *
 * @param[in] group        The group.
 * @param[in] deadline_ms  Milliseconds, 1 .. 2^40.
 * @return ZERO_OK, ZERO_E_BAD_HANDLE or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_set_deadline(zero_group *group, int64_t deadline_ms);

/**
 * Reports whether, after a failure, memory that was given to calls belongs to the caller again.
 *
 * Without ZERO_KEY_NCCL the result is always 1. With it the result is 0 in two cases:
 * - NCCL, in this process, may still read or write memory of a call that failed.
 * - The stream given to such a call has not reached it.
 *
 * While it is 0, the memory must not be freed or used.
 *
 * @param[in]  group  The group.
 * @param[out] out    1 or 0.
 * @return ZERO_OK, ZERO_E_BAD_HANDLE or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_quiet(const zero_group *group, int64_t *out);

/**
 * @name Collectives
 *
 * Arguments common to all collectives:
 * - send, send_count [in]: the contribution of this rank, in elements of dtype; send may be NULL if
 *   send_count is 0.
 * - recv, recv_count [out]: the result for this rank; recv may be NULL if recv_count is 0.
 * - dtype, op [in]: a zero_dtype, a zero_reduce.
 * - root [in]: 0 .. size - 1, the same on all ranks.
 * - stream [in]: NULL, except in groups that reach devices.
 *
 * In place. Any overlap other than these is an error:
 * - all_reduce, reduce: recv may equal send.
 * - reduce_scatter: recv may be this rank's own part of send.
 * - all_gather, gather: send may be this rank's own part of recv.
 * - scatter: recv may be root's own part of send.
 *
 * Errors common to all collectives:
 * - ZERO_E_BAD_HANDLE; ZERO_E_INVALID_ARGUMENT; ZERO_E_UNSUPPORTED for a stream; ZERO_E_STATE for a
 *   stream that is being captured. Then the group is as before, but the other ranks still wait for
 *   this one.
 * - ZERO_E_TIMEOUT .. ZERO_E_TRANSPORT, after which the group is poisoned, and the errors that
 *   status.h lists for collectives that have started. After such an error recv may be partly
 *   written.
 * - After ZERO_E_MISMATCH recv is not written if the text names this very call. A rank that is
 *   still ending a call may receive the error of ranks that are one call ahead.
 *
 * Threads: see the head of this file. @{
 */

/** recv = op over ranks of send; send_count == recv_count. @since ZERO_0.1 */
ZERO_API int32_t zero_group_all_reduce(zero_group *group, const void *send, int64_t send_count,
                                       void *recv, int64_t recv_count, int32_t dtype, int32_t op,
                                       void *stream);
/** Begins zero_group_all_reduce() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_group_all_reduce_async(zero_group *group, const void *send,
                                             int64_t send_count, void *recv, int64_t recv_count,
                                             int32_t dtype, int32_t op, void *stream,
                                             zero_request **out);

/**
 * recv = this rank's share of (op over ranks of send); recv_count is the share of send_count.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_reduce_scatter(zero_group *group, const void *send, int64_t send_count,
                                           void *recv, int64_t recv_count, int32_t dtype,
                                           int32_t op, void *stream);
/** Begins zero_group_reduce_scatter() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_group_reduce_scatter_async(zero_group *group, const void *send,
                                                 int64_t send_count, void *recv, int64_t recv_count,
                                                 int32_t dtype, int32_t op, void *stream,
                                                 zero_request **out);

/**
 * recv = the shares of the ranks one after another; send_count is this rank's share of recv_count.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_all_gather(zero_group *group, const void *send, int64_t send_count,
                                       void *recv, int64_t recv_count, int32_t dtype, void *stream);
/** Begins zero_group_all_gather() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_group_all_gather_async(zero_group *group, const void *send,
                                             int64_t send_count, void *recv, int64_t recv_count,
                                             int32_t dtype, void *stream, zero_request **out);

/** Copies data of root to data of every rank. @since ZERO_0.1 */
ZERO_API int32_t zero_group_broadcast(zero_group *group, void *data, int64_t count, int32_t dtype,
                                      int64_t root, void *stream);
/** Begins zero_group_broadcast() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_group_broadcast_async(zero_group *group, void *data, int64_t count,
                                            int32_t dtype, int64_t root, void *stream,
                                            zero_request **out);

/** recv on root = op over ranks of send; elsewhere recv_count is 0. @since ZERO_0.1 */
ZERO_API int32_t zero_group_reduce(zero_group *group, const void *send, int64_t send_count,
                                   void *recv, int64_t recv_count, int32_t dtype, int32_t op,
                                   int64_t root, void *stream);
/** Begins zero_group_reduce() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_group_reduce_async(zero_group *group, const void *send, int64_t send_count,
                                         void *recv, int64_t recv_count, int32_t dtype, int32_t op,
                                         int64_t root, void *stream, zero_request **out);

/**
 * recv on root = the shares of the ranks one after another; elsewhere recv_count is 0. send_count
 * is this rank's share of `total`.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_gather(zero_group *group, const void *send, int64_t send_count,
                                   void *recv, int64_t recv_count, int64_t total, int32_t dtype,
                                   int64_t root, void *stream);
/** Begins zero_group_gather() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_group_gather_async(zero_group *group, const void *send, int64_t send_count,
                                         void *recv, int64_t recv_count, int64_t total,
                                         int32_t dtype, int64_t root, void *stream,
                                         zero_request **out);

/**
 * recv = this rank's share of the `total` elements at send on root; elsewhere send_count is 0.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_scatter(zero_group *group, const void *send, int64_t send_count,
                                    void *recv, int64_t recv_count, int64_t total, int32_t dtype,
                                    int64_t root, void *stream);
/** Begins zero_group_scatter() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_group_scatter_async(zero_group *group, const void *send, int64_t send_count,
                                          void *recv, int64_t recv_count, int64_t total,
                                          int32_t dtype, int64_t root, void *stream,
                                          zero_request **out);

/**
 * Block r of recv = block i of the send of rank r, where i is this rank. send_count == recv_count,
 * a multiple of the group's size.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_all_to_all(zero_group *group, const void *send, int64_t send_count,
                                       void *recv, int64_t recv_count, int32_t dtype, void *stream);
/** Begins zero_group_all_to_all() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_group_all_to_all_async(zero_group *group, const void *send,
                                             int64_t send_count, void *recv, int64_t recv_count,
                                             int32_t dtype, void *stream, zero_request **out);

/**
 * Sends a message to another rank. It matches the recv of that rank with the same count and dtype,
 * and messages between two ranks keep their order.
 *
 * A send returns when its memory is free again, which may be only when the peer receives. Sends,
 * receives and collectives do not wait for one another. Two ranks that exchange messages therefore
 * begin their sends or receives with _async.
 *
 * @param[in] group       The group.
 * @param[in] send        The elements; may be NULL if send_count is 0.
 * @param[in] send_count  The number of elements.
 * @param[in] dtype       A zero_dtype.
 * @param[in] peer        Another rank, not this one.
 * @param[in] stream      NULL, except in groups that reach devices.
 * @return ZERO_OK or an error of collectives. Also ZERO_E_STATE, with the group as before, on a
 *         thread from which MPI does not reach the peer. That is so if MPI did not grant
 *         MPI_THREAD_MULTIPLE and another thread created the first group over MPI. Threads: as
 *         collectives.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_send(zero_group *group, const void *send, int64_t send_count,
                                 int32_t dtype, int64_t peer, void *stream);
/** Begins zero_group_send() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_group_send_async(zero_group *group, const void *send, int64_t send_count,
                                       int32_t dtype, int64_t peer, void *stream,
                                       zero_request **out);
/**
 * Receives a message of another rank. Rules and errors are those of zero_group_send().
 *
 * @param[in]  group       The group.
 * @param[out] recv        Receives the elements; may be NULL if recv_count is 0.
 * @param[in]  recv_count  The number of elements.
 * @param[in]  dtype       A zero_dtype.
 * @param[in]  peer        Another rank, not this one.
 * @param[in]  stream      NULL, except in groups that reach devices.
 * @return ZERO_OK or an error of zero_group_send().
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_recv(zero_group *group, void *recv, int64_t recv_count, int32_t dtype,
                                 int64_t peer, void *stream);
/** Begins zero_group_recv() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_group_recv_async(zero_group *group, void *recv, int64_t recv_count,
                                       int32_t dtype, int64_t peer, void *stream,
                                       zero_request **out);

/** Returns when every rank has called it. @since ZERO_0.1 */
ZERO_API int32_t zero_group_barrier(zero_group *group);
/** Begins zero_group_barrier() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_group_barrier_async(zero_group *group, zero_request **out);

/**
 * Divides the items of the next step over ranks of unequal speed, so that all need the same time.
 * Items are for example samples.
 *
 * @code
 * int64_t share = 0;
 * double seconds = 0;
 * for (;;) {                                   // 4096 samples per step, 32 per micro-step
 *   zero_group_balance(group, seconds, share, 4096, 32, &share);
 *   double begin = now();
 *   if (share == 0) zero_optimizer_set_weight(optimizer, 0);
 *   for (int64_t i = 0; i < share; i += 32) {  // with ZERO_DIVISOR_WEIGHTS
 *     zero_optimizer_micro_step(optimizer, ZERO_MICRO_STEP_LOCAL, NULL);
 *     zero_optimizer_set_weight(optimizer, 32);
 *     ...                                      // gradients of 32 samples
 *   }
 *   seconds = now() - begin;                   // without the time that ranks wait for one another
 *   zero_optimizer_step(optimizer, NULL, NULL);
 * }
 * @endcode
 *
 * Weights make the gradient the exact mean over all samples, however they are divided.
 *
 * The rule (as LB-BSP: Chen et al., 2020) uses integers, so all ranks compute the same shares:
 * - A rank's speed is items divided by seconds. A rank without a measurement counts as the mean of
 *   the others. If no rank has one, shares are even.
 * - Shares follow speeds. They are rounded to units by largest remainder, and equal remainders
 *   favour lower ranks.
 * - At most an eighth of the items moves between ranks in one call, before rounding, so that one
 *   slow moment changes little.
 * - If there are enough units, each rank receives one at least.
 *
 * @param[in]  group    The group.
 * @param[in]  seconds  The time that this rank needed for its newest items: 0 .. 1e9; 0 = none was
 *                      measured.
 * @param[in]  items    The number of those items, 0 .. 2^40.
 * @param[in]  total    Items to divide, 0 .. 2^40, the same on all ranks: a multiple of unit.
 * @param[in]  unit     1 .. 2^40, the same on all ranks. Shares are multiples of it.
 * @param[out] out      This rank's share. Shares of all ranks add up to total.
 * @return ZERO_OK or an error of collectives. ZERO_E_MISMATCH if ranks differ in total or unit.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_balance(zero_group *group, double seconds, int64_t items, int64_t total,
                                    int64_t unit, int64_t *out);
/**
 * Begins zero_group_balance() and returns a request in `out`. out_share must outlive the request.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_group_balance_async(zero_group *group, double seconds, int64_t items,
                                          int64_t total, int64_t unit, int64_t *out_share,
                                          zero_request **out);

/** @} */

/**
 * Releases the handle; NULL is allowed. Buffers, optimizers and requests created from the group
 * keep it alive. When the last holder on this rank has released it, ranks that still wait in the
 * group return ZERO_E_PEER_LEFT. Threads: any.
 *
 * @param[in] group  The group, or NULL.
 * @since ZERO_0.1
 */
ZERO_API void zero_group_release(zero_group *group);

#ifdef __cplusplus
}
#endif

#endif
