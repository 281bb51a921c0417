/// @file Coded lines: 256 fp32 values as one scale and 8 or 4 bits per value. Lines that several small tensors share travel in full beside
/// the codes, because one scale does not fit them all.
#pragma once

#include "kernels/kernels.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace zero::kernels {

/// Numbers of a zero_code. An integer q stands for q * scale, with scale = max |x| / 127 (i8) or / 7 (i4), so that the error of a value is
/// at most half a scale. f8 is E4M3 (block_scaled.h), with an error of at most |x| / 16 above the smallest normal number.
enum class Code : int64_t { none = 0, f8 = 1, i8 = 2, i4 = 3 };

/// Bytes of so many lines, of which some travel in full too. Not of Code::none.
int64_t coded_nbytes(Code code, int64_t lines, int64_t full);

/// `count` values, which begin on a line, as coded_nbytes() bytes. `full`, by line: not 0 where it travels in full. Where a value is not
/// finite, so is what decode_lines() makes of it (f8) or of its line. Nothing may overlap.
void encode_lines(const Table &table, Code code, const float *values, int64_t count, std::span<const uint8_t> full, std::byte *out);
void decode_lines(const Table &table, Code code, const std::byte *coded, int64_t count, std::span<const uint8_t> full, float *out);

}  // namespace zero::kernels
