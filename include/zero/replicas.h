/**
 * @file
 * Replicas: fewer and cheaper synchronisations between groups of ranks that are far from one
 * another.
 *
 * @code
 * zero_config_set_i64(config, ZERO_KEY_REPLICA_RANKS, -1);       // the ranks of a host
 * zero_config_set_i64(config, ZERO_KEY_SYNC_PERIOD, 64);         // meet after every 64 steps
 * zero_config_set_f64(config, ZERO_KEY_OUTER_LR, 0.7);
 * zero_config_set_f64(config, ZERO_KEY_OUTER_MOMENTUM, 0.9);
 * zero_optimizer_create(group, config, &optimizer);
 * ...                                                            // steps as ever
 * zero_optimizer_sync(optimizer, NULL, NULL);                    // before a save or an evaluation
 * zero_optimizer_save(optimizer, folder, NULL);
 * @endcode
 *
 * **Replicas.** With ZERO_KEY_REPLICA_RANKS = L, ranks 0 .. L - 1 hold one replica of the model,
 * ranks L .. 2L - 1 the next, and so on. The stage shards over the L ranks of a replica, so
 * formulas of memory and gathers have L in the place of N. ZERO_KEY_SHARD_WEIGHTS has L weights.
 * zero_optimizer_param_acquire() and _read() return the values of the rank's own replica.
 * zero_optimizer_write() writes into all replicas. zero_optimizer_begin() with ZERO_SOURCE_ROOT or
 * ZERO_SOURCE_SHARDS gives all replicas the parameters of the first. Every rank makes all calls.
 *
 * **Period 1** (hybrid sharding, as HSDP and MiCS): gradients are summed over all replicas in every
 * step. The bits of parameters are those of one group of N ranks. Norm, clipping, skips, the loss
 * scale and stops are those of all ranks. Between replicas each rank sends its shard of the sum,
 * not whole gradients.
 *
 * **A longer period** (local steps; with an outer step DiLoCo): each replica averages gradients,
 * clips, skips and scales by itself. Replicas are brought together at the end of every
 * ZERO_KEY_SYNC_PERIOD-th step, whether they applied or skipped it. A are the parameters that they
 * last had in common (ZERO_SLOT_ANCHOR), W_r those of replica r, lr is the rate, mu the momentum:
 *
 *     d = mean over replicas of (A - W_r);  m = mu m + d;  A = A - lr (d + mu m);  W_r = A
 *
 * Rate 1 without momentum is the mean of the parameters (local SGD: Stich, 2019). Rate 0.7 with
 * momentum 0.9 is the setting of DiLoCo (Douillard et al., 2023, algorithm 1). After a
 * synchronisation parameters have the same bits in all replicas, in every stage. W_r is the fp32
 * master where there is one. Averages (ZERO_KEY_AVERAGE) become the mean of those of all replicas.
 * All replicas take the smallest loss scale. The moments of the algorithm stay each replica's own.
 * - A reason to stop (stop.h) is in the result of the step for the ranks of the replica, and in
 *   that of the next synchronisation for all ranks.
 * - Hyper-parameters are compared within a replica in every step, and between replicas at
 *   synchronisations.
 * - zero_optimizer_sync_module_buffers() averages module buffers within each replica, then over
 *   replicas.
 * - Saves, loads and exports need replicas that are together: zero_optimizer_sync() comes before
 *   them, or ZERO_E_STATE is returned.
 * - zero_optimizer_verify() compares replicas with one another if they are together.
 * - With ZERO_KEY_SYNC_AFTER = K the period is 1 for the first K steps (post-local SGD: Lin et al.,
 *   2020).
 *
 * **Fragments.** With ZERO_KEY_SYNC_FRAGMENTS = K replicas bring K parts of the model together in
 * turn, so that the traffic of a period H is spread over K steps (streaming DiLoCo: Douillard et
 * al., 2025). A large tensor makes the shares uneven. The tensors that train, in order of
 * registration, are cut into K runs of whole tensors. Run j = 0, 1, ... ends at the boundary
 * nearest to (j + 1)/K of all elements, the later one of two, and each run has a tensor. Step s =
 * 1, 2, ... after ZERO_KEY_SYNC_AFTER ends with the rule above for the parameters of fragment j, if
 * s = j H/K modulo H. Each fragment has anchors and outer momentum of its own.
 * - The bits depend on K. They do not depend on buckets, stage or transport.
 * - Loss scale, reasons to stop and the comparison of hyper-parameters are those of all replicas at
 *   the end of each fragment's turn.
 * - Replicas differ at the end of every step. Saves, loads and exports need zero_optimizer_sync(),
 *   which brings all fragments together at once. Otherwise they return ZERO_E_STATE.
 *   zero_optimizer_verify() compares the ranks of each replica only.
 * - `synced` and `spread` (zero_step_result) are those of the fragment.
 * - K divides H, and is at most the number of tensors that train: ZERO_E_INVALID_ARGUMENT.
 *
 * **Delay and mix.** With ZERO_KEY_SYNC_DELAY = D replicas exchange the values of the step t that
 * ends a turn while they make further steps. The result takes effect at the end of step t + D,
 * whenever it arrived. With the mix a (ZERO_KEY_SYNC_MIX) a replica keeps a part of its own values,
 * and so of the steps that it made meanwhile. W_r(t) are the values at the end of step t:
 *
 *     d = mean over replicas of (A - W_r(t));  m = mu m + d;  A = A - lr (d + mu m)
 *     W_r(t + D) = a W_r(t + D) + (1 - a) A
 *
 * - Skipped steps count. A and m change at the end of step t + D, with lr, mu and a as they are
 *   then. Averages become a times their own value plus 1 - a times the mean of those at step t.
 * - With ZERO_KEY_OVERLAP the exchange runs behind the steps, in a group of its own. Otherwise it
 *   is made at the end of step t. The bits are the same.
 * - At the end of step t + D replicas exchange a few words, which take the place of those at the
 *   end of a turn. An exchange that failed is an error of that step on every rank, or of an earlier
 *   one.
 * - zero_optimizer_sync() lets an exchange under way take effect at once, and brings all parameters
 *   together afterwards, without a mix. Saves, loads and exports need it while one is under way,
 *   and also with a mix above 0. zero_optimizer_begin() and a load drop an exchange under way.
 * - A mix may be set without a delay. A mix of 1 keeps all own values.
 * - D is below H/K: ZERO_E_INVALID_ARGUMENT.
 *
 * **Rounds with neighbours.** With ZERO_KEY_NEIGHBOURS = ZERO_NEIGHBOURS_RING the end of a period
 * is a round: each of the F replicas averages with its two neighbours, and receives the values of
 * these only. Replica F - 1 and replica 0 are neighbours too. With F = 2 there is one neighbour,
 * and each weight is 1/2. Values are added in fp32, in the order of replicas, and then divided:
 *
 *     W_r = (W_(r-1) + W_r + W_(r+1)) / 3
 *
 * - The mean of all replicas stays the same, to rounding. Differences between replicas shrink by
 *   the factor (1 + 2 cos(2 pi / F)) / 3 per round: 0 for F = 3, 1/3 for 4, 0.54 for 5, 0.80 for 8.
 * - W_r are the fp32 values that train (masters, where there are such) and averages
 *   (ZERO_KEY_AVERAGE).
 * - Loss scale, reasons to stop and the comparison of hyper-parameters are those of a full
 *   synchronisation, over all replicas. They take a few words.
 * - Replicas differ after a round, also if F is 2 or 3. zero_optimizer_sync() is always a full
 *   synchronisation. Saves, loads and exports need one before them, or ZERO_E_STATE is returned.
 *   zero_optimizer_verify() compares the ranks of each replica only.
 * - `spread` (zero_step_result) is the mean of the norms after the round divided by that before it.
 *   The norms are those of the changes since the last full synchronisation.
 * - Traffic: a rank sends its P/L elements (stage 0: P) to each neighbour in fp32, and averages
 *   likewise. zero_stats_optimizer_traffic() counts them as ZERO_OPERATION_SEND.
 * - ZERO_KEY_SYNC_PERIOD 1 is ZERO_E_INVALID_ARGUMENT: replicas then make every step together.
 * - The outer step is that of the plain mean. Another rate, a momentum, and ZERO_KEY_SYNC_CODE are
 *   ZERO_E_UNSUPPORTED, because these need the mean change of all replicas. A rate or momentum
 *   within a save is not loaded. Fragments, a delay and a mix are ZERO_E_UNSUPPORTED too.
 *
 * **Memory** on top, in bytes per rank, with P parameters that train:
 * - a longer period: 4P/L for anchors (stage 0: 4P), as much again for outer momentum, and at most
 *   4 MiB of workspace. Rounds with neighbours take 2 MiB more
 * - a delay: 4 for each element of a fragment that the rank updates, for the largest of them; 8
 *   with averages
 * - period 1: 4 for each 16-bit gradient in this rank's share of the largest bucket
 * - each key of a code that is set: at most 6 MiB of workspace; low rank: see there
 * - residuals: 8P/L for sums, 8P/N for their results; low rank: see there
 * - momentum correction (ZERO_KEY_CODE_MOMENTUM): 8P/L
 *
 * **Traffic.** Between F replicas a rank sends 2 (F - 1)/F times its P/L elements (stage 0 with a
 * longer period: P) per synchronisation, in fp32. Fragments send the same per period; in a turn a
 * rank sends the elements of the fragment that it updates. With period 1 and 16-bit gradients half
 * of them travel in 16 bits. Codes take 1.016 (F8, I8), 0.516 (I4), 0.141 (SIGN) or (2K + 4)/256
 * (TOP with ZERO_KEY_CODE_TOP = K: 0.078 for 8) bytes per element; zero_traffic_stats counts each
 * of their bytes as an element.
 *
 * **Codes.** ZERO_KEY_GRAD_CODE and ZERO_KEY_SYNC_CODE shorten the data between replicas to 8, 4 or
 * fewer bits per element, both ways. The sums of a replica are coded once and added in fp32; the
 * result is coded once (as in ZeRO++: Wang et al., 2023). All replicas take the coded result, so
 * their bits stay equal, in every stage. A non-finite value makes its line non-finite. Averages and
 * module buffers travel in full. With ZERO_KEY_CODE_AFTER = K nothing is coded before K steps were
 * made, skipped ones included. Such a warm-up has the bits of a run without codes.
 *
 * **Sparse codes.** ZERO_CODE_TOP sends the K largest of 256 values (top-k), and ZERO_CODE_SIGN the
 * signs behind one scale (1 bit). Both lose accuracy even with residuals, and they save less than a
 * longer ZERO_KEY_SYNC_PERIOD. Choose them if every step must agree and the link is so slow that
 * the loss is accepted.
 * - Gradients need ZERO_RESIDUAL_F32, because most of each gradient waits for later steps. Other
 *   settings of ZERO_KEY_RESIDUAL are ZERO_E_UNSUPPORTED.
 * - Changes of parameters (ZERO_KEY_SYNC_CODE) keep no residual: what the code drops of a period is
 *   lost.
 * - ZERO_KEY_GATHER_CODE does not take them (ZERO_E_UNSUPPORTED): parameters would need many steps
 *   to follow their masters.
 * - ZERO_CODE_SIGN cannot say 0. An element of a line with other gradients moves to and fro by the
 *   line's scale even if its own gradient is always 0.
 * - In stages 1 to 3 the parameters that the ranks of a replica gather stay as they are.
 *
 * **Momentum correction.** With ZERO_KEY_CODE_MOMENTUM = mu, ZERO_CODE_TOP codes velocities (Lin et
 * al., "Deep gradient compression", 2018). g is a replica's sum of gradients, e its residual:
 *
 *     u = mu u + g;  v = e + u;  send C(v);  e = v - D(C(v));  u = 0 where D(C(v)) is not 0
 *
 * It takes the place of momentum in sgd, whose ZERO_KEY_MOMENTUM stays 0. Lines that travel in full
 * keep u, which is plain momentum. A skipped step leaves u as it was, and u follows the loss scale.
 * Micro-steps of a step add mu u once. Saves contain u: see residuals.
 *
 * **1-bit Adam.** With ZERO_KEY_CODE_FREEZE, coded gradients carry the first moment m of adam and
 * adamw, and the second moment v stays as it is once codes have begun (Tang et al., "1-bit Adam",
 * 2021, algorithm 1). g is the sum of gradients of one of F replicas, e its residual, d the divisor
 * (ZERO_KEY_DIVISOR), a the mean that all replicas decode, and c = beta1 / (1 - beta1):
 *
 *     s = e + g + c m d / F;  send C(s);  e = s - D(C(s));  the gradient that is applied = a - c m
 *
 * The update m = beta1 m + (1 - beta1)(a - c m) then leaves m = (1 - beta1) a: replicas exchange
 * their momentum, both ways coded with residuals. The errors of codes do not reach v, so that
 * ZERO_CODE_SIGN loses little accuracy.
 * - The first ZERO_KEY_CODE_AFTER steps are plain and travel in full. A tenth to a quarter of all
 *   steps is usual. v must have settled by then.
 * - The bias correction of v is that of its last update u: v / (1 - beta2^u), where u counts
 *   applied steps. If none of the first steps is applied, v still takes the first one that is.
 * - Saves contain u. A loaded run goes on with the same bits. Without the key, v then goes on from
 *   its u updates. Setting ZERO_KEY_STEP_COUNT sets u to the same number.
 * - Lines and steps in full (ZERO_KEY_FLUSH_PERIOD) carry no moment; v stays in all of them.
 * - Once v stays, an element keeps still if its v is at most 1e-4 of the mean of v over its line of
 *   up to 256 elements. Its m becomes 0, because its small root would make errors of the line's
 *   code large. An element that had no gradient before codes began thus never trains. Weight decay
 *   still moves it.
 * - A norm in the result is that of a - c m, which has the coding error of the momentum in it.
 * - ZERO_KEY_BETA1 changes between steps only, and micro-steps may not be of kind REDUCE.
 * - It needs ZERO_KEY_GRAD_CODE, ZERO_RESIDUAL_F32 and ZERO_KEY_CODE_AFTER above 0. Refused, as
 *   ZERO_E_UNSUPPORTED: clipping, which would bound that difference, momentum correction, low rank,
 *   ZERO_KEY_SYNC_PERIOD above 1, other algorithms, and moments that are not f32.
 * - The key adds neither memory nor traffic.
 *
 * **Low rank.** ZERO_CODE_LOW_RANK with ZERO_KEY_CODE_RANK = R sends a matrix of n x m elements as
 * factors of R (n + m) elements (PowerSGD: Vogels et al., 2019). The first dimension of a parameter
 * has n elements, and the others m together. M_i is the gradient of rank i and its residual:
 *
 *     P = orthonormal(sum of M_i Q);  Q_i = M_i^T P;  e_i = M_i - P Q_i^T;  Q = sum of Q_i
 *
 * P Q^T is the sum that is applied, divided as in ZERO_KEY_DIVISOR, and e_i the new residual. Q is
 * kept for the next step (warm start); the first one is the same in all runs. Algorithm 2 of the
 * paper subtracts the mean of all ranks instead of Q_i. The sums of residuals, and so all later
 * sums, are the same in exact arithmetic.
 * - It is worth it only if every rank holds whole tensors and matrices are much larger than R. With
 *   P parameters a rank computes up to 8 R P operations more per step, in one thread.
 * - Parameters of one dimension, and matrices with n m <= 2 R (n + m), travel in full, in fp32.
 * - Traffic: a rank sends 2 (F - 1)/F times 4 R (n + m) bytes per matrix.
 * - Memory: 8 n m + 8 R m bytes per matrix, and workspace for the factors of the largest bucket.
 * - Replicas must have one rank (ZERO_KEY_REPLICA_RANKS 1), and ZERO_KEY_RESIDUAL must be
 *   ZERO_RESIDUAL_F32. Anything else is ZERO_E_UNSUPPORTED, as are ZERO_KEY_SYNC_CODE and
 *   ZERO_KEY_GATHER_CODE.
 * - A non-finite gradient makes its whole matrix non-finite in that step only.
 * - Saves contain residuals, as those of other codes, and Q, which a load keeps with the same
 *   ZERO_KEY_CODE_RANK.
 *
 * **Residuals.** With ZERO_KEY_RESIDUAL the rounding errors of coded gradients are not lost: each
 * step adds those of the step before, at both codings (error feedback: Seide et al., 2014). The
 * sum of what was applied then differs from that without codes by the newest residuals only.
 * - They are kept in the unit of the gradients, and follow the loss scale.
 * - A skipped step leaves them as they were. A non-finite error is dropped.
 * - Every ZERO_KEY_FLUSH_PERIOD-th step, and the last before replicas part (ZERO_KEY_SYNC_AFTER),
 *   sends its gradients in full with the codes beside them, and leaves residuals of zero. If the
 *   last is skipped, the residuals are dropped, because no later step could send them.
 * - Saves contain them, unless they are zero. They also contain the velocities u of momentum
 *   correction and the factors Q of low rank. With as many ranks and replicas as before, a loaded
 *   run has the bits of a run that never stopped. Stage, buckets and shard weights make no
 *   difference.
 * - A load drops all three if the number of ranks or replicas differs, because each residual
 *   belongs to the sum of one replica. It drops residuals without the key, u without
 *   ZERO_KEY_CODE_MOMENTUM, and Q with another code or ZERO_KEY_CODE_RANK.
 * - Another code keeps residuals. But ZERO_CODE_LOW_RANK keeps only its own, and those of matrices
 *   that it sends as factors.
 * - zero_checkpoint_skipped() and the log (ZERO_LOG) list what a load drops. A save after a step in
 *   full has no residuals to lose.
 * - ZERO_UNFILLED_UNTOUCHED is ZERO_E_UNSUPPORTED with residuals. Changes of parameters
 *   (ZERO_KEY_SYNC_CODE) keep none.
 *
 * **Gathers as differences.** With ZERO_KEY_GATHER_CODE, in stages 1 and 2, parameters W follow
 * their fp32 masters M by differences. Every rank holds W whole and its shard of M. The owner of a
 * part codes M - W after each update. All ranks, the owner too, add what C(M - W) decodes to:
 *
 *     W = round(W + D(C(M - W)))
 *
 * The rounding error of a code is in the next difference. Errors therefore do not add up, and
 * nothing else is kept (weight differences of SDP4Bit: Jia et al., 2024). |M - W| is at most the
 * error of the code for the newest difference (zero_code), and that of rounding to the dtype.
 * - W has the same bits on all ranks, whatever the stage, buckets, shards, transport, hosts,
 *   overlap, and replicas of period 1. Ranks that share memory gather as others do.
 * - Lines with a tensor of fewer than 256 elements travel in full: W = round(M). So does all in
 *   every ZERO_KEY_FLUSH_PERIOD-th step, in the last step before replicas part, and where replicas
 *   are synchronised.
 * - A skipped step changes no bit. A non-finite master makes its line of W non-finite (F8: its own
 *   element) until a step in full.
 * - zero_optimizer_begin() makes both equal: M = W, or W = round(M) for masters that were written
 *   since the last begin. A master that is written between steps may be far from W: the next
 *   difference is then large, and so is its error.
 * - Saves hold M and W, and a run goes on with the same bits, also with other ranks. Without the
 *   key a loaded f32 parameter is M.
 * - Algorithms of the caller's own ("custom") change views of ZERO_SLOT_MASTER. A view of
 *   ZERO_SLOT_PARAM is ZERO_E_UNSUPPORTED: W would change on one rank only.
 * - Memory: 4P/N for masters of f32 parameters, at most 1.016 (F8, I8) or 0.516 (I4) bytes per
 *   element of the largest bucket (5.02 or 4.52 in lines that travel in full), and 128 KiB.
 * - Traffic: a rank sends N - 1 times its P/N elements, coded. As with other codes,
 *   zero_traffic_stats counts bytes as elements.
 * - Gathers are those within a replica. Replicas that are the ranks of a host, as those of the
 *   strategies below, gather over no link between hosts, and gain nothing from the key.
 * - Refused: stages 0 and 3, replicas of one rank, ZERO_KEY_ONE_COPY, ZERO_TIER_DEVICE,
 *   ZERO_UNFILLED_UNTOUCHED, ZERO_ROUNDING_STOCHASTIC, algorithm "none", and parameters that train
 *   in 8 bits or, of 16 bits, without ZERO_MASTER_F32.
 *
 * **Parameters over fewer ranks than states.** In stage 3, ZERO_KEY_PARAM_RANKS = R shards
 * parameters over R consecutive ranks, for example those of a host (-1). Gradients and states stay
 * sharded over all ranks of a replica (the secondary partition of ZeRO++: Wang et al., 2023, there
 * hpZ). A replica of L ranks then has L/R copies of the parameters. A rank keeps its own shard and,
 * of each other copy, the shard of the rank in the same place.
 * - New values go to the other copies once, at the end of a step. zero_optimizer_param_acquire()
 *   gathers among R ranks only, however often it is called.
 * - Copies follow every step, begin, load and synchronisation. They follow zero_optimizer_write()
 *   and zero_optimizer_init_param() at the next acquire or begin, and edits through views at
 *   zero_optimizer_gather() or begin.
 * - The bits are those of stage 3 without the key. Saves do not depend on it.
 * - zero_optimizer_verify() compares the copies, too.
 * - Memory: parameters take 1/R of their bytes, in the place of 1/L.
 * - Traffic: a rank sends L/R - 1 times the elements that it owns per step. Each acquire of all
 *   parameters sends R - 1 times the elements that the rank keeps. With m micro-steps, a parameter
 *   of b bytes costs 4 + b bytes per step between hosts of R ranks, in the place of 4 + 2 b m.
 * - R divides the ranks of a replica. Refused: stages 0 to 2, where every rank keeps whole
 *   parameters, and ZERO_TIER_DEVICE.
 *
 * **Strategies.** ZERO_KEY_STRATEGY sets the keys that are listed here, but for those that the
 * config sets itself. Replicas are the ranks of a host.
 * - "hsdp": ZERO_KEY_REPLICA_RANKS -1. Hybrid sharding.
 * - "diloco": the same, ZERO_KEY_SYNC_PERIOD 64, ZERO_KEY_SYNC_CODE I4, ZERO_KEY_OUTER_LR 0.7,
 *   ZERO_KEY_OUTER_MOMENTUM 0.9. For links that are too slow for every step.
 * - "slow_link": ZERO_KEY_REPLICA_RANKS -1, ZERO_KEY_GRAD_CODE I4, ZERO_KEY_RESIDUAL F32,
 *   ZERO_KEY_FLUSH_PERIOD 100. All replicas agree in every step.
 * - "zeropp": the keys of "slow_link", ZERO_KEY_STAGE 3 and ZERO_KEY_PARAM_DTYPE F8_E4M3: coded
 *   gradients between hosts and coded parameters within one, as ZeRO++ sends them. States are
 *   sharded over the ranks of a host, not over all ranks.
 *
 * With one host, where nothing travels between replicas, all but "hsdp" are
 * ZERO_E_INVALID_ARGUMENT.
 *
 * **Weights.** With ZERO_DIVISOR_WEIGHTS and a longer period the weights of each replica must not
 * add up to 0. Replicas count alike in the mean.
 *
 * **Limits.** Several replicas need memory of the host, and no model group: ZERO_E_UNSUPPORTED.
 * Parameters of a longer period need fp32 values: ZERO_MASTER_NONE is ZERO_E_UNSUPPORTED for 16-bit
 * and 8-bit ones.
 */
#ifndef ZERO_REPLICAS_H
#define ZERO_REPLICAS_H

#include <zero/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Brings all replicas together now, with an outer step, as at the end of a period without
 * ZERO_KEY_NEIGHBOURS, ZERO_KEY_SYNC_FRAGMENTS and ZERO_KEY_SYNC_MIX. An exchange under way
 * (ZERO_KEY_SYNC_DELAY) takes effect before. The period goes on as if nothing had happened. If
 * replicas are together already, and without replicas, nothing is done.
 *
 * A collective over all ranks, between steps.
 *
 * @param[in]     optimizer   The optimizer, after begin.
 * @param[in]     stream      A stream of the optimizer's device, or NULL.
 * @param[in,out] out_result  The result of the newest step, with `synced` and `spread`; may be
 *                            NULL.
 * @return ZERO_OK. ZERO_E_STATE while gradients of a step were given or acquired, or while
 *         parameters are acquired in stage 3 or with 8-bit parameters. ZERO_E_MISMATCH if replicas
 *         have made different numbers of steps or have different hyper-parameters. The errors of
 *         zero_optimizer_step().
 * @note Threads: one thread per optimizer at a time.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_sync(zero_optimizer *optimizer, void *stream,
                                     zero_step_result *out_result);
/**
 * Begins zero_optimizer_sync() and returns. The result is written when the request has ended.
 *
 * @param[in]     optimizer   As zero_optimizer_sync().
 * @param[in]     stream      As zero_optimizer_sync().
 * @param[in,out] out_result  As zero_optimizer_sync(); it must outlive the request.
 * @param[out]    out         The request (request.h), owned by the caller.
 * @return As zero_optimizer_sync().
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_sync_async(zero_optimizer *optimizer, void *stream,
                                           zero_step_result *out_result, zero_request **out);

#ifdef __cplusplus
}
#endif

#endif
