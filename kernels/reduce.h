/// @file Reduction over sources: the formula. All targets share this.
///
/// @verbatim
///   T(lo, hi) = op(T(lo, mid), T(mid, hi)), mid = lo + the largest power of two below hi - lo
///   T(i, i + 1) = source i, with weights (sums of f16 and bf16): fp32(source i * weight i)
/// @endverbatim
///
/// - f32, f16 and bf16 are combined in fp32, f64 in fp64. sum and avg: T / divisor unless divisor
///   is 1. The result is rounded to the element type, to nearest even.
/// - min, max: NaN if any source is NaN; -0 is below +0. NaN results are stored as the one quiet
///   NaN with sign 0 and payload 0.
/// - out_dtype f32 with f16 and bf16 sources: the fp32 result is stored as it is. out_dtype f16 or
///   bf16 with f32 sources: the result is rounded to that dtype.
/// - i32, i64, u8: sum and prod wrap in 64 bits, of which the low bits are stored. avg is the
///   64-bit sum / divisor, truncated towards zero.
///
/// source_count reads and one write per element must move.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels::reference {

/// Elements [begin, end) of the reduction; also for integers and the last few elements of the SIMD
/// targets.
bool reduce_range(const Reduction &reduction, int64_t begin, int64_t end);

}  // namespace zero::kernels::reference
