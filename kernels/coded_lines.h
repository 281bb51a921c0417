/// @file Coded lines: 256 fp32 values as the bytes of a wire code. A line that several small
/// tensors share is also sent in full, because one scale does not fit them all.
#pragma once

#include "kernels/kernels.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace zero::kernels {

/// A wire code: the form of values between ranks. Each line is coded by itself. If a value is not
/// finite, the value decodes to NaN (f8), or its whole line does (all others).
struct Coder {
  int64_t number;       ///< a zero_code
  const char *text;     ///< "8-bit integer codes"
  int64_t line_nbytes;  ///< for kLine values; a coded line may begin at any address
  int64_t kept;         ///< values of a line that travel; 0: all
  /// Values of 0 come back as others, so that only lines that tensors fill are coded.
  bool fills;
  void (*encode)(const Coder &coder, const Table &table, const float *values, std::byte *out);
  void (*decode)(const Coder &coder, const Table &table, const std::byte *coded, float *out);

  /// Most of what is coded may be lost.
  bool sparse() const { return kept > 0 || fills; }
};

/// One row per code, and one per number of values that ZERO_CODE_TOP keeps.
std::span<const Coder> coders();
/// `kept`: by ZERO_CODE_TOP. Returns nullptr for ZERO_CODE_NONE: values travel in fp32.
const Coder *find_coder(int64_t number, int64_t kept);

/// Returns the bytes of `lines` coded lines, of which `full` are also sent in full.
int64_t coded_nbytes(const Coder &coder, int64_t lines, int64_t full);

/// Encodes `count` values, which begin on a line, as coded_nbytes() bytes. full[i] is not 0 if line
/// i is also sent in full. The ranges must not overlap.
void encode_lines(const Table &table, const Coder &coder, const float *values, int64_t count, std::span<const uint8_t> full,
                  std::byte *out);
void decode_lines(const Table &table, const Coder &coder, const std::byte *coded, int64_t count, std::span<const uint8_t> full, float *out);

}  // namespace zero::kernels
