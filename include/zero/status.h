/**
 * @file
 * Status codes and error texts. Every libzero function that can fail returns an int32_t: ZERO_OK or
 * one of the negative codes below.
 *
 * @code
 * static void must(int32_t status) {
 *   char text[512];
 *   if (status == ZERO_OK) return;
 *   zero_last_error_copy(text, sizeof text);
 *   fprintf(stderr, "%s: %s\n", zero_status_name(status), text);
 *   exit(1);
 * }
 * ...
 * must(zero_group_barrier(group));
 * @endcode
 */
#ifndef ZERO_STATUS_H
#define ZERO_STATUS_H

#include <stdint.h>

#if defined(SWIG)
#define ZERO_API
#elif defined(__GNUC__)
/** Marks an exported function. Empty for SWIG, whose parser does not know attributes. */
#define ZERO_API __attribute__((visibility("default")))
#else
#define ZERO_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Status codes. The range of a code states the extent of the loss:
 *
 * @verbatim
 * -100 .. -199  this call: nothing changed, and the handle is as it was before
 * -200 .. -299  this handle: release it and create a new one
 * -300 .. -399  this group: it is poisoned on every rank
 * -400 .. -499  this process
 * @endverbatim
 *
 * In a poisoned group, calls that wait for other ranks return the error; all other calls still
 * work. Numbers are never reused. Exceptions:
 *
 * - Once a collective, message or split of group.h has started, any error poisons the group,
 *   whatever its code. This includes ZERO_E_OUT_OF_MEMORY and, in a split, ZERO_E_RENDEZVOUS,
 *   ZERO_E_SYSTEM and ZERO_E_UNSUPPORTED. The failing call returns that code; later calls and the
 *   other ranks return ZERO_E_PEER_FAILED.
 * - After seal, an error in an optimizer's collective loses the optimizer on all ranks. Only
 *   ZERO_E_INVALID_ARGUMENT, ZERO_E_STATE and ZERO_E_UNSUPPORTED do not. With ZERO_E_OUT_OF_MEMORY
 *   too the optimizer is lost, and the other ranks return ZERO_E_PEER_FAILED. Later calls return
 *   the error again, except calls that read what lies on this rank (optimizer.h).
 * - A seal, zero_buffer_create() or zero_buffer_whole_acquire() that returns ZERO_E_PEER_FAILED
 *   leaves the group usable.
 * - An optimizer works in groups of its own. After a failed step, the group that the optimizer was
 *   created from may still be usable.
 * - A save or load that fails costs neither the group nor the optimizer, also with ZERO_E_MISMATCH
 *   and ZERO_E_TIMEOUT, unless a rank was lost.
 * - A load that fails after it has begun to read values leaves its optimizers sealed, with
 *   undefined values (checkpoint.h).
 */
enum zero_status {
  ZERO_OK = 0, /**< Success. */

  /** An argument is NULL, out of bounds or inconsistent with another one. */
  ZERO_E_INVALID_ARGUMENT = -100,
  /** The handle was released, never created, or names an object of another kind. */
  ZERO_E_BAD_HANDLE = -101,
  /** The key is unknown, or this build or machine does not support the combination. */
  ZERO_E_UNSUPPORTED = -102,
  /** The call is not allowed in the present state of the object. */
  ZERO_E_STATE = -103,
  /** An allocation failed, or the memory that is needed is not there. */
  ZERO_E_OUT_OF_MEMORY = -104,
  /** Reserved: another thread is using this handle. */
  ZERO_E_BUSY = -105,
  /** libzero_mpi.so, libzero_cuda.so or libzero_nccl.so, or the library it needs, is missing or
      from another build. */
  ZERO_E_MODULE = -106,
  /** The ranks of a new group did not meet: ranks are missing, doubled or disagreeing. */
  ZERO_E_RENDEZVOUS = -107,
  /** The operating system refused a request; the text holds its reason. */
  ZERO_E_SYSTEM = -108,
  /** The launcher's variables contradict each other, or name a transport that is not there or that
      would end this process. */
  ZERO_E_LAUNCHER = -109,
  /** CUDA offers no such device: there is no driver, no device, or the number is out of range. Or
      the device does not take the library's kernels. */
  ZERO_E_DEVICE = -110,
  /** A file of a save is damaged, incomplete, or of another model, version or save. The text names
      the file, the tensor and the cause. */
  ZERO_E_CHECKPOINT = -111,
  /** There is no such folder, no committed save in it, or no text of that key. A program that
      resumes may start anew only after this code. */
  ZERO_E_NOT_FOUND = -112,

  /** First values that must be equal on all ranks differ. */
  ZERO_E_REPLICAS_DIFFER = -200,
  /** Gradients arrived so far out of order that the pool would exceed its limit. */
  ZERO_E_POOL_LIMIT = -201,
  /** Data in memory was changed by something other than libzero (ZERO_KEY_VERIFY_EVERY), or ranks
      were lost while a step had changed a part of it. */
  ZERO_E_CORRUPT = -202,
  /** CUDA reported an error while memory of a device was read or written; the text holds its
      reason. */
  ZERO_E_DEVICE_FAILED = -203,

  /** A rank did not arrive within the deadline. */
  ZERO_E_TIMEOUT = -300,
  /** The process of a rank ended. */
  ZERO_E_PEER_LOST = -301,
  /** A rank released its handle while others still used the group. */
  ZERO_E_PEER_LEFT = -302,
  /** A rank met an error inside a collective; the text names the rank and the error. */
  ZERO_E_PEER_FAILED = -303,
  /** Ranks called different collectives; the text holds both calls. */
  ZERO_E_MISMATCH = -304,
  /** zero_group_abort() was called on some rank. */
  ZERO_E_ABORTED = -305,
  /** The transport (MPI, shared memory) reported an error. */
  ZERO_E_TRANSPORT = -306,

  /** The process forked after libzero was first used; only the parent may continue. */
  ZERO_E_FORKED = -400,
  /** A defect in libzero. */
  ZERO_E_INTERNAL = -401
};

/**
 * Copies the text of the last error on the calling thread, and returns its code.
 *
 * The text names the values that were given and those that were expected and, for a group, the rank
 * and the operation. Languages whose threads move between OS threads must call this in the same
 * native call as the function that failed. Threads: any.
 *
 * @param[out] out         Receives the text, always terminated, cut to fit between characters; may
 *                         be NULL if out_nbytes is 0.
 * @param[in]  out_nbytes  Bytes at out.
 * @return The code of the last call on this thread that failed (also of a release that was given a
 *         stale handle); ZERO_OK if none did. zero_optimizer_request_stop() stores no error.
 *         ZERO_E_INVALID_ARGUMENT if out is NULL and out_nbytes is not 0, or if out_nbytes is
 *         negative; the stored error stays.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_last_error_copy(char *out, int64_t out_nbytes);

/**
 * Returns the name of a status code, for example "ZERO_E_TIMEOUT", or "ZERO_E_UNKNOWN" for a number
 * that is not a code. The text is a constant that lives as long as the library. Threads: any.
 *
 * @param[in] status  A zero_status.
 * @since ZERO_0.1
 */
ZERO_API const char *zero_status_name(int32_t status);

#ifdef __cplusplus
}
#endif

#endif
