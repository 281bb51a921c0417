/**
 * @file
 * Checkpoints: a run is saved to a folder, and continues later at any number of ranks and in any
 * stage.
 *
 * @code
 * int64_t found = 0;
 * mkdir("saves", 0777);                                  // the folder must exist
 * zero_optimizer_seal(optimizer);
 * zero_optimizer_resume(optimizer, "saves", NULL, &found);
 * if (!found) zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL);
 * for (int step = 0; step < steps; step++) {
 *   ...                                                  // one step
 *   if (step % 100 == 99) zero_optimizer_save(optimizer, "saves", NULL);
 * }
 * @endcode
 *
 * **Files.** A save is a folder inside the folder that the caller names. It holds safetensors
 * files: one or more with whole parameters, which other tools can read (unless
 * ZERO_KEY_CHECKPOINT_MODEL_FILES is 0), and one per rank with its shard of the states. It also
 * holds a manifest, which is written last. A save without a valid manifest does not count, so a
 * crash, a kill or a full disk never leaves half a save that is taken for a whole one. Every block
 * of every file has a hash, which is checked before the bytes are used. The hashes find accidental
 * damage; they do not protect against deliberate changes.
 *
 * **Plain files.** zero_checkpoint_export() writes parameters as safetensors without a manifest,
 * for other tools. zero_checkpoint_load() with ZERO_PART_PARAMS reads such files of any tool. For
 * example, fine-tuning starts from files of Hugging Face's layout:
 *
 * @code
 * zero_checkpoint_rename(checkpoint, "h.*", "transformer.h.*");   // their names, and those here
 * zero_checkpoint_load(checkpoint, "gpt2/model.safetensors", ZERO_PART_PARAMS, NULL, NULL);
 * ...                                                             // steps
 * zero_checkpoint_export(checkpoint, "tuned", ZERO_DTYPE_BF16, NULL, NULL);
 * @endcode
 *
 * Plain files have no hashes: sizes, names and shapes are checked, but not the bytes of tensors.
 *
 * **Guarantees.**
 * - A save that returns ZERO_OK is durable, on all ranks, unless ZERO_KEY_CHECKPOINT_SYNC is 0.
 * - A save that fails changes nothing in memory. The group and the optimizer stay usable, whatever
 *   the code, and older saves stay as they are.
 * - An error in a file, an argument or a state has the same code and text on all ranks. The text
 *   names the rank, the file and the cause. If one rank alone fails otherwise, for example for
 *   lack of memory, the others return ZERO_E_PEER_FAILED.
 * - If a rank is lost, the others return ZERO_E_PEER_LOST, ZERO_E_PEER_LEFT or ZERO_E_PEER_FAILED.
 *   Later saves and loads of that checkpoint then fail too, and so do those of every checkpoint
 *   with the same first optimizer.
 * - A load that fails after it has begun to read values leaves its optimizers sealed. Their values,
 *   and those of module buffers, buffers and tensors in the list, are undefined until the next load
 *   or begin. Errors found before that change nothing. An error after all values were read loses
 *   the optimizer, as one of begin does.
 * - The library keeps all saves, unless ZERO_KEY_CHECKPOINT_KEEP limits them.
 *
 * **Bits.** With as many ranks as before, a loaded run continues with the bits of the run that
 * never stopped. With another number of ranks, the sums over ranks have another order. The stage,
 * bucket size, transport and shard weights of either run make no difference.
 *
 * **Precision.** Element by element, the value of a parameter is its fp32 master, the bf16
 * parameter with its remainder, or the parameter itself. If the optimizer keeps parameters as the
 * save does, all bits are copied. Otherwise its master becomes that value, and its parameter the
 * value rounded once. Moments of another dtype are an error, unless ZERO_KEY_CHECKPOINT_CONVERT
 * is 1. With ZERO_PART_PARAMS, parameters are loaded as they were saved, without masters.
 *
 * **Memory.** A save or load takes ZERO_KEY_CHECKPOINT_STAGING_BYTES on each rank (at least 2 MiB),
 * the headers of its files, and 8 bytes for each MiB of all files. In stage 3, a save with model
 * files takes half as much again, for pieces that a rank sends. An asynchronous save also takes
 * its copies (snapshot_nbytes): with ZERO_SNAPSHOT_COPY all that this rank writes.
 *
 * **Collectives.** save, load, resume and export are collectives. All ranks of the group call them
 * in the same order, between steps.
 *
 * **Errors of all functions.** ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT, ZERO_E_OUT_OF_MEMORY.
 *
 * **Threads.** One thread at a time per checkpoint, and per optimizer in it. While a save or load
 * of a checkpoint is in progress, functions that change or read its list return ZERO_E_STATE. Saves
 * and loads of checkpoints that share an optimizer must not be in progress at the same time, and
 * neither must requests on a buffer in the list.
 */
#ifndef ZERO_CHECKPOINT_H
#define ZERO_CHECKPOINT_H

#include <zero/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A list of things that are saved and loaded together; the caller gives it back with
    zero_checkpoint_release(). */
typedef struct zero_checkpoint zero_checkpoint;

/** The ranks whose values of a user tensor are saved (zero_checkpoint_add_tensor()). */
enum zero_scope {
  /** The values of rank 0 are saved; a load gives them to all ranks. */
  ZERO_SCOPE_ONE = 0,
  /** Every rank saves its own values. If a load has more ranks than the save, the additional ranks
      receive the values of rank 0. */
  ZERO_SCOPE_EACH = 1
};

/** The part of a save that a load uses. */
enum zero_part {
  /** All of it. */
  ZERO_PART_ALL = 0,
  /** The values of parameters alone. States, scalars, user tensors and texts stay as they are. */
  ZERO_PART_PARAMS = 1
};

/** A value of the argument `dtype` of zero_checkpoint_export(), beside those of zero_dtype. */
enum zero_export {
  /** Each parameter is written as the optimizer keeps it. */
  ZERO_EXPORT_AS_KEPT = 0
};

/**
 * The outcome of a save, a load or an export, the same on all ranks except for times, direct,
 * snapshot_nbytes, and nbytes of a load. All fields have 8 bytes; fields are appended, never moved.
 */
typedef struct zero_checkpoint_result {
  uint64_t struct_size; /**< In: sizeof(zero_checkpoint_result) as the caller knows it. */
  int64_t step;         /**< Steps applied, of the first optimizer. */
  int64_t nbytes;       /**< Save, export: bytes of all files. Load: bytes that this rank read. */
  int64_t file_count;   /**< Files, without a save's manifest and without an export's index. */
  int64_t write_ns;     /**< Nanoseconds in which this rank wrote or read its files. */
  int64_t sync_ns;      /**< Nanoseconds in which this rank made its files durable. */
  int64_t commit_ns;    /**< Nanoseconds from the slowest rank's last file to the commit. */
  int64_t direct;       /**< 1 if files bypassed the page cache (O_DIRECT), otherwise 0. */
  int64_t missing;      /**< Load: names that the save lacks (ZERO_KEY_CHECKPOINT_MISSING). */
  int64_t extra;        /**< Load: names that only the save has (ZERO_KEY_CHECKPOINT_EXTRA). */
  int64_t converted;    /**< Load: tensors whose values were rounded into another dtype. */
  int64_t fallback;     /**< Load: damaged saves that are newer than the one loaded. */
  int64_t snapshot_nbytes; /**< Asynchronous save: bytes of the optimizers this rank copied. */
  /** Save: nanoseconds in which this rank's optimizers could not be used, or an update waited. */
  int64_t stall_ns;
} zero_checkpoint_result;

/**
 * Sets every field to zero and struct_size to the given size.
 *
 * @param[out] out          The result to initialise.
 * @param[in]  struct_size  sizeof(zero_checkpoint_result).
 * @return ZERO_OK or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_result_init(zero_checkpoint_result *out, uint64_t struct_size);

/**
 * Saves one optimizer and all that belongs to it, with the default settings. A collective.
 *
 * @param[in] optimizer  An optimizer that has begun, between steps.
 * @param[in] folder     The existing folder that holds the saves of this run.
 * @param[in] stream     The stream of the optimizer's device; NULL on the host.
 * @return ZERO_OK, an error of all functions, or an error of zero_checkpoint_save().
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_save(zero_optimizer *optimizer, const char *folder, void *stream);
/**
 * Begins zero_optimizer_save() and returns a request in `out` (request.h). Steps may go on, as
 * after zero_checkpoint_save_async().
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_save_async(zero_optimizer *optimizer, const char *folder,
                                           void *stream, zero_request **out);
/**
 * Loads the newest valid save of zero_optimizer_save(), with the default settings. A collective.
 *
 * @param[in]  optimizer  A sealed optimizer, or one between steps.
 * @param[in]  folder     The folder that holds the saves of this run.
 * @param[in]  stream     The stream of the optimizer's device; NULL on the host.
 * @param[out] out_found  1 if a save was loaded; the optimizer has then begun. 0 if the folder does
 *                        not exist or has no committed save; the optimizer is then as it was.
 * @return ZERO_OK, an error of all functions, or an error of zero_checkpoint_load() except
 *   ZERO_E_NOT_FOUND.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_resume(zero_optimizer *optimizer, const char *folder, void *stream,
                                       int64_t *out_found);
/** Begins zero_optimizer_resume() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_optimizer_resume_async(zero_optimizer *optimizer, const char *folder,
                                             void *stream, int64_t *out_found, zero_request **out);

/**
 * Creates an empty checkpoint. Not a collective.
 *
 * @param[in]  group   All ranks that save together; the checkpoint keeps the group alive.
 * @param[in]  config  Keys 600 .. 699, or NULL for the defaults.
 * @param[out] out     The checkpoint; the caller owns it.
 * @return ZERO_OK, an error of all functions, or ZERO_E_UNSUPPORTED for a key of another kind.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_create(zero_group *group, const zero_config *config,
                                        zero_checkpoint **out);

/**
 * Adds an optimizer. All ranks add the same things in the same order. Not a collective.
 *
 * @param[in] checkpoint  The checkpoint.
 * @param[in] prefix      Precedes the names of the optimizer's tensors in files: "" or for example
 *                        "stage1."; unique in the checkpoint.
 * @param[in] optimizer   Its group has the ranks of the checkpoint's group. The checkpoint keeps
 *                        the optimizer alive.
 * @return ZERO_OK, an error of all functions, or ZERO_E_UNSUPPORTED if the group has other ranks.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_add_optimizer(zero_checkpoint *checkpoint, const char *prefix,
                                               zero_optimizer *optimizer);
/**
 * Adds a sharded buffer. Rules and errors are those of zero_checkpoint_add_optimizer().
 *
 * @param[in] checkpoint  The checkpoint.
 * @param[in] name        1 to 255 bytes of UTF-8, unique in the checkpoint.
 * @param[in] buffer      Its group has the ranks of the checkpoint's group. The checkpoint keeps
 *                        the buffer alive.
 * @return As zero_checkpoint_add_optimizer().
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_add_buffer(zero_checkpoint *checkpoint, const char *name,
                                            zero_buffer *buffer);
/**
 * Adds a tensor of the caller's. Rules are those of zero_checkpoint_add_optimizer().
 *
 * @param[in] checkpoint  The checkpoint.
 * @param[in] name        1 to 255 bytes of UTF-8, unique in the checkpoint.
 * @param[in] dtype       A zero_dtype that collectives take (group.h).
 * @param[in] shape       `ndim` numbers of elements; NULL if ndim is 0.
 * @param[in] ndim        The number of dimensions; 0 is one element.
 * @param[in] data        The elements, in host memory. A save reads them and a load writes them;
 *                        the memory must stay valid.
 * @param[in] scope       A zero_scope.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_add_tensor(zero_checkpoint *checkpoint, const char *name,
                                            int32_t dtype, const int64_t *shape, int64_t ndim,
                                            void *data, int32_t scope);

/**
 * Sets a text of the program that a save holds, for example its place in the data. The texts of
 * rank 0 are saved. After a load, the texts are those of the save.
 *
 * @param[in] checkpoint  The checkpoint.
 * @param[in] key         1 to 255 bytes of UTF-8.
 * @param[in] text        At most 65536 bytes of UTF-8; NULL removes the key.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_set_text(zero_checkpoint *checkpoint, const char *key,
                                          const char *text);
/**
 * Copies a text (zero_checkpoint_set_text()).
 *
 * @param[in]  checkpoint  The checkpoint.
 * @param[in]  key         1 to 255 bytes of UTF-8.
 * @param[out] out         The text, always terminated, cut to fit. May be NULL if out_nbytes is 0.
 * @param[in]  out_nbytes  Bytes at `out`.
 * @param[out] out_needed  Bytes of the whole text with its terminator; may be NULL.
 * @return ZERO_OK, an error of all functions, or ZERO_E_NOT_FOUND if the key has no text.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_get_text(const zero_checkpoint *checkpoint, const char *key,
                                          char *out, int64_t out_nbytes, int64_t *out_needed);

/**
 * Gives a tensor of a save or of plain files another name here, for loads. The first rule that
 * matches a name applies. Prefixes of optimizers can be renamed for ZERO_PART_PARAMS only. Two
 * names that become the same are ZERO_E_CHECKPOINT in the load.
 *
 * @param[in] checkpoint  The checkpoint.
 * @param[in] in_file     The name in the file, with its prefix; or "old.*".
 * @param[in] here        The name in this program, with its prefix. If in_file ends with ".*", so
 *                        does this: "new.*".
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_rename(zero_checkpoint *checkpoint, const char *in_file,
                                        const char *here);

/**
 * Saves everything in the checkpoint. Its optimizers have begun, and no step is in progress. A
 * collective.
 *
 * @param[in]     checkpoint  The checkpoint.
 * @param[in]     folder      An existing folder, in which the save gets a folder of its own.
 * @param[in]     stream      The stream of the optimizers' device; NULL on the host.
 * @param[in,out] out_result  The caller sets struct_size; or NULL.
 * @return ZERO_OK, an error of all functions, or:
 * - ZERO_E_STATE before begin, after parameters were written without a begin, between reduce and
 *   gather, once gradients were given or acquired, or once a weight was set.
 * - ZERO_E_NOT_FOUND if the folder does not exist.
 * - ZERO_E_SYSTEM for a full disk, a missing permission, or an input or output error.
 * - ZERO_E_MISMATCH if ranks gave different folders, steps or lists. Nothing was written, and the
 *   group stays usable.
 * - ZERO_E_TIMEOUT (ZERO_KEY_CHECKPOINT_PROGRESS_MS).
 * - ZERO_E_UNSUPPORTED for a stream without a device, and ZERO_E_DEVICE_FAILED.
 *
 * If the text says "may have been committed", the next load finds out.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_save(zero_checkpoint *checkpoint, const char *folder, void *stream,
                                      zero_checkpoint_result *out_result);
/**
 * Begins zero_checkpoint_save() and returns a request in `out` (request.h). The save holds the
 * state at the time of the call. A collective.
 *
 * The function returns once this rank has a snapshot, which waits for earlier calls of the
 * optimizers and earlier saves of the run. Tensors, module buffers, buffers, and residuals,
 * velocities and factors of coded gradients (replicas.h) are always copied, the rest of optimizers
 * as ZERO_KEY_CHECKPOINT_SNAPSHOT says. Requests on module buffers and buffers in the list must
 * have ended before. A progress thread then writes the files, while steps go on. Over MPI without
 * thread support there is none: test or wait for the request.
 *
 * A save that fails costs neither the group nor the optimizers; the request returns its error.
 * Later saves and loads of the run wait until this one has ended. If the process ends before, the
 * save is not committed.
 *
 * @param[in]     checkpoint  As zero_checkpoint_save().
 * @param[in]     folder      As zero_checkpoint_save().
 * @param[in]     stream      As zero_checkpoint_save().
 * @param[in,out] out_result  As zero_checkpoint_save(). It must exist until the request has ended.
 * @param[out]    out         The request; the caller owns it.
 * @return ZERO_OK or an error of all functions. The request returns the errors of
 *   zero_checkpoint_save(), ZERO_E_OUT_OF_MEMORY if the machine or the control group has no room
 *   for the copies, and ZERO_E_UNSUPPORTED for ZERO_SNAPSHOT_LAZY with states on a device.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_save_async(zero_checkpoint *checkpoint, const char *folder,
                                            void *stream, zero_checkpoint_result *out_result,
                                            zero_request **out);

/**
 * Loads into everything in the checkpoint. Its optimizers are sealed or between steps, and have
 * begun afterwards. A collective.
 *
 * With ZERO_PART_ALL, hyper-parameters become those of the save; set others afterwards. The loss
 * scale becomes that of the save if both runs have a dynamic one, or neither has.
 *
 * With ZERO_PART_PARAMS, `folder` may also name plain safetensors: a file whose name ends with
 * .safetensors; an index, whose name ends with .json; or a folder that has
 * model.safetensors.index.json, model.safetensors, or one single .safetensors file. Each rank reads
 * the bytes of its own shard. Names must be those here, by zero_checkpoint_rename() if necessary.
 * Float dtypes that differ are rounded once and counted in `converted`. A tied name may be missing.
 * If the files have several tied names as tensors, their values must be equal.
 *
 * @param[in]     checkpoint  The checkpoint.
 * @param[in]     folder      A folder of saves, of which the newest valid one is loaded; one save;
 *                            or plain safetensors.
 * @param[in]     part        A zero_part.
 * @param[in]     stream      The stream of the optimizers' device; NULL on the host.
 * @param[in,out] out_result  The caller sets struct_size; or NULL.
 * @return ZERO_OK, an error of all functions, ZERO_E_SYSTEM, ZERO_E_MISMATCH, ZERO_E_TIMEOUT,
 *   ZERO_E_UNSUPPORTED or ZERO_E_DEVICE_FAILED as zero_checkpoint_save(), or:
 * - ZERO_E_STATE before seal, while parameters are acquired, between reduce and gather, once
 *   gradients were given or acquired, or once a weight was set.
 * - ZERO_E_NOT_FOUND if the folder does not exist or has no committed save. Only then may a program
 *   start anew.
 * - ZERO_E_CHECKPOINT if files are damaged or of another model. The text lists up to twenty names,
 *   their number and the key that allows them.
 * - ZERO_E_INVALID_ARGUMENT for plain safetensors without ZERO_PART_PARAMS.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_load(zero_checkpoint *checkpoint, const char *folder, int32_t part,
                                      void *stream, zero_checkpoint_result *out_result);
/** Begins zero_checkpoint_load() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_checkpoint_load_async(zero_checkpoint *checkpoint, const char *folder,
                                            int32_t part, void *stream,
                                            zero_checkpoint_result *out_result, zero_request **out);

/**
 * Writes the parameters of all optimizers in the checkpoint as plain safetensors, which other tools
 * read. The optimizers have begun, and no step is in progress. A collective. No rank ever holds the
 * whole model.
 *
 * - **One file.** If `path` ends with .safetensors, rank 0 writes this file. A file that exists is
 *   replaced, at the end.
 * - **A folder.** Otherwise the ranks share the files as in a save: model.safetensors, or
 *   model-00001-of-0000n.safetensors with model.safetensors.index.json. The folder is created if it
 *   does not exist; its parent must exist. ZERO_KEY_CHECKPOINT_FILE_BYTES limits each file.
 *
 * Names are those of a save: prefix and name. A tied tensor is written once, under the name that it
 * is tied to, as transformers expects. The file's metadata lists the other names, as
 * "tied name": "name in the file". Module buffers are not written. After an error, no file of the
 * export is left, unless a rank was lost.
 *
 * @param[in]     checkpoint  The checkpoint.
 * @param[in]     path        A file or a folder. A folder must hold neither saves nor other
 *                            safetensors. Nothing may be exported into a save.
 * @param[in]     dtype       ZERO_EXPORT_AS_KEPT; or ZERO_DTYPE_F32, ZERO_DTYPE_F16 or
 *                            ZERO_DTYPE_BF16. A parameter that is kept in that dtype is copied. The
 *                            value of any other (see Precision) is rounded once. 8-bit parameters
 *                            as they are kept have scales "NAME:param_scale", which other tools do
 *                            not know: name a dtype for these.
 * @param[in]     stream      The stream of the optimizers' device; NULL on the host.
 * @param[in,out] out_result  The caller sets struct_size; or NULL.
 * @return ZERO_OK, an error of all functions, ZERO_E_STATE, ZERO_E_SYSTEM, ZERO_E_MISMATCH or
 *   ZERO_E_TIMEOUT as zero_checkpoint_save(), or:
 * - ZERO_E_NOT_FOUND if the folder that receives the file or the folder does not exist.
 * - ZERO_E_INVALID_ARGUMENT if the checkpoint has no optimizer, if two tensors have the same name,
 *   or if the folder must not receive the files.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_export(zero_checkpoint *checkpoint, const char *path,
                                        int32_t dtype, void *stream,
                                        zero_checkpoint_result *out_result);
/** Begins zero_checkpoint_export() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_checkpoint_export_async(zero_checkpoint *checkpoint, const char *path,
                                              int32_t dtype, void *stream,
                                              zero_checkpoint_result *out_result,
                                              zero_request **out);

/**
 * Lists the names that the last load ignored or converted, one a line: the word missing, extra,
 * converted or dropped, and the name in quotes. Dropped are residuals, velocities and factors of
 * coded gradients (replicas.h), and gradients of delayed updates (optimizer.h), that do not fit
 * here. They are no error and have no count in the result.
 *
 * @param[in]  checkpoint  The checkpoint.
 * @param[out] out         The lines, always terminated, cut to fit. May be NULL if out_nbytes is 0.
 * @param[in]  out_nbytes  Bytes at `out`.
 * @param[out] out_needed  Bytes of all lines with the terminator; may be NULL.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_checkpoint_skipped(const zero_checkpoint *checkpoint, char *out,
                                         int64_t out_nbytes, int64_t *out_needed);

/**
 * Gives a checkpoint back. Not a collective.
 *
 * @param[in] checkpoint  The checkpoint, or NULL.
 * @note Threads: any.
 * @since ZERO_0.1
 */
ZERO_API void zero_checkpoint_release(zero_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif

#endif
