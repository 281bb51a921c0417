/* @file Philox: Random123 behind C functions. In C++ its headers include iostreams with static
 * constructors; in C they do not. Knows no elements and no steps. */
#ifndef ZERO_KERNELS_PHILOX_H
#define ZERO_KERNELS_PHILOX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* out = Philox4x64-10(counter, key). */
void zero_philox4x64(uint64_t out[4], const uint64_t counter[4], const uint64_t key[2]);

#ifdef __cplusplus
}
#endif

#endif
