/*
 * What a run is made of: slots of tensors, and scalars. Slots are read and written by range, whoever owns what, so that a run can be saved
 * and carried on at another world size, in another stage, with other buckets. zero/checkpoint.h does all of that.
 *
 * To save a run, between steps, and not between micro-steps (no slot has what those added up):
 *   - of each tensor all slots: zero_optimizer_slot_count, zero_optimizer_slot, zero_optimizer_read (a tied name's are those of the tensor
 *     that it is tied to: one of the names is enough);
 *   - module buffers, which every rank holds: zero_optimizer_module_buffer;
 *   - of each parameter set the hyper-parameters that were changed on the way (keys 400 .. 499), ZERO_KEY_LOSS_SCALE, and the scalars of the
 *     run (keys 500 .. 599). A key that there is none of is ZERO_E_UNSUPPORTED.
 * What was registered and configured is for the program to make again: names, shapes, dtypes, parameter sets, configs with their seed.
 *
 * To go on: register and seal as before, set the scalars, write all slots, call
 * zero_optimizer_begin(ZERO_SOURCE_SHARDS), and fill module buffers. Set ZERO_KEY_STEP_COUNT before
 * you write ZERO_SLOT_UPDATE_COUNT: it sets that slot of every tensor, so that a run which was
 * saved without the slot goes on as before. The steps that follow have the bits of a run that was
 * not interrupted, at the same world size; at another one contributions are others, and so are
 * their sums.
 *
 * Errors and threads as in optimizer.h.
 */
#ifndef ZERO_SLOTS_H
#define ZERO_SLOTS_H

#include <zero/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Hyper-parameters of a parameter set, from the next step on; the same on all ranks. Other sets keep theirs, also those that had a value
 * from set 0: a schedule sets the rate of every set. Between reduce and gather ZERO_E_STATE.
 *   set    [in] 0, or what zero_optimizer_add_set gave
 *   key    [in] 400 .. 499, or ZERO_KEY_LOSS_SCALE, which all sets share
 * Errors also: ZERO_E_UNSUPPORTED for a key of another kind or algorithm, ZERO_E_STATE for a momentum in sgd sealed with 0. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_set_f64(zero_optimizer *optimizer, int64_t set, int32_t key, double value);
ZERO_API int32_t zero_optimizer_get_f64(const zero_optimizer *optimizer, int64_t set, int32_t key, double *out);

/* Scalars of the run: keys 500 .. 599, the same on all ranks. Errors also: ZERO_E_UNSUPPORTED for another key. Since ZERO_0.1. */
ZERO_API int32_t zero_optimizer_set_i64(zero_optimizer *optimizer, int32_t key, int64_t value);
ZERO_API int32_t zero_optimizer_get_i64(const zero_optimizer *optimizer, int32_t key, int64_t *out);

/*
 * What is kept of a tensor from one step to the next: its parameter and states, slot by slot. Valid after seal.
 *   index      [in]  0 .. count - 1
 *   out_slot   [out] a zero_slot
 *   out_dtype  [out] a zero_dtype
 *   out_count  [out] slot_count: number of slots; slot: entries of this slot, which are one per
 *                    element, for scales one per 256 elements, and for ZERO_SLOT_UPDATE_COUNT one;
 *                    a tensor without elements has no entries. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_slot_count(const zero_optimizer *optimizer, int64_t id, int64_t *out_count);
ZERO_API int32_t zero_optimizer_slot(const zero_optimizer *optimizer, int64_t id, int64_t index, int64_t *out_slot, int64_t *out_dtype,
                                     int64_t *out_count);

/*
 * Reads or writes elements of one slot of a tensor, whoever owns them. A collective in which each rank gives its own range, which may be
 * empty; overlapping writes: the highest rank's values stay. Parameters are written between steps and visible after
 * begin(ZERO_SOURCE_SHARDS), which takes all of a tensor's master where a part of it was written since the last begin or step.
 *   id, slot       [in] the same on all ranks; ZERO_SLOT_GRAD is read between reduce and gather only, and cannot be written
 *   offset, count  [in] in entries of the slot (zero_optimizer_slot)
 *   data           [out, in] count entries of the slot's dtype, in the host's memory; may be NULL
 *                            when count is 0. An update count is 0 .. 2^62. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_read(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, void *data, int64_t count,
                                     void *stream);
ZERO_API int32_t zero_optimizer_read_async(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, void *data, int64_t count,
                                           void *stream, zero_request **out);
ZERO_API int32_t zero_optimizer_write(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count,
                                      void *stream);
ZERO_API int32_t zero_optimizer_write_async(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, const void *data,
                                            int64_t count, void *stream, zero_request **out);

#ifdef __cplusplus
}
#endif

#endif
