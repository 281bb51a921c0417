/// @file What memory, or arithmetic, allows: loops that move the bytes of a kernel and compute next to nothing, with software prefetch
/// where lines are read and stores past the caches where lines are written without having been read. A kernel of the same traffic cannot be
/// faster. Knows no kernel. Compiled for the machine that it runs on; arrays are aligned to 64 bytes, counts are multiples of 16.
#pragma once

#include <cstdint>

namespace zero::bench {

/// Reads `read` and adds next to nothing to 1 to 3 modified arrays: 4 + 8 * modified_count bytes per element.
void move_modified(const float *read, float *const *modified, int64_t modified_count, int64_t count);

/// out = something of 1, 2 or 4 sources: 4 + 4 * source_count bytes per element.
void move_written(float *out, const float *const *sources, int64_t source_count, int64_t count);

/// Reads: 4 bytes per element. Returns something of what was read.
float move_read(const float *values, int64_t count);

/// `count` fma of values in registers, about. Returns something of them.
float multiply_add(int64_t count);

}  // namespace zero::bench
