/*
 * libzero: process groups, sharded buffers and ZeRO optimizers for trainers in any language. This header includes all others.
 *
 * Everywhere: functions return ZERO_OK or a negative code (status.h), and on failure change no output but out_done and memory that a
 * collective was already filling (group.h). `count` is elements, `nbytes` is bytes, `_ns` nanoseconds. Handles are opaque; a stale or
 * foreign one is ZERO_E_BAD_HANDLE. Objects hold what they were made from, so handles may be released in any order. Strings are UTF-8, end
 * with a NUL and are copied. Arrays of the caller are aligned to the size of an element (f32: 4 bytes), and need no more.
 *
 * ZERO_LOG (a variable) names a file to which diagnostics are appended, among them who waits for whom where a wait has lasted a tenth of
 * its group's deadline; the library prints nowhere else.
 *
 * A call needs at most 128 KiB of its thread's stack, besides what MPI, CUDA and NCCL take. Threads that the library has started stay until
 * the process ends: programs end by exit or by returning from main, not by pthread_exit of the main thread. A call holds off
 * the cancellation of its thread (pthread_cancel): the thread is cancelled after the call has returned. zero_group_abort ends a wait for
 * other ranks.
 */
#ifndef ZERO_ZERO_H
#define ZERO_ZERO_H

#include <zero/buffer.h>
#include <zero/config.h>
#include <zero/dtype.h>
#include <zero/graph.h>
#include <zero/group.h>
#include <zero/optimizer.h>
#include <zero/request.h>
#include <zero/save.h>
#include <zero/slots.h>
#include <zero/stats.h>
#include <zero/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The release this header belongs to, and its ABI: major = SONAME, minor = symbol node (ZERO_<major>.<minor>). */
#define ZERO_VERSION_MAJOR 0
#define ZERO_VERSION_MINOR 1
#define ZERO_VERSION_PATCH 0
#define ZERO_ABI_MAJOR 0
#define ZERO_ABI_MINOR 1

/*
 * The ABI of the library that was loaded: major * 65536 + minor. A program built against this header needs the same major and at least
 * this minor. Threads: any. Since ZERO_0.1.
 */
ZERO_API int64_t zero_abi_version(void);

/* The release of the library that was loaded, for example "0.1.0"; lives as long as the library. Threads: any. Since ZERO_0.1. */
ZERO_API const char *zero_version(void);

enum zero_feature {
  ZERO_FEATURE_LOCAL = 1, /* groups of threads and processes of one host */
  ZERO_FEATURE_MPI = 2,   /* libzero_mpi.so and the MPI library it needs can be loaded */
  ZERO_FEATURE_CUDA = 3,  /* libzero_cuda.so can be loaded and CUDA offers a device */
  ZERO_FEATURE_NCCL = 4   /* libzero_nccl.so and an NCCL that it works with can be loaded */
};

/* 1 when the library that was loaded can do it on this machine, otherwise 0; unknown numbers are 0. Threads: any. Since ZERO_0.1. */
ZERO_API int64_t zero_has_feature(int32_t feature);

#ifdef __cplusplus
}
#endif

#endif
