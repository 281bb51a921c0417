/* Status codes and error texts. Every libzero function that can fail returns an int32_t: ZERO_OK or one of the negative codes below. */
#ifndef ZERO_STATUS_H
#define ZERO_STATUS_H

#include <stdint.h>

/* Marks an exported function. Empty for SWIG, whose parser knows no attributes. */
#if defined(SWIG)
#define ZERO_API
#elif defined(__GNUC__)
#define ZERO_API __attribute__((visibility("default")))
#else
#define ZERO_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The range of a code says what was lost:
 *   -100 .. -199  this call only: nothing changed, the handle is as it was before
 *   -200 .. -299  this handle: release it and make a new one
 *   -300 .. -399  this group: it is poisoned on every rank: what waits for other ranks returns the error, the rest still works
 *   -400 .. -499  this process
 * Numbers are never reused. Exceptions: what a collective, a message or a split of zero/group.h meets once it has begun poisons the group
 * with any code, so also ZERO_E_OUT_OF_MEMORY and, in a split, ZERO_E_RENDEZVOUS, ZERO_E_SYSTEM or ZERO_E_UNSUPPORTED: this call returns
 * that code, later calls and the other ranks ZERO_E_PEER_FAILED. After seal, an optimizer's collective loses the optimizer on all ranks
 * with any code but ZERO_E_INVALID_ARGUMENT, ZERO_E_STATE and ZERO_E_UNSUPPORTED, so also with ZERO_E_OUT_OF_MEMORY (ZERO_E_PEER_FAILED on
 * the others), and later calls return it again; a seal, zero_buffer_create or zero_buffer_whole_acquire that ends with ZERO_E_PEER_FAILED
 * leaves the group usable. An optimizer works in groups of its own: when a step fails, the group that it was made from may still be usable.
 */
enum zero_status {
  ZERO_OK = 0,

  ZERO_E_INVALID_ARGUMENT = -100, /* an argument is NULL, out of bounds or inconsistent with another */
  ZERO_E_BAD_HANDLE = -101,       /* the handle was released, never made, or names an object of another kind */
  ZERO_E_UNSUPPORTED = -102,      /* unknown key, or a combination this build or machine cannot do */
  ZERO_E_STATE = -103,            /* the call is not allowed in the object's present state */
  ZERO_E_OUT_OF_MEMORY = -104,
  ZERO_E_BUSY = -105,             /* reserved: another thread is using this handle */
  ZERO_E_MODULE = -106,           /* libzero_mpi.so, libzero_cuda.so or libzero_nccl.so, or the library it needs, is missing or from
                                     another build */
  ZERO_E_RENDEZVOUS = -107,       /* the ranks of a new group did not meet: missing, doubled or disagreeing ranks */
  ZERO_E_SYSTEM = -108,           /* the operating system refused something; the text holds its reason */
  ZERO_E_LAUNCHER = -109,         /* the launcher's variables contradict each other or name a transport that is not there */
  ZERO_E_DEVICE = -110,           /* CUDA offers no such device: no driver, no device, or a number out of range; or it does not take the
                                     library's kernels */
  ZERO_E_CHECKPOINT = -111,       /* a file of a save is damaged, incomplete, or of another model, version or save; the text names file,
                                     tensor and cause */
  ZERO_E_NOT_FOUND = -112,        /* there is no committed save: only then may a program start anew */

  ZERO_E_REPLICAS_DIFFER = -200,  /* first values claimed to be equal on all ranks are not */
  ZERO_E_POOL_LIMIT = -201,       /* gradients arrived so far out of order that the pool would pass its limit */
  ZERO_E_CORRUPT = -202,          /* data in memory was changed by something other than libzero (ZERO_KEY_VERIFY_EVERY) */
  ZERO_E_DEVICE_FAILED = -203,    /* CUDA reported an error while memory of a device was read or written; the text holds its reason */

  ZERO_E_TIMEOUT = -300,          /* a rank did not arrive within the deadline */
  ZERO_E_PEER_LOST = -301,        /* a rank's process ended */
  ZERO_E_PEER_LEFT = -302,        /* a rank released its handle while others still used the group */
  ZERO_E_PEER_FAILED = -303,      /* a rank met an error inside a collective; the text names rank and error */
  ZERO_E_MISMATCH = -304,         /* ranks called different collectives; the text holds both calls */
  ZERO_E_ABORTED = -305,          /* zero_group_abort was called on some rank */
  ZERO_E_TRANSPORT = -306,        /* the transport (MPI, shared memory) reported an error */

  ZERO_E_FORKED = -400,           /* the process forked after libzero was first used; only the parent may go on */
  ZERO_E_INTERNAL = -401          /* a defect in libzero */
};

/*
 * Copies the text of the last error on the calling thread and returns its code.
 *   out         [out] receives the text, always terminated, cut to fit between characters; may be NULL when out_nbytes is 0
 *   out_nbytes  [in]  bytes at out
 * Returns the code of the last call on this thread that failed (also of a release that was given a stale handle), ZERO_OK if none did;
 * ZERO_E_INVALID_ARGUMENT when out is NULL and out_nbytes is not 0, or out_nbytes is negative (the stored error stays).
 * A text names what was given, what was expected and, for a group, the rank and the operation.
 * Languages whose threads move between OS threads must call this in the same native call as the function that failed.
 * Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_last_error_copy(char *out, int64_t out_nbytes);

/*
 * The name of a status code, for example "ZERO_E_TIMEOUT"; "ZERO_E_UNKNOWN" for a number that is not one.
 * The text is a constant that lives as long as the library. Threads: any. Since ZERO_0.1.
 */
ZERO_API const char *zero_status_name(int32_t status);

#ifdef __cplusplus
}
#endif

#endif
