/// @file How functions on single elements are marked that the plain kernels of the host and those of CUDA devices share, so that both
/// compute the same bits. Only files of reference/ and cuda/ and kernels of one build include headers that use it: SIMD objects may not
/// emit functions that others could be given.
#pragma once

#ifdef __CUDACC__
#define ZERO_ELEMENT __host__ __device__ inline
#else
#define ZERO_ELEMENT inline
#endif
