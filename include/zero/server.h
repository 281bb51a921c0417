/**
 * @file
 * Parameter servers: some ranks hold and update parameters; the others push gradients and pull
 * parameters, each at its own speed.
 *
 * @code
 * zero_config_set_i64(config, ZERO_KEY_SERVER_ORDER, ZERO_SERVER_ORDER_ARRIVAL);
 * zero_config_set_i64(config, ZERO_KEY_SERVER_STALENESS, 2);
 * zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd");
 * zero_server_create(group, config, count, &server);
 * zero_server_seal(server);
 * if (rank == 0) {                                       // the server: ZERO_KEY_SERVER_RANKS is 1
 *   zero_server_shard(server, &shard, &offset, &part);   // write first values to shard
 *   zero_server_run(server, &result);                    // until all workers have left
 * } else {
 *   for (int i = 0; i < steps; i++) {
 *     zero_server_pull(server, parameters, count);
 *     ...                                                // forward, backward
 *     zero_server_push(server, gradients, count);
 *   }
 *   zero_server_leave(server);
 * }
 * zero_server_release(server);
 * @endcode
 *
 * The parameters are `count` elements of f32, the tensors of the model laid end to end. The first
 * ZERO_KEY_SERVER_RANKS ranks of the group are servers. Each holds one part of the parameters and
 * of the optimizer states. Parts are as equal as cuts at multiples of 256 elements allow.
 *
 * **Order of calls.** create, seal. Then a server writes first values into its shard (zero if it
 * does not) and calls run. A worker pulls and pushes in any order, and leaves. All ranks create
 * with the same count and config; seal compares them.
 *
 * **Applying a push.** A server has received the whole push before it changes a parameter. It
 * applies one push at a time, and a pull never sees a push half applied. ZERO_KEY_SERVER_RULE
 * selects what it does:
 * - ZERO_SERVER_RULE_UPDATE: one step of ZERO_KEY_ALGORITHM (sgd, adam, adamw, adagrad, lion) with
 *   the pushed gradient, as optimizer.h states the rules. t counts the applied pushes of all
 *   workers. Hyper-parameters keep the values of the config.
 * - ZERO_SERVER_RULE_AVERAGE: W = fp32(fp32(1 - a) * W) + fp32(fp32(a) * w), rounded to fp32.
 * - ZERO_SERVER_RULE_MEAN: fp32 sums, in the order of the pushes, times fp32(1 / period).
 *
 * With ZERO_NONFINITE_SKIP (ZERO_KEY_NONFINITE), a push with a NaN or infinity counts as a push,
 * but no server applies any part of it.
 *
 * **Staleness** (Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel
 * Parameter Server", 2013). The clock of a worker is the number of its pushes. With bound s, a
 * worker at clock c may pull or push once every other worker has reached clock c - s at least;
 * until then its call waits. Workers that have left, or were lost, do not count.
 *
 * The age of a push is the number of pushes that were applied since its worker last pulled. If
 * workers pull before each push, no age exceeds (2 s + 1) (workers - 1).
 *
 * **Round robin.** With ZERO_SERVER_ORDER_ROUND_ROBIN, a round begins once each worker that has not
 * left has pushed. Then the pushes are applied in the order of ranks. Pulls see whole rounds. The
 * result has the bits of this program:
 *
 * @verbatim
 * for each round:  every worker computes a push from the same parameters
 *                  for each worker, by rank: apply its push
 * @endverbatim
 *
 * **Replay.** With ZERO_SERVER_ORDER_ARRIVAL each server records one u16 per push and pull
 * (zero_server_record()): the number of the worker, counted from 0, plus 32768 for a pull. A run
 * that is given these records (zero_server_replay()) serves in the same order. If its workers
 * compute the same values from the same parameters, it ends with the same bits.
 *
 * **Lost ranks.** Each server and each worker have a group of their own, split from the given one.
 * A worker counts as lost if its process ended, it released its handle without leaving, or it sent
 * nothing and took nothing for the deadline of the group.
 * - ZERO_SERVER_ORDER_ARRIVAL: servers go on with the other workers, and run reports the number of
 *   lost ones. Earlier pushes of the lost worker stay applied.
 * - ZERO_SERVER_ORDER_ROUND_ROBIN, and every replay: run returns the error, with the rank of the
 *   worker. All other workers return it too.
 * - A lost server: every worker returns an error that names it, within the deadline.
 * - A worker that waits beyond the bound until its deadline returns ZERO_E_TIMEOUT. The text names
 *   the rank that it waited for. The servers count it as lost.
 *
 * A launcher may end all ranks when one has ended (mpirun does). zero_group_abort() of the given
 * group ends all calls on its servers.
 *
 * **Traffic** of a worker: 4 count bytes for a push, 4 count bytes for a pull, and 64 bytes per
 * server for each call. **Memory** of a server: 4 bytes per element of its part for each of
 * parameters, the push under way, and states of the algorithm or sums of a mean. A worker holds
 * nothing.
 *
 * **Errors of all functions.** ZERO_E_BAD_HANDLE; ZERO_E_INVALID_ARGUMENT; ZERO_E_STATE if the call
 * is made in the wrong phase, or on a rank of the other role. After ZERO_E_TIMEOUT ..
 * ZERO_E_TRANSPORT of push, pull, leave or run, the server object is lost on this rank: later calls
 * return the error again, except zero_server_shard().
 *
 * **Threads.** One thread per server object at a time.
 */
#ifndef ZERO_SERVER_H
#define ZERO_SERVER_H

#include <zero/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One rank's part in parameter servers; the caller gives it back with zero_server_release(). */
typedef struct zero_server zero_server;

/**
 * The counts of zero_server_run() on one server. Only 8-byte fields; fields are appended, never
 * moved. The head of this file defines ages.
 */
typedef struct zero_server_result {
  uint64_t struct_size;    /**< [in] sizeof(zero_server_result) as the caller knows it. */
  int64_t push_count;      /**< Pushes, skipped ones included. */
  int64_t pull_count;      /**< Pulls. */
  int64_t skipped_count;   /**< Pushes that were not finite, and not applied. */
  int64_t waited_count;    /**< Pushes and pulls that could not be served when they arrived. */
  int64_t left_count;      /**< Workers that left. */
  int64_t lost_count;      /**< Workers that were lost. */
  int64_t received_nbytes; /**< Bytes of pushes on this server. */
  int64_t sent_nbytes;     /**< Bytes of pulls on this server. */
  int64_t greatest_age;    /**< The greatest age of a push. */
  int64_t age_0_count;     /**< Pushes of age 0. */
  int64_t age_1_count;     /**< Pushes of age 1. */
  int64_t age_2_count;     /**< Pushes of age 2 or 3. */
  int64_t age_4_count;     /**< Pushes of age 4 .. 7. */
  int64_t age_8_count;     /**< Pushes of age 8 .. 15. */
  int64_t age_16_count;    /**< Pushes of age 16 and more. */
} zero_server_result;

/**
 * Sets every field to zero, and struct_size to the given size.
 *
 * @param[out] out          The struct.
 * @param[in]  struct_size  sizeof(zero_server_result) as the caller knows it.
 * @return ZERO_OK or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_server_result_init(zero_server_result *out, uint64_t struct_size);

/**
 * Creates one rank's part in parameter servers. Not a collective.
 *
 * It reads the keys of servers, ZERO_KEY_NONFINITE, ZERO_KEY_THREADS and the memory hook; with
 * ZERO_SERVER_RULE_UPDATE also ZERO_KEY_ALGORITHM and the hyper-parameters.
 *
 * @param[in]  group   The group, which the object keeps alive.
 * @param[in]  config  A config, or NULL for defaults.
 * @param[in]  count   Elements of f32: 0 .. 2^56, the same on all ranks.
 * @param[out] out     The object, owned by the caller.
 * @return ZERO_OK or an error of all functions. ZERO_E_INVALID_ARGUMENT if a key contradicts
 *         another, or no rank would be a worker. ZERO_E_UNSUPPORTED for an algorithm that needs
 *         whole tensors (lamb, muon), for "custom" and "none", and for more than 32768 workers.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_server_create(zero_group *group, const zero_config *config, int64_t count,
                                    zero_server **out);

/**
 * Compares counts and configs, allocates, and connects each server with each worker. A collective
 * over the group.
 *
 * @param[in] server  The object.
 * @return ZERO_OK or an error of collectives. ZERO_E_MISMATCH if counts or configs differ; the text
 *         names the setting. ZERO_E_OUT_OF_MEMORY.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_server_seal(zero_server *server);
/** Begins zero_server_seal() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_server_seal_async(zero_server *server, zero_request **out);

/**
 * Returns the parameters that this server holds: zeros, or what the program wrote, before run; the
 * final values after it. They must not be used during run. Only on a server.
 *
 * @param[in]  server      The object, sealed.
 * @param[out] out_data    The elements, f32, valid until release; NULL for an empty part.
 * @param[out] out_offset  The first element within the parameters.
 * @param[out] out_count   Their number.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_server_shard(const zero_server *server, void **out_data, int64_t *out_offset,
                                   int64_t *out_count);

/**
 * Gives a server the order that it keeps to in run. Only on a server, with
 * ZERO_SERVER_ORDER_ARRIVAL, between seal and run; on all servers or on none.
 *
 * In run, a request that is not the next one of the record waits for its turn. The bound of
 * staleness is not applied: the recorded run kept to it. If the requests of a worker are not those
 * of the record, run returns ZERO_E_MISMATCH and the workers an error that holds its text.
 *
 * @param[in] server  The object.
 * @param[in] data    The record of this server (zero_server_record()), u16, which is copied.
 * @param[in] count   Its number of elements.
 * @return ZERO_OK or an error of all functions. ZERO_E_INVALID_ARGUMENT if the record names a
 *         worker that does not exist.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_server_replay(zero_server *server, const void *data, int64_t count);

/**
 * Returns the order that a server recorded in run. Only on a server, after run, with
 * ZERO_SERVER_ORDER_ARRIVAL.
 *
 * @param[in]  server     The object.
 * @param[out] data       Receives the first `count` elements, u16; may be NULL if count is 0.
 * @param[in]  count      The number of elements that data has room for.
 * @param[out] out_count  The number of elements of the record.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_server_record(const zero_server *server, void *data, int64_t count,
                                    int64_t *out_count);

/**
 * Serves the workers until all have left or were lost. Only on a server, once.
 *
 * Every worker must push, pull or leave within the deadline of the group after its last call, or
 * counts as lost. A worker that waits for its turn is not late. While one worker transfers a push
 * or a pull, the others wait. A transfer that lasts longer than half of the deadline is a lost
 * worker.
 *
 * @param[in]     server      The object, sealed.
 * @param[in,out] out_result  struct_size set by the caller; or NULL. Not written on an error.
 * @return ZERO_OK, also if workers were lost with ZERO_SERVER_ORDER_ARRIVAL. Errors: see "Lost
 *         ranks" at the head of this file. ZERO_E_MISMATCH in a replay.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_server_run(zero_server *server, zero_server_result *out_result);
/** Begins zero_server_run() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_server_run_async(zero_server *server, zero_server_result *out_result,
                                       zero_request **out);

/**
 * Sends a gradient (or parameters, by ZERO_KEY_SERVER_RULE) to the servers. Only on a worker.
 *
 * Waits for its turn: within the bound of staleness, or in its round. On return every server has
 * taken its part and will apply it before it serves another request.
 *
 * @param[in] server  The object, sealed.
 * @param[in] data    f32; may be NULL if count is 0.
 * @param[in] count   The count given to create.
 * @return ZERO_OK or an error of all functions. ZERO_E_TIMEOUT .. ZERO_E_TRANSPORT; if the worker
 *         waited for its turn, the text names the rank it waited for.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_server_push(zero_server *server, const void *data, int64_t count);
/** Begins zero_server_push() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_server_push_async(zero_server *server, const void *data, int64_t count,
                                        zero_request **out);

/**
 * Fetches the parameters from the servers. Only on a worker. Waits as zero_server_push().
 *
 * With several servers, the parts may come from different moments within the bound; with
 * ZERO_SERVER_ORDER_ROUND_ROBIN all are of the same round.
 *
 * @param[in]  server  The object, sealed.
 * @param[out] data    Receives f32; may be NULL if count is 0. After an error partly written.
 * @param[in]  count   The count given to create.
 * @return ZERO_OK or an error of zero_server_push().
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_server_pull(zero_server *server, void *data, int64_t count);
/** Begins zero_server_pull() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_server_pull_async(zero_server *server, void *data, int64_t count,
                                        zero_request **out);

/**
 * Tells the servers that this worker makes no more calls. The others no longer wait for it. Only on
 * a worker, once.
 *
 * @param[in] server  The object, sealed.
 * @return ZERO_OK or an error of zero_server_push().
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_server_leave(zero_server *server);
/** Begins zero_server_leave() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_server_leave_async(zero_server *server, zero_request **out);

/**
 * Releases the handle; NULL is allowed. A worker that has not left counts as lost. Not a
 * collective. Threads: any.
 *
 * @param[in] server  The object, or NULL.
 * @since ZERO_0.1
 */
ZERO_API void zero_server_release(zero_server *server);

#ifdef __cplusplus
}
#endif

#endif
