/*
 * Process groups: N ranks that call the same collectives in the same order.
 *
 * Order and agreement. Each collective carries a fingerprint (sequence number, operation, dtype, count, reduce op, root). When ranks
 * differ, every rank gets ZERO_E_MISMATCH with both calls named, and neither of them has changed user memory.
 *
 * Sums follow one tree over ranks on every transport: T(lo, hi) = T(lo, mid) + T(mid, hi), mid = lo + the largest power of two below
 * hi - lo. f16, bf16 and f32 are added in fp32, f64 in fp64, and rounded to the element type once (to nearest even). Integers add and
 * multiply in 64 bits and wrap; an integer average is the 64-bit sum divided by N, cut towards zero. min and max return NaN when any
 * input is NaN; to them -0 is less than 0. The same inputs give the same bits whatever the transport.
 *
 * Failure. A collective or message waits at most for the group's deadline; a call of a buffer or an optimizer may be several of them. After
 * ZERO_E_TIMEOUT .. ZERO_E_TRANSPORT the group is poisoned: every living rank gets the error, later calls return it again with its cause. A
 * rank that ends is noticed at once (that crashes: once its core dump is written); but over MPI between hosts, whose launcher as a rule
 * ends all ranks then, at the deadline; and between hosts without MPI, processes that it forked hold its sockets open until they end or
 * run another program (exec): if they live on, it is noticed at the deadline. A thread that gives up says so by zero_group_abort, or
 * releases its group: until then it is a rank that is late. Over shared memory those that live can make a new, smaller group in the same
 * process and go on from a checkpoint; who they are, and their new ranks, the program settles by itself: a text names one rank that ended.
 *
 * Threads. One collective at a time per group is the contract: calls from several threads are run one after another in the order they
 * came in, so ranks must bring them in the same order. Different groups are independent.
 *
 * Devices (ZERO_KEY_NCCL and ZERO_KEY_DEVICE, on all ranks). Memory that a call is given may then lie on that CUDA device or on the host,
 * on each rank and for each argument as it likes. What lies on a device moves over NCCL, the rest as in a group without the key; sums are
 * the library's own, so results have the same bits. A message of send and recv moves as the sender's memory says; the first one over NCCL
 * from one rank to another makes a communicator for those that follow that way. `stream` is a cudaStream_t of the device, NULL its
 * default stream: what it was given before the call comes first; on return, or when the request has ended, every stream may use the
 * results. Ranks meet in a call, which a CUDA graph cannot repeat: a stream that is captured is ZERO_E_STATE, and the capture goes on
 * without the call. At most 64 ranks; whether several may share a device is for NCCL to say. Split groups reach the device too. Creation
 * also fails with ZERO_E_MODULE, ZERO_E_DEVICE, ZERO_E_OUT_OF_MEMORY or ZERO_E_TRANSPORT (what NCCL says), on the other ranks then with
 * ZERO_E_PEER_FAILED. Neither NCCL nor a stream has a deadline: when a call fails in NCCL's midst, or before `stream` has come to it,
 * memory may still be in use. The call waits a quarter of a second for both to let go; where they do not, libzero frees nothing on that
 * device until they have, and zero_group_quiet tells when that is.
 *
 * Splitting by rank. Where a whole of `count` elements is cut over N ranks (reduce_scatter, all_gather, gather, scatter), rank r owns
 * elements [r * count / N, (r + 1) * count / N) in integer arithmetic, so any count works, also one below N.
 */
#ifndef ZERO_GROUP_H
#define ZERO_GROUP_H

#include <zero/config.h>
#include <zero/dtype.h>
#include <zero/request.h>

#ifdef __cplusplus
extern "C" {
#endif

enum zero_reduce {
  ZERO_REDUCE_SUM = 1,
  ZERO_REDUCE_AVG = 2,
  ZERO_REDUCE_MIN = 3,
  ZERO_REDUCE_MAX = 4,
  ZERO_REDUCE_PROD = 5
};

/* Operations, as statistics and texts name them. */
enum zero_operation {
  ZERO_OPERATION_BARRIER = 1,
  ZERO_OPERATION_BROADCAST = 2,
  ZERO_OPERATION_ALL_REDUCE = 3,
  ZERO_OPERATION_REDUCE_SCATTER = 4,
  ZERO_OPERATION_ALL_GATHER = 5,
  ZERO_OPERATION_REDUCE = 6,
  ZERO_OPERATION_GATHER = 7,
  ZERO_OPERATION_SCATTER = 8,
  ZERO_OPERATION_ALL_TO_ALL = 9,
  ZERO_OPERATION_SEND = 10,
  ZERO_OPERATION_RECV = 11
};

/* The communicator handle that stands for MPI_COMM_WORLD in zero_group_create_mpi. */
#define ZERO_MPI_WORLD (-1)

/*
 * Makes a group of ranks on this host: threads of one process, processes, or both. They meet by name; nothing of the name remains once all
 * have met, or after a kill. (A process that is forked while they meet keeps the name taken until it ends or runs another program.)
 *   name    [in]  1 to 64 bytes of UTF-8; ranks of the same user and network namespace that give the same
 *                 name meet. May be NULL when size is 1
 *   rank    [in]  0 .. size - 1, each exactly once
 *   size    [in]  1 .. 1024, the same on all ranks
 *   config  [in]  or NULL for defaults
 *   out     [out] the group, the caller's
 * File descriptors. Where all ranks are threads of one process it needs 3 for each of them while they
 * meet, and none afterwards, also for what is split, buffers and optimizers. A process beside which
 * there are others needs 2 * size + 2 for each of its ranks, for a moment, while they meet, are split
 * or share memory; it keeps one for each other process of the group, one for each buffer and up to 3
 * for each optimizer of its ranks. Where its limit (RLIMIT_NOFILE, ulimit -n) is lower the call ends
 * with ZERO_E_SYSTEM, whose text names the limit; the library never raises it.
 * Waits for all ranks, at most ZERO_KEY_RENDEZVOUS_MS. Errors: ZERO_E_RENDEZVOUS names missing, doubled or disagreeing ranks;
 * ZERO_E_INVALID_ARGUMENT, ZERO_E_BAD_HANDLE, ZERO_E_OUT_OF_MEMORY, ZERO_E_SYSTEM. Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_create_local(const char *name, int64_t rank, int64_t size, const zero_config *config, zero_group **out);
ZERO_API int32_t zero_group_create_local_async(const char *name, int64_t rank, int64_t size, const zero_config *config, zero_request **out);

/*
 * Makes a group of the ranks of an MPI communicator. Works on its own duplicate of the
 * communicator.
 *
 * Initialises MPI when nobody has. Then releasing the last group over MPI, or the last one split
 * from such a group, finalises it, and later creation is an error. That release waits for those of
 * the other ranks (at most ZERO_KEY_RENDEZVOUS_MS), after ranks that wait for this one have been
 * told that it has left. A process that ends with status 0 (exit, or a return from main) and holds
 * such groups releases them then; one that ends with another status leaves the others to the
 * launcher.
 *
 * Where a group has failed, messages may be under way that no rank receives any more: libzero then
 * leaves MPI alone, and MPI_Finalize may hang or end the process; MPI_Abort or exit is for programs
 * that end there.
 *
 * Ranks of one host meet through MPI and then move the data between them through shared memory, as in a local group (ZERO_KEY_MPI_SHARED);
 * MPI carries what crosses hosts. Where the world is a whole number of runs of 2, 4, 8, ... ranks that each share a host, reduce_scatter,
 * all_reduce and all_gather of more than 1 KiB per rank work inside such runs first (averages of integers do not): out of a host go the
 * sums, in fp32 for 16-bit floats, of a run instead of its ranks' contributions, and what is gathered comes in once per run. Results have
 * the same bits either way. Ranks share a host when they share a kernel, host name and network namespace, or when the variable ZERO_HOST_ID
 * has one value for them: only ranks that can share memory may have that, or the creation ends with ZERO_E_RENDEZVOUS.
 *   comm    [in]  a Fortran handle (MPI_Comm_c2f), or ZERO_MPI_WORLD
 *   config  [in]  or NULL
 *   out     [out] the group, the caller's
 * Errors: ZERO_E_MODULE tells what to install; ZERO_E_LAUNCHER when the world disagrees with the launcher's variables; ZERO_E_RENDEZVOUS,
 * ZERO_E_TRANSPORT, ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT. Threads: one at a time per process. Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_create_mpi(int64_t comm, const zero_config *config, zero_group **out);
ZERO_API int32_t zero_group_create_mpi_async(int64_t comm, const zero_config *config, zero_request **out);

/*
 * Makes a group of ranks on any hosts, each with a CUDA device, without MPI. The ranks meet over TCP at rank 0, by an id that the program
 * carries to all of them however it likes: one that rank 0's process got from zero_group_unique_id, or, where rank 0's host and a free port
 * are known beforehand, a text "host:port/token" of the program's own. As if ZERO_KEY_NCCL were 1: memory of devices moves over NCCL, and
 * so does the host's, by way of the device, where it is more than 4 KiB; ranks that all share a host make a local group. Between hosts a
 * socket stays open for each pair of ranks: over it they compare their calls, vote, and notice when one ends. What passes there is neither
 * encrypted nor proof against an attacker, as with NCCL itself: the network between the hosts must be trusted.
 *   id      [in]  "host:port/token", at most 255 bytes: a DNS name, an IPv4 address or an IPv6 address in brackets; 1 .. 65535; letters,
 *                 digits and ._-, another for each group that is made at the same time. The same on all ranks
 *   rank    [in]  0 .. size - 1, each exactly once
 *   size    [in]  1 .. 64, the same on all ranks
 *   config  [in]  names the device (ZERO_KEY_DEVICE)
 *   out     [out] the group, the caller's
 * Besides rank 0's port, ranks of different hosts connect to one another at ports that the system chooses. Waits for all ranks, at most
 * ZERO_KEY_RENDEZVOUS_MS, and for the system to find the address of a name. Errors: as zero_group_create_local, and those of groups with
 * devices (head of this file). Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_create_nccl(const char *id, int64_t rank, int64_t size, const zero_config *config, zero_group **out);
ZERO_API int32_t zero_group_create_nccl_async(const char *id, int64_t rank, int64_t size, const zero_config *config, zero_request **out);

/*
 * Makes an id for zero_group_create_nccl. This process listens from now on, and is where rank 0 must then be created; each id serves once.
 *   config      [in]  ZERO_KEY_RENDEZVOUS_HOST and ZERO_KEY_RENDEZVOUS_PORT are read; or NULL
 *   out         [out] receives the id, its NUL included; NULL when out_nbytes is 0: then nothing listens
 *   out_nbytes  [in]  bytes at out: 0, or at least 256
 *   out_needed  [out] bytes that were written; 256 when out_nbytes is 0; may be NULL
 * Errors: ZERO_E_SYSTEM, for example for a port that is taken; ZERO_E_INVALID_ARGUMENT, ZERO_E_BAD_HANDLE. Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_unique_id(const zero_config *config, char *out, int64_t out_nbytes, int64_t *out_needed);

/*
 * Makes the group that the launcher's variables describe: Open MPI, MPICH or Slurm give an MPI group; torchrun on one host gives a local
 * group of processes, and on several, with ZERO_KEY_NCCL, one as of zero_group_create_nccl, whose rank 0 listens on
 * ZERO_KEY_RENDEZVOUS_PORT of MASTER_ADDR (default: MASTER_PORT + 1); none of them gives a world of one. Where srun starts torchrun on each
 * node, torchrun's ranks count. A world above 1 whose transport is not there is an error, never N worlds of one.
 *   config  [in]  or NULL
 *   out     [out] the group, the caller's
 * Errors: ZERO_E_LAUNCHER says what was found and what to use; otherwise as the calls above. Threads: one at a time per process.
 * Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_create_env(const zero_config *config, zero_group **out);
ZERO_API int32_t zero_group_create_env_async(const zero_config *config, zero_request **out);

/*
 * Names the variable in which a launcher says how many ranks it started, for example
 * "OMPI_COMM_WORLD_SIZE". The text is empty if no launcher started this process. The variables are
 * read as by zero_group_create_env, and nothing is started: a program that starts ranks of its own
 * without a launcher calls this first, and may fork afterwards.
 *   out         [out] receives the text, always terminated, cut to fit; NULL if out_nbytes is 0
 *   out_nbytes  [in]  bytes at out, >= 0; 64 hold every name
 *   out_needed  [out] bytes that the whole text needs, its NUL included; may be NULL
 * Errors: ZERO_E_LAUNCHER as zero_group_create_env; ZERO_E_INVALID_ARGUMENT. Threads: any.
 * Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_launcher(char *out, int64_t out_nbytes, int64_t *out_needed);

/*
 * Splits a group into disjoint groups; a collective over the parent. Ranks with the same color form one group, ordered by key, then by
 * parent rank. Parent and children may be used at the same time.
 *   color  [in]  >= 0, or negative to be in none
 *   key    [in]
 *   out    [out] the new group, the caller's; NULL for a negative color
 * Errors: as collectives, and as zero_group_create_local. Threads: as collectives. Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_split(zero_group *group, int64_t color, int64_t key, zero_group **out);
ZERO_API int32_t zero_group_split_async(zero_group *group, int64_t color, int64_t key, zero_request **out);

/*
 * Where this rank stands: its rank, the number of ranks, its rank among those on this host, their number, the number of hosts.
 *   out  [out]
 * Errors: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_rank(const zero_group *group, int64_t *out);
ZERO_API int32_t zero_group_size(const zero_group *group, int64_t *out);
ZERO_API int32_t zero_group_local_rank(const zero_group *group, int64_t *out);
ZERO_API int32_t zero_group_local_size(const zero_group *group, int64_t *out);
ZERO_API int32_t zero_group_host_count(const zero_group *group, int64_t *out);

/*
 * The part of `count` elements that a rank owns in reduce_scatter, all_gather, gather and scatter.
 *   count       [in]  elements of the whole, >= 0
 *   rank        [in]  0 .. size - 1
 *   out_offset  [out] first element
 *   out_count   [out] elements
 * Errors: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_share(const zero_group *group, int64_t count, int64_t rank, int64_t *out_offset, int64_t *out_count);

/*
 * Returns ZERO_OK while the group works and the error that poisoned it afterwards; makes progress on outstanding requests.
 * Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_status(zero_group *group);

/*
 * Poisons the group, the groups split from it and the optimizers made from it on every rank with ZERO_E_ABORTED; calls that are waiting
 * return at once, and where none ever waits in a group split from it, one of the next 16 there says so. Does not wait for other ranks.
 * Where the group had failed before, only groups that this rank is in are poisoned.
 *   reason  [in] text for the other ranks' error, or NULL
 * Errors: ZERO_E_BAD_HANDLE. Threads: any, also while other threads wait in the group. Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_abort(zero_group *group, const char *reason);

/*
 * Sets the deadline of what begins later on this rank, in milliseconds (1 .. 2^40), also of optimizers made from the group; groups already
 * split from it keep theirs. A call that was made before, but stands behind other calls in the group, begins later.
 * Errors: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_set_deadline(zero_group *group, int64_t deadline_ms);

/*
 * Whether memory that was given to calls is the caller's again after a failure. Without ZERO_KEY_NCCL always 1. With it 0 while NCCL, in
 * this process, may still read or write memory of a call that failed, or the stream that such a call was given has not come to it: the
 * memory must then not be freed or used.
 *   out  [out] 1 or 0
 * Errors: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_group_quiet(const zero_group *group, int64_t *out);

/*
 * Collectives. Common to all of them:
 *   send, send_count  [in]  what this rank gives, in elements of dtype; may be NULL when send_count is 0
 *   recv, recv_count  [out] what this rank gets; may be NULL when recv_count is 0
 *   dtype, op         [in]  a zero_dtype, a zero_reduce
 *   root              [in]  0 .. size - 1, the same on all ranks
 *   stream            [in]  NULL, but for groups that reach devices
 * In place: all_reduce and reduce: recv may equal send; reduce_scatter: recv may be this rank's own part of send; all_gather and gather:
 * send may be this rank's own part of recv; scatter: recv may be root's own part of send. Any other overlap is an error.
 * Errors of all: ZERO_E_BAD_HANDLE; ZERO_E_INVALID_ARGUMENT, ZERO_E_UNSUPPORTED for a stream, ZERO_E_STATE for one that is captured (then
 * the group is as before, but the other ranks are still waiting for this one); ZERO_E_TIMEOUT .. ZERO_E_TRANSPORT, after which the group is
 * poisoned; what zero/status.h says of calls that have begun. After such an error recv may be partly written; not after ZERO_E_MISMATCH in a
 * text that names this very call: a rank that still ends a call gets the error of others that are a call ahead. Threads: see the head of
 * this file. Since ZERO_0.1.
 */

/* recv = op over ranks of send; send_count == recv_count. */
ZERO_API int32_t zero_group_all_reduce(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                       int32_t dtype, int32_t op, void *stream);
ZERO_API int32_t zero_group_all_reduce_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                             int32_t dtype, int32_t op, void *stream, zero_request **out);

/* recv = this rank's share of (op over ranks of send); recv_count is the share of send_count. */
ZERO_API int32_t zero_group_reduce_scatter(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                           int32_t dtype, int32_t op, void *stream);
ZERO_API int32_t zero_group_reduce_scatter_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                                 int32_t dtype, int32_t op, void *stream, zero_request **out);

/* recv = the ranks' shares one after another; send_count is this rank's share of recv_count. */
ZERO_API int32_t zero_group_all_gather(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                       int32_t dtype, void *stream);
ZERO_API int32_t zero_group_all_gather_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                             int32_t dtype, void *stream, zero_request **out);

/* data of root goes to data of every rank. */
ZERO_API int32_t zero_group_broadcast(zero_group *group, void *data, int64_t count, int32_t dtype, int64_t root, void *stream);
ZERO_API int32_t zero_group_broadcast_async(zero_group *group, void *data, int64_t count, int32_t dtype, int64_t root, void *stream,
                                            zero_request **out);

/* recv on root = op over ranks of send; elsewhere recv_count is 0. */
ZERO_API int32_t zero_group_reduce(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
                                   int32_t op, int64_t root, void *stream);
ZERO_API int32_t zero_group_reduce_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                         int32_t dtype, int32_t op, int64_t root, void *stream, zero_request **out);

/* recv on root = the ranks' shares one after another; send_count is this rank's share of `total`; elsewhere recv_count is 0. */
ZERO_API int32_t zero_group_gather(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int64_t total,
                                   int32_t dtype, int64_t root, void *stream);
ZERO_API int32_t zero_group_gather_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                         int64_t total, int32_t dtype, int64_t root, void *stream, zero_request **out);

/* recv = this rank's share of the `total` elements at send on root; elsewhere send_count is 0. */
ZERO_API int32_t zero_group_scatter(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int64_t total,
                                    int32_t dtype, int64_t root, void *stream);
ZERO_API int32_t zero_group_scatter_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                          int64_t total, int32_t dtype, int64_t root, void *stream, zero_request **out);

/* Block r of recv = block <this rank> of rank r's send; send_count == recv_count, a multiple of the group's size. */
ZERO_API int32_t zero_group_all_to_all(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                       int32_t dtype, void *stream);
ZERO_API int32_t zero_group_all_to_all_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                             int32_t dtype, void *stream, zero_request **out);

/*
 * Point to point: a send meets the recv its peer makes with the same count and dtype; messages between two ranks keep their order. A send
 * returns when its memory is free again, which may be only when the peer receives. Sends, receives and collectives do not wait for one
 * another, so two ranks that exchange begin their sends or receives with _async. peer: another rank, not this one. ZERO_E_STATE, with the
 * group as before, on a thread from which MPI does not reach the peer: MPI did not grant MPI_THREAD_MULTIPLE, and another thread made the
 * first group over MPI.
 */
ZERO_API int32_t zero_group_send(zero_group *group, const void *send, int64_t send_count, int32_t dtype, int64_t peer, void *stream);
ZERO_API int32_t zero_group_send_async(zero_group *group, const void *send, int64_t send_count, int32_t dtype, int64_t peer, void *stream,
                                       zero_request **out);
ZERO_API int32_t zero_group_recv(zero_group *group, void *recv, int64_t recv_count, int32_t dtype, int64_t peer, void *stream);
ZERO_API int32_t zero_group_recv_async(zero_group *group, void *recv, int64_t recv_count, int32_t dtype, int64_t peer, void *stream,
                                       zero_request **out);

/* Returns when every rank has called it. */
ZERO_API int32_t zero_group_barrier(zero_group *group);
ZERO_API int32_t zero_group_barrier_async(zero_group *group, zero_request **out);

/*
 * Gives the handle back; NULL is allowed. Buffers, optimizers and requests made from the group keep it alive. When the last holder on this
 * rank goes, ranks still waiting in the group get ZERO_E_PEER_LEFT. Threads: any. Since ZERO_0.1.
 */
ZERO_API void zero_group_release(zero_group *group);

#ifdef __cplusplus
}
#endif

#endif
