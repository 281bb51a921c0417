/*
 * Saves as tools see them: one process looks at saves, checks, compares, exports and removes them.
 * No group and no optimizer is needed. (zero/checkpoint.h makes saves and loads them.)
 *
 *     zero_save *save = NULL;
 *     if (zero_save_open("saves", &save) == ZERO_OK) {
 *       if (zero_save_verify(save) == ZERO_OK) zero_save_export(save, "model.safetensors");
 *       zero_save_release(save);
 *     }
 *
 * A folder of saves holds one folder for each save. A save counts once its manifest is in place.
 * Errors of all functions: ZERO_E_INVALID_ARGUMENT, ZERO_E_BAD_HANDLE, ZERO_E_OUT_OF_MEMORY,
 * ZERO_E_SYSTEM (the system refused something; the text holds its reason), ZERO_E_NOT_FOUND (there
 * is no such folder, or no committed save in it), ZERO_E_CHECKPOINT (a file is damaged; the text
 * names file, block and tensor).
 * Threads: one thread per save at a time, but for zero_save_progress.
 */
#ifndef ZERO_SAVE_H
#define ZERO_SAVE_H

#include <zero/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zero_save zero_save;

/* How a text is written. */
enum zero_text_form {
  ZERO_TEXT_PLAIN = 0, /* lines for people */
  ZERO_TEXT_JSON = 1   /* one JSON value for programs */
};

/*
 * Opens a save: reads its manifest and checks the sizes of its files.
 *   path  [in]  a save; or a folder of saves, of which the newest valid one is taken
 *   out   [out] the save, the caller's
 * Since ZERO_0.1.
 */
ZERO_API int32_t zero_save_open(const char *path, zero_save **out);

/*
 * Texts, always terminated and cut to fit.
 *   folder      [in]  a folder of saves; list tells of all that it holds, newest first: committed,
 *                     valid or damaged, step, size, ranks, time, run
 *   form        [in]  a zero_text_form
 *   out         [out] may be NULL when out_nbytes is 0
 *   out_needed  [out] bytes of the whole text with its terminator; may be NULL
 * describe: all that the manifest says: step, run, tensors with types, shapes and slots, settings,
 * texts of the program, files. Since ZERO_0.1.
 */
ZERO_API int32_t zero_save_list(const char *folder, int32_t form, char *out, int64_t out_nbytes, int64_t *out_needed);
ZERO_API int32_t zero_save_describe(const zero_save *save, int32_t form, char *out, int64_t out_nbytes, int64_t *out_needed);

/* Reads all files whole and checks every block and every header. Since ZERO_0.1. */
ZERO_API int32_t zero_save_verify(zero_save *save);

/*
 * Compares two saves slot by slot, whatever number of ranks wrote them. Steps, ids and times may differ.
 *   out_count  [out] how many things differ: 0 when the saves hold the same
 * differences: the text of the last comparison of `save`, a line or an object for each. Since ZERO_0.1.
 */
ZERO_API int32_t zero_save_compare(zero_save *save, zero_save *other, int64_t *out_count);
ZERO_API int32_t zero_save_differences(const zero_save *save, int32_t form, char *out, int64_t out_nbytes, int64_t *out_needed);

/*
 * Writes the parameters as plain safetensors, as they were saved.
 *   path  [in] a name that ends with ".safetensors", which is replaced if it exists; or a folder
 *              that is new or holds no safetensors
 * Since ZERO_0.1.
 */
ZERO_API int32_t zero_save_export(zero_save *save, const char *path);

/*
 * The names of committed saves of `folder` beyond the `keep` newest of each run, one a line, oldest
 * first: what a caller may want to remove. Damaged ones are not among them.
 *   keep  [in] at least 1
 * remove: deletes one save of a folder: its commit first, then its files. The newest valid save of
 * the folder is refused with ZERO_E_STATE. Since ZERO_0.1.
 */
ZERO_API int32_t zero_save_prunable(const char *folder, int64_t keep, char *out, int64_t out_nbytes, int64_t *out_needed);
ZERO_API int32_t zero_save_remove(const char *folder, const char *name);

/*
 * How far verify, compare or export of this save has come.
 *   out_done, out_total  [out] bytes
 * Threads: any, also while another thread is in one of these calls. Since ZERO_0.1.
 */
ZERO_API int32_t zero_save_progress(const zero_save *save, int64_t *out_done, int64_t *out_total);

/* Gives the handle back; NULL is allowed. Since ZERO_0.1. */
ZERO_API void zero_save_release(zero_save *save);

#ifdef __cplusplus
}
#endif

#endif
