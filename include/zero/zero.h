/**
 * @file
 * libzero: process groups, sharded buffers and ZeRO optimizers for trainers in any language. This
 * header includes all others.
 *
 * @code
 * #include <zero/zero.h>
 * zero_group_create_env(NULL, &group);
 * zero_config_create(&config);
 * zero_config_set_i64(config, ZERO_KEY_STAGE, 3);
 * zero_optimizer_create(group, config, &optimizer);
 * zero_optimizer_add_param(optimizer, NULL, "w", ZERO_DTYPE_F32, NULL, 0, &w);
 * zero_optimizer_seal(optimizer);
 * zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL);
 * zero_optimizer_grad_ready(optimizer, w, &gradient, 0, 1, NULL);
 * zero_optimizer_step(optimizer, NULL, NULL);
 * zero_optimizer_release(optimizer);
 * @endcode
 *
 * **Rules of all functions.**
 * - Functions return ZERO_OK or a negative code (status.h). On failure they change no output except
 *   out_done, and memory that a collective was already filling (group.h).
 * - `count` is elements, `nbytes` is bytes, `_ns` is nanoseconds.
 * - Handles are opaque. A stale or foreign handle is ZERO_E_BAD_HANDLE.
 * - Objects keep the objects that they were created from alive, so handles may be released in any
 *   order.
 * - Strings are UTF-8, end with a NUL and are copied.
 * - Arrays of the caller must be aligned to the size of an element (f32: 4 bytes), and need no
 *   more.
 *
 * **Diagnostics.** The variable ZERO_LOG names a file to which diagnostics are appended. They
 * include the ranks that wait and the ranks they wait for, once a wait has lasted a tenth of its
 * group's deadline. The library prints nowhere else.
 *
 * **Threads and stacks.**
 * - A call needs at most 128 KiB of its thread's stack, besides the needs of MPI, CUDA and NCCL.
 * - Threads that the library has started may stay until the process ends; threads for files end
 *   with their call. Programs end by exit or by
 *   returning from main, not by pthread_exit of the main thread.
 * - A call defers the cancellation of its thread (pthread_cancel): the thread is cancelled after
 *   the call has returned. zero_group_abort() ends a wait for other ranks.
 */
#ifndef ZERO_ZERO_H
#define ZERO_ZERO_H

#include <zero/buffer.h>
#include <zero/checkpoint.h>
#include <zero/config.h>
#include <zero/dtype.h>
#include <zero/graph.h>
#include <zero/group.h>
#include <zero/optimizer.h>
#include <zero/replicas.h>
#include <zero/request.h>
#include <zero/save.h>
#include <zero/server.h>
#include <zero/slots.h>
#include <zero/stats.h>
#include <zero/status.h>
#include <zero/stop.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ZERO_VERSION_MAJOR 0 /**< The release this header belongs to: major number. */
#define ZERO_VERSION_MINOR 1 /**< The release this header belongs to: minor number. */
#define ZERO_VERSION_PATCH 0 /**< The release this header belongs to: patch number. */
#define ZERO_ABI_MAJOR 0     /**< The ABI of this header: the SONAME. */
#define ZERO_ABI_MINOR 1     /**< The ABI of this header: the symbol node, ZERO_major.minor. */

/**
 * Returns the ABI of the library that was loaded: major * 65536 + minor. A program built against
 * this header needs the same major and at least this minor. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int64_t zero_abi_version(void);

/**
 * Returns the release of the library that was loaded, for example "0.1.0". The text lives as long
 * as the library. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API const char *zero_version(void);

/** Capabilities of a library on a machine (zero_has_feature()). */
enum zero_feature {
  ZERO_FEATURE_LOCAL = 1, /**< Groups of threads and processes of one host. */
  ZERO_FEATURE_MPI = 2,   /**< libzero_mpi.so and the MPI library it needs can be loaded. */
  ZERO_FEATURE_CUDA = 3,  /**< libzero_cuda.so can be loaded and CUDA offers a device. */
  ZERO_FEATURE_NCCL = 4   /**< libzero_nccl.so and an NCCL that it works with can be loaded. */
};

/**
 * Returns 1 if the library that was loaded has the capability on this machine, otherwise 0. Unknown
 * numbers give 0. Threads: any.
 *
 * @param[in] feature  A zero_feature.
 * @since ZERO_0.1
 */
ZERO_API int64_t zero_has_feature(int32_t feature);

#ifdef __cplusplus
}
#endif

#endif
