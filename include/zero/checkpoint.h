/*
 * Checkpoints: what a run needs to go on later, at any number of ranks and any stage.
 *
 *     int64_t found = 0;
 *     zero_optimizer_seal(optimizer);
 *     zero_optimizer_resume(optimizer, "saves", NULL, &found);
 *     if (!found) zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL);
 *     for (...) {
 *         ... one step ...
 *         if (step % 100 == 0) zero_optimizer_save(optimizer, "saves", NULL);
 *     }
 *
 * A save is a folder inside the folder that you name: safetensors files, one or more with whole
 * parameters that other tools can read, one per rank with its shard of the states, and a manifest.
 * The manifest is written last. A save without a valid manifest counts as no save, so a crash, a
 * kill or a full disk never leaves half a save behind that is taken for a whole one. Every block
 * of every file has a hash that is checked before its bytes are used. (The hashes find damage by
 * accident. They do not protect against someone who changes files on purpose.)
 *
 * Guarantees:
 *   - A call that returns ZERO_OK has made the save durable, on all ranks or on none.
 *   - A save that fails changes nothing in memory. The group and the optimizer stay usable,
 *     whatever the code, and older saves stay as they are. All ranks return the same code and the
 *     same text, which names the rank, the file and the cause. (A rank that is lost during a save
 *     is ZERO_E_PEER_LOST; later saves of that checkpoint then fail, too.)
 *   - A load that fails leaves its optimizers sealed: their values are undefined until the next
 *     load or begin. Errors that are found before the first byte is used change nothing.
 *   - The library keeps all saves, unless ZERO_KEY_CHECKPOINT_KEEP says how many.
 *
 * Bits. A run that was loaded goes on with the bits of the run that never stopped, when it has as
 * many ranks; with another number of ranks, sums over ranks have another order. Which stage,
 * bucket size, transport or shard weights either run has makes no difference.
 *
 * Precision. Element by element, the value of a parameter is its fp32 master, or the bf16
 * parameter with its remainder, or the parameter itself. If the optimizer keeps parameters as the
 * save does, every bit is copied. Otherwise its master becomes that value, and its parameter the
 * value rounded once. Moments of another dtype are an error unless ZERO_KEY_CHECKPOINT_CONVERT is 1.
 *
 * All ranks of the group call save and load in the same order, between steps; both are collectives.
 * Errors of all functions: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT, ZERO_E_OUT_OF_MEMORY.
 * Threads: one thread per checkpoint, and per optimizer that it holds, at a time.
 */
#ifndef ZERO_CHECKPOINT_H
#define ZERO_CHECKPOINT_H

#include <zero/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zero_checkpoint zero_checkpoint;

/* Which ranks have a user tensor (zero_checkpoint_add_tensor). */
enum zero_scope {
  ZERO_SCOPE_ONE = 0, /* rank 0's is saved; a load gives it to all ranks */
  ZERO_SCOPE_EACH = 1 /* every rank saves its own; with more ranks than were saved, the rest get rank 0's */
};

/* What a load takes out of a save. */
enum zero_part {
  ZERO_PART_ALL = 0,
  ZERO_PART_PARAMS = 1 /* values of parameters alone: states, scalars, user tensors and texts stay as they are */
};

/* The outcome of a save or a load, the same on all ranks but for times. Only 8-byte fields; fields are appended, never moved. */
typedef struct zero_checkpoint_result {
  uint64_t struct_size; /* [in] sizeof(zero_checkpoint_result) as the caller knows it */
  int64_t step;         /* steps applied, of the first optimizer */
  int64_t nbytes;       /* of all files of the save; of a load: bytes that this rank read */
  int64_t file_count;   /* without the manifest */
  int64_t write_ns;     /* this rank: streaming its files, or reading */
  int64_t sync_ns;      /* this rank: making them durable */
  int64_t commit_ns;    /* from the end of the slowest rank's files to the commit */
  int64_t direct;       /* 1: files went past the page cache (O_DIRECT) */
  int64_t missing;      /* load: names that the save lacks and ZERO_KEY_CHECKPOINT_MISSING passed over */
  int64_t extra;        /* load: names that only the save has and ZERO_KEY_CHECKPOINT_EXTRA passed over */
  int64_t converted;    /* load: tensors whose values were rounded into another dtype */
  int64_t fallback;     /* load: damaged saves that are newer than the one that was taken */
} zero_checkpoint_result;

/* Sets every field to zero and struct_size to the given size. Errors: ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1. */
ZERO_API int32_t zero_checkpoint_result_init(zero_checkpoint_result *out, uint64_t struct_size);

/*
 * The short form: saves one optimizer with all that belongs to it, or loads the newest valid save.
 *   folder     [in]  the folder that holds the saves of this run; must exist for save
 *   out_found  [out] 1: a save was loaded, and the optimizer runs; 0: there is no committed save,
 *                    and the optimizer is as it was
 * Settings are the defaults of ZERO_KEY_CHECKPOINT_... Errors also: ZERO_E_STATE between reduce
 * and gather or once gradients of a step were given, ZERO_E_SYSTEM, ZERO_E_CHECKPOINT (there are
 * saves, but none is valid or fits this model). Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_save(zero_optimizer *optimizer, const char *folder, void *stream);
ZERO_API int32_t zero_optimizer_save_async(zero_optimizer *optimizer, const char *folder, void *stream, zero_request **out);
ZERO_API int32_t zero_optimizer_resume(zero_optimizer *optimizer, const char *folder, void *stream, int64_t *out_found);
ZERO_API int32_t zero_optimizer_resume_async(zero_optimizer *optimizer, const char *folder, void *stream, int64_t *out_found,
                                             zero_request **out);

/*
 * Makes a checkpoint: a list of things that are saved and loaded together.
 *   group   [in]  all ranks that save together; kept alive by the checkpoint
 *   config  [in]  keys 600 .. 699, or NULL for defaults
 *   out     [out] the checkpoint, the caller's
 * Errors also: ZERO_E_UNSUPPORTED for a key of another kind. Not a collective. Since ZERO_0.1.
 */
ZERO_API int32_t zero_checkpoint_create(zero_group *group, const zero_config *config, zero_checkpoint **out);

/*
 * Adds something to the list. All ranks add the same in the same order. Not a collective.
 *   prefix         [in] stands before the names of the optimizer's tensors in files; "" or for example "stage1."; unique
 *   optimizer      [in] over the ranks of the checkpoint's group; kept alive by the checkpoint
 *   name           [in] 1 to 255 bytes of UTF-8, unique in the checkpoint
 *   buffer         [in] over the ranks of the checkpoint's group; kept alive by the checkpoint
 *   dtype, shape, ndim  [in] of the user tensor, as in zero_optimizer_add_module_buffer
 *   data           [in] its elements in the host's memory, which save reads and load writes; must stay valid
 *   scope          [in] a zero_scope
 * Errors also: ZERO_E_UNSUPPORTED for an optimizer or buffer whose group has other ranks. Since ZERO_0.1.
 */
ZERO_API int32_t zero_checkpoint_add_optimizer(zero_checkpoint *checkpoint, const char *prefix, zero_optimizer *optimizer);
ZERO_API int32_t zero_checkpoint_add_buffer(zero_checkpoint *checkpoint, const char *name, zero_buffer *buffer);
ZERO_API int32_t zero_checkpoint_add_tensor(zero_checkpoint *checkpoint, const char *name, int32_t dtype, const int64_t *shape,
                                            int64_t ndim, void *data, int32_t scope);

/*
 * Texts of the program that a save holds, such as its place in the data: rank 0's are saved.
 *   key         [in]  1 to 255 bytes of UTF-8
 *   text        [in]  at most 65536 bytes of UTF-8; NULL removes the key
 *   out         [out] the text, always terminated, cut to fit; may be NULL when out_nbytes is 0
 *   out_needed  [out] bytes of the whole text with its terminator; may be NULL
 * After a load, texts are those of the save. Errors also: ZERO_E_NOT_FOUND for a key that has no
 * text. Since ZERO_0.1.
 */
ZERO_API int32_t zero_checkpoint_set_text(zero_checkpoint *checkpoint, const char *key, const char *text);
ZERO_API int32_t zero_checkpoint_get_text(const zero_checkpoint *checkpoint, const char *key, char *out, int64_t out_nbytes,
                                          int64_t *out_needed);

/*
 * Says that a tensor of a save has another name here. For loads.
 *   in_file  [in] the name in the save, with its prefix; or "old.*"
 *   here     [in] the name in this program, with its prefix; or "new.*" where in_file ends with ".*"
 * The first rule that fits a name applies. Since ZERO_0.1.
 */
ZERO_API int32_t zero_checkpoint_rename(zero_checkpoint *checkpoint, const char *in_file, const char *here);

/*
 * Saves everything in the list. Optimizers must have begun, and no step may be under way.
 *   folder      [in]      an existing folder in which the save gets a folder of its own
 *   stream      [in]      of the optimizers' device; NULL on the host
 *   out_result  [in, out] struct_size set by the caller; or NULL
 * Errors also: ZERO_E_STATE, ZERO_E_SYSTEM (disk full, no permission, input or output error),
 * ZERO_E_MISMATCH (ranks gave other folders, steps or lists; nothing was written, and the group
 * stays usable), ZERO_E_TIMEOUT (ZERO_KEY_CHECKPOINT_PROGRESS_MS). If the text says "may have been
 * committed", the next load finds out. Since ZERO_0.1.
 */
ZERO_API int32_t zero_checkpoint_save(zero_checkpoint *checkpoint, const char *folder, void *stream, zero_checkpoint_result *out_result);
ZERO_API int32_t zero_checkpoint_save_async(zero_checkpoint *checkpoint, const char *folder, void *stream,
                                            zero_checkpoint_result *out_result, zero_request **out);

/*
 * Loads into everything in the list. Optimizers are sealed or between steps, and run afterwards.
 *   folder      [in]      a folder of saves: the newest valid one is taken; or one save
 *   part        [in]      a zero_part
 *   stream      [in]      as in save
 *   out_result  [in, out] struct_size set by the caller; or NULL
 * Hyper-parameters are then those of the save; set others afterwards. The loss scale is the save's
 * if both runs have a dynamic one, or neither.
 * Errors also: ZERO_E_NOT_FOUND (there is no committed save: only then start anew),
 * ZERO_E_CHECKPOINT (damaged, or of another model: the text lists up to twenty names, the count and
 * the key that allows them), ZERO_E_STATE, ZERO_E_SYSTEM, ZERO_E_MISMATCH as in save. Since ZERO_0.1.
 */
ZERO_API int32_t zero_checkpoint_load(zero_checkpoint *checkpoint, const char *folder, int32_t part, void *stream,
                                      zero_checkpoint_result *out_result);
ZERO_API int32_t zero_checkpoint_load_async(zero_checkpoint *checkpoint, const char *folder, int32_t part, void *stream,
                                            zero_checkpoint_result *out_result, zero_request **out);

/*
 * The names that the last load passed over or converted, one a line: "missing NAME", "extra NAME",
 * "converted NAME". As zero_describe_group otherwise. Since ZERO_0.1.
 */
ZERO_API int32_t zero_checkpoint_skipped(const zero_checkpoint *checkpoint, char *out, int64_t out_nbytes, int64_t *out_needed);

/* Gives the handle back; NULL is allowed. Not a collective. Threads: any. Since ZERO_0.1. */
ZERO_API void zero_checkpoint_release(zero_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif

#endif
