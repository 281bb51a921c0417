/// @file Coded lines: each line of 256 fp32 values becomes one scale and 8 or 4 bits per value. A
/// line that several small tensors share is also sent in full, because one scale does not fit them
/// all.
#pragma once

#include "kernels/kernels.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace zero::kernels {

/// Numbers of a zero_code. An integer q stands for q * scale, with scale = max |x| / 127 (i8) or
/// max |x| / 7 (i4). The error of a value is at most half a scale. f8 is E4M3 (block_scaled.h),
/// with an error of at most |x| / 16 above the smallest normal number.
enum class Code : int64_t { none = 0, f8 = 1, i8 = 2, i4 = 3 };

/// Returns the bytes of `lines` coded lines, of which `full` are also sent in full. Not for
/// Code::none.
int64_t coded_nbytes(Code code, int64_t lines, int64_t full);

/// Encodes `count` values, which begin on a line, as coded_nbytes() bytes. full[i] is not 0 if line
/// i is also sent in full. In other lines, a value that is not finite decodes to NaN (f8) or makes
/// its whole line NaN (i8, i4). The ranges must not overlap.
void encode_lines(const Table &table, Code code, const float *values, int64_t count, std::span<const uint8_t> full, std::byte *out);
void decode_lines(const Table &table, Code code, const std::byte *coded, int64_t count, std::span<const uint8_t> full, float *out);

}  // namespace zero::kernels
