/**
 * @file
 * Slots and scalars: the state of a run. Slots are read and written by range, whichever rank owns
 * them. A run can therefore be saved and continued at another world size, in another stage, with
 * other buckets. The functions of checkpoint.h do that with files.
 *
 * @code
 * int64_t slots, slot, dtype, entries;
 * zero_optimizer_slot_count(optimizer, id, &slots);
 * for (int64_t i = 0; i < slots; i++) {
 *   zero_optimizer_slot(optimizer, id, i, &slot, &dtype, &entries);
 *   // rank 0 reads all entries into `data` and saves them; the other ranks read none
 *   const int64_t count = rank == 0 ? entries : 0;
 *   zero_optimizer_read(optimizer, id, (int32_t)slot, 0, data, count, NULL);
 * }
 * @endcode
 *
 * **To save a run**, between steps, and not between micro-steps (no slot holds their sums):
 * - Save all slots of each tensor: zero_optimizer_slot_count(), zero_optimizer_slot(),
 *   zero_optimizer_read(). The slots of a tied name are those of the tensor that it is tied to, so
 *   one of the names is enough.
 * - Save module buffers, which every rank holds: zero_optimizer_module_buffer().
 * - Save the hyper-parameters of each parameter set that were changed (keys 400 .. 499),
 *   ZERO_KEY_LOSS_SCALE, and the scalars of the run (keys 500 .. 599). A key that the optimizer
 *   does not have returns ZERO_E_UNSUPPORTED.
 * - The program itself must recreate the registration and configuration: names, shapes, dtypes,
 *   parameter sets, and configs with their seed.
 *
 * **To continue:** register and seal as before, set the scalars, write all slots, call
 * zero_optimizer_begin() with ZERO_SOURCE_SHARDS, and fill module buffers.
 * - Set ZERO_KEY_STEP_COUNT before you write ZERO_SLOT_UPDATE_COUNT. The key sets that slot of
 *   every tensor, so a run that was saved without the slot continues as before.
 * - At the same world size, the following steps have the bits of a run that was not interrupted. At
 *   another world size the contributions differ, and so do their sums.
 *
 * Errors and threads are those of optimizer.h.
 */
#ifndef ZERO_SLOTS_H
#define ZERO_SLOTS_H

#include <zero/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sets a hyper-parameter of a parameter set, from the next step on; the same on all ranks.
 *
 * Other sets keep their values, also sets that took the value from set 0. A schedule therefore sets
 * the rate of every set.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] set        0, or a number that zero_optimizer_add_set() returned.
 * @param[in] key        400 .. 499, or ZERO_KEY_LOSS_SCALE, which all sets share.
 * @param[in] value      A value within the bounds of the key.
 * @return ZERO_OK. ZERO_E_UNSUPPORTED for a key of another kind or algorithm. ZERO_E_STATE between
 *         reduce and gather, and for a momentum in sgd that was sealed with 0.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_set_f64(zero_optimizer *optimizer, int64_t set, int32_t key,
                                        double value);
/**
 * Returns a hyper-parameter of a parameter set. Keys and errors as zero_optimizer_set_f64().
 *
 * @param[in]  optimizer  The optimizer.
 * @param[in]  set        0, or a number that zero_optimizer_add_set() returned.
 * @param[in]  key        400 .. 499, or ZERO_KEY_LOSS_SCALE.
 * @param[out] out        The value.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_get_f64(const zero_optimizer *optimizer, int64_t set, int32_t key,
                                        double *out);

/**
 * Sets a scalar of the run; the same on all ranks.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] key        500 .. 599.
 * @param[in] value      A value within the bounds of the key.
 * @return ZERO_OK; ZERO_E_UNSUPPORTED for another key.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_set_i64(zero_optimizer *optimizer, int32_t key, int64_t value);
/**
 * Returns a scalar of the run.
 *
 * @param[in]  optimizer  The optimizer.
 * @param[in]  key        500 .. 599.
 * @param[out] out        The value.
 * @return ZERO_OK; ZERO_E_UNSUPPORTED for another key.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_get_i64(const zero_optimizer *optimizer, int32_t key, int64_t *out);

/**
 * Returns the number of slots that a tensor keeps from one step to the next: its parameter and
 * states. Valid after seal.
 *
 * @param[in]  optimizer  The optimizer.
 * @param[in]  id         The parameter.
 * @param[out] out_count  The number of slots.
 * @return ZERO_OK or an error of all functions of optimizer.h.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_slot_count(const zero_optimizer *optimizer, int64_t id,
                                           int64_t *out_count);
/**
 * Returns a slot of a tensor. Valid after seal.
 *
 * @param[in]  optimizer  The optimizer.
 * @param[in]  id         The parameter.
 * @param[in]  index      0 .. count - 1.
 * @param[out] out_slot   A zero_slot.
 * @param[out] out_dtype  A zero_dtype.
 * @param[out] out_count  The entries of this slot: one per element, for scales one per 256
 *                        elements, for ZERO_SLOT_UPDATE_COUNT one. A tensor without elements has no
 *                        entries.
 * @return ZERO_OK or an error of all functions of optimizer.h.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_slot(const zero_optimizer *optimizer, int64_t id, int64_t index,
                                     int64_t *out_slot, int64_t *out_dtype, int64_t *out_count);

/**
 * Reads entries of one slot of a tensor, whichever rank owns them. A collective: each rank gives
 * its own range, which may be empty.
 *
 * After ranks were lost it is no collective any more. It then serves a range that lies on this rank
 * (optimizer.h), also if this call is the first to find the loss; the next call that needs other
 * ranks returns the loss. A range that is empty, or lies on other ranks, returns the loss.
 *
 * @param[in]  optimizer  The optimizer.
 * @param[in]  id         The parameter, the same on all ranks.
 * @param[in]  slot       A zero_slot, the same on all ranks. ZERO_SLOT_GRAD is readable between
 *                        reduce and gather only.
 * @param[in]  offset     The first entry of the slot (zero_optimizer_slot()).
 * @param[out] data       Receives the entries in the slot's dtype, in host memory; may be NULL if
 *                        count is 0.
 * @param[in]  count      The number of entries.
 * @param[in]  stream     NULL, or a stream of ZERO_KEY_DEVICE.
 * @return ZERO_OK or an error of collectives. ZERO_E_CORRUPT if ranks were lost within a step.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_read(zero_optimizer *optimizer, int64_t id, int32_t slot,
                                     int64_t offset, void *data, int64_t count, void *stream);
/** Begins zero_optimizer_read() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_read_async(zero_optimizer *optimizer, int64_t id, int32_t slot,
                                           int64_t offset, void *data, int64_t count, void *stream,
                                           zero_request **out);
/**
 * Writes entries of one slot of a tensor, whichever rank owns them. A collective: each rank gives
 * its own range, which may be empty. If ranges of several ranks overlap, the values of the highest
 * rank stay.
 *
 * Parameters are written between steps. They become visible after zero_optimizer_begin() with
 * ZERO_SOURCE_SHARDS. If a part of a tensor's master was written since the last begin or step,
 * begin takes all of that master.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] id         The parameter, the same on all ranks.
 * @param[in] slot       A zero_slot, the same on all ranks. ZERO_SLOT_GRAD cannot be written.
 * @param[in] offset     The first entry of the slot (zero_optimizer_slot()).
 * @param[in] data       Entries in the slot's dtype, in host memory; may be NULL if count is 0. An
 *                       update count is 0 .. 2^62.
 * @param[in] count      The number of entries.
 * @param[in] stream     NULL, or a stream of ZERO_KEY_DEVICE.
 * @return ZERO_OK or an error of collectives.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_write(zero_optimizer *optimizer, int64_t id, int32_t slot,
                                      int64_t offset, const void *data, int64_t count,
                                      void *stream);
/** Begins zero_optimizer_write() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_write_async(zero_optimizer *optimizer, int64_t id, int32_t slot,
                                            int64_t offset, const void *data, int64_t count,
                                            void *stream, zero_request **out);

#ifdef __cplusplus
}
#endif

#endif
