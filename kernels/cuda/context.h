/// @file Contexts: makes a device the calling thread's current one for a while. cudaSetDevice does
/// not serve: on a thread without a current device it could only restore device 0. That would
/// initialise device 0, which takes memory there and fails if another process uses it exclusively.
/// Knows libcuda's contexts alone.
#ifndef ZERO_CUDA_CONTEXT_H
#define ZERO_CUDA_CONTEXT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions return 0 or an error code of CUDA. */

/* Makes `device` the current one of this thread for CUDA's runtime. *out_pushed: 1 if zero_cuda_pop
 * must undo that, otherwise 0. */
int32_t zero_cuda_push(int64_t device, int32_t *out_pushed);
int32_t zero_cuda_pop(void);

#ifdef __cplusplus
}
#endif

#endif
