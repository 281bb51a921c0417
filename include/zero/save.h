/**
 * @file
 * Saves as tools see them: one process lists, inspects, verifies, compares, exports and removes
 * saves. No group and no optimizer is needed. The functions of checkpoint.h make and load saves.
 *
 * @code
 * zero_save *save = NULL;
 * if (zero_save_open("saves", &save) == ZERO_OK) {
 *   if (zero_save_verify(save) == ZERO_OK) zero_save_export(save, "model.safetensors");
 *   zero_save_release(save);
 * }
 * @endcode
 *
 * A folder of saves holds one folder for each save. A save counts once its manifest is in place.
 *
 * **Errors of all functions.**
 * - ZERO_E_INVALID_ARGUMENT, ZERO_E_BAD_HANDLE, ZERO_E_OUT_OF_MEMORY.
 * - ZERO_E_SYSTEM if the system refuses a call. The text holds its reason.
 * - ZERO_E_NOT_FOUND if there is no such folder, or no committed save in it.
 * - ZERO_E_CHECKPOINT if a file is damaged. The text names the file, the block and the tensor.
 *
 * **Threads.** One thread at a time per save, except for zero_save_progress().
 */
#ifndef ZERO_SAVE_H
#define ZERO_SAVE_H

#include <zero/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A save that was opened; the caller gives it back with zero_save_release(). */
typedef struct zero_save zero_save;

/** The form of a text. */
enum zero_text_form {
  ZERO_TEXT_PLAIN = 0, /**< Lines for people. */
  ZERO_TEXT_JSON = 1   /**< One JSON value for programs. */
};

/**
 * Opens a save: reads its manifest and checks the sizes of its files.
 *
 * @param[in]  path  A save; or a folder of saves, of which the newest valid one is opened.
 * @param[out] out   The save; the caller owns it.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_save_open(const char *path, zero_save **out);

/**
 * Lists all that a folder of saves holds, newest first: whether each save is committed, valid,
 * damaged or unreadable, its step, size, number of ranks, time and run.
 *
 * @param[in]  folder      The folder of saves.
 * @param[in]  form        A zero_text_form.
 * @param[out] out         The text, always terminated, cut to fit. May be NULL if out_nbytes is 0.
 * @param[in]  out_nbytes  Bytes at `out`.
 * @param[out] out_needed  Bytes of the whole text with its terminator; may be NULL.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_save_list(const char *folder, int32_t form, char *out, int64_t out_nbytes,
                                int64_t *out_needed);
/**
 * Describes a save as its manifest does: step, run, tensors with types, shapes and slots, settings,
 * texts of the program, and files.
 *
 * @param[in]  save        The save.
 * @param[in]  form        A zero_text_form.
 * @param[out] out         As in zero_save_list().
 * @param[in]  out_nbytes  Bytes at `out`.
 * @param[out] out_needed  As in zero_save_list().
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_save_describe(const zero_save *save, int32_t form, char *out,
                                    int64_t out_nbytes, int64_t *out_needed);

/**
 * Reads all files and checks every block and every header.
 *
 * @param[in] save  The save.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_save_verify(zero_save *save);

/**
 * Compares two saves: steps, texts, settings, names, shapes and types, and the values of each slot.
 * Ids and times may differ, and the number of ranks. Values that each rank holds for itself are
 * compared rank by rank.
 *
 * @param[in]  save       The save, which keeps the differences.
 * @param[in]  other      The save it is compared with.
 * @param[out] out_count  The number of differences; 0 if the saves hold the same.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_save_compare(zero_save *save, zero_save *other, int64_t *out_count);
/**
 * Returns the differences that the last comparison of `save` found, a line or an object for each.
 *
 * @param[in]  save        The save.
 * @param[in]  form        A zero_text_form.
 * @param[out] out         As in zero_save_list().
 * @param[in]  out_nbytes  Bytes at `out`.
 * @param[out] out_needed  As in zero_save_list().
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_save_differences(const zero_save *save, int32_t form, char *out,
                                       int64_t out_nbytes, int64_t *out_needed);

/**
 * Writes the parameters as plain safetensors, as they were saved.
 *
 * @param[in] save  The save.
 * @param[in] path  A name that ends with ".safetensors", which is replaced if it exists; or a
 *                  folder that is new or holds no safetensors.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_save_export(zero_save *save, const char *path);

/**
 * Lists the committed saves of a folder beyond the newest ones of each run, one name a line, oldest
 * first. Damaged saves are not among them.
 *
 * @param[in]  folder      The folder of saves.
 * @param[in]  keep        The number of newest saves of each run that are not listed; at least 1.
 * @param[out] out         As in zero_save_list().
 * @param[in]  out_nbytes  Bytes at `out`.
 * @param[out] out_needed  As in zero_save_list().
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_save_prunable(const char *folder, int64_t keep, char *out, int64_t out_nbytes,
                                    int64_t *out_needed);
/**
 * Removes one save of a folder: first its commit, then its files.
 *
 * @param[in] folder  The folder of saves.
 * @param[in] name    The name of the save.
 * @return ZERO_OK or an error of all functions. ZERO_E_STATE if the save is the newest valid one of
 *   the folder, which is not removed; ZERO_E_NOT_FOUND if there is no such save.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_save_remove(const char *folder, const char *name);

/**
 * Returns the progress of verify, compare or export of a save.
 *
 * @param[in]  save       The save.
 * @param[out] out_done   Bytes processed.
 * @param[out] out_total  Bytes in total.
 * @return ZERO_OK or an error of all functions.
 * @note Threads: any, also while another thread is in one of these calls.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_save_progress(const zero_save *save, int64_t *out_done, int64_t *out_total);

/**
 * Gives a save back.
 *
 * @param[in] save  The save, or NULL.
 * @since ZERO_0.1
 */
ZERO_API void zero_save_release(zero_save *save);

#ifdef __cplusplus
}
#endif

#endif
