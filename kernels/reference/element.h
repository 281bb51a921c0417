/// @file ZERO_ELEMENT marks functions on single elements that the plain kernels of the host and
/// those of CUDA devices share, so that both compute the same bits. Headers that use it are
/// included only in reference/, in cuda/ and in kernels that are compiled once. SIMD objects must
/// not emit functions that the linker could give to others.
#pragma once

#ifdef __CUDACC__
#define ZERO_ELEMENT __host__ __device__ inline
#else
#define ZERO_ELEMENT inline
#endif
