/// @file Making a device the calling thread's current one for a while. Not cudaSetDevice: what that gives back is a device rather than
/// nothing, and on a thread that had none it would set up device 0 of the process, which takes memory there and fails where another
/// process has it for itself. Knows libcuda's contexts alone.
#ifndef ZERO_CUDA_CONTEXT_H
#define ZERO_CUDA_CONTEXT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions return 0 or an error code of CUDA. */

/* Calls of CUDA's run time on this thread are about `device` from now on. *out_pushed: whether zero_cuda_pop has to take that back. */
int32_t zero_cuda_push(int64_t device, int32_t *out_pushed);
int32_t zero_cuda_pop(void);

#ifdef __cplusplus
}
#endif

#endif
