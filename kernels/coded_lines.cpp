/// @file The table of wire codes, and loops over lines: the coded lines first, then the values of
/// lines that are also sent in full.
#include "kernels/coded_lines.h"

#include "kernels/reference/integer_lines-inl.h"
#include "kernels/reference/sign_lines-inl.h"
#include "kernels/reference/top_lines-inl.h"

#include <zero/config.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace zero::kernels {
namespace {

constexpr auto kLineNbytes = kLine * static_cast<int64_t>(sizeof(float));

/// E4M3 (block_scaled.h), with an error of at most |x| / 16 above the smallest normal number.
void encode_f8(const Coder &, const Table &table, const float *values, std::byte *out) {
  float scale = 0;
  table.encode(reinterpret_cast<uint8_t *>(out + sizeof scale), &scale, DType::f8e4m3, values, kLine, nullptr);
  std::memcpy(out, &scale, sizeof scale);
}

void decode_f8(const Coder &, const Table &table, const std::byte *coded, float *out) {
  float scale = 0;
  std::memcpy(&scale, coded, sizeof scale);
  table.decode(out, reinterpret_cast<const uint8_t *>(coded + sizeof scale), &scale, DType::f8e4m3, kLine);
}

constexpr size_t kMostKept = 64;  // ZERO_KEY_CODE_TOP

/// ZERO_CODE_TOP has a row for each number of values that it may keep.
constexpr auto kCoders = [] {
  std::array<Coder, 4 + kMostKept> rows = {{
      {ZERO_CODE_F8, "f8 codes", kLine + 4, 0, false, encode_f8, decode_f8},
      {ZERO_CODE_I8, "8-bit integer codes", kLine + 4, 0, false, reference::encode_i8, reference::decode_i8},
      {ZERO_CODE_I4, "4-bit integer codes", kLine / 2 + 4, 0, false, reference::encode_i4, reference::decode_i4},
      {ZERO_CODE_SIGN, "1-bit signs", kLine / 8 + 4, 0, true, reference::encode_sign, reference::decode_sign},
  }};
  for (size_t kept = 1; kept <= kMostKept; ++kept) {
    const auto count = static_cast<int64_t>(kept);
    rows[3 + kept] = {ZERO_CODE_TOP,        "8-bit integer codes of the largest values", 2 * count + 4, count, false, reference::encode_top,
                      reference::decode_top};
  }
  return rows;
}();

}  // namespace

std::span<const Coder> coders() { return kCoders; }

const Coder *find_coder(int64_t number, int64_t kept) {
  for (const Coder &coder : kCoders) {
    if (coder.number == number && (coder.kept == 0 || coder.kept == kept)) return &coder;
  }
  return nullptr;
}

int64_t coded_nbytes(const Coder &coder, int64_t lines, int64_t full) { return lines * coder.line_nbytes + full * kLineNbytes; }

void encode_lines(const Table &table, const Coder &coder, const float *values, int64_t count, std::span<const uint8_t> full,
                  std::byte *out) {
  std::byte *whole = out + std::ssize(full) * coder.line_nbytes;
  for (const uint8_t in_full : full) {
    std::array<float, kLine> padded;
    const float *from = values;
    if (count < kLine) {
      padded.fill(0);
      std::copy_n(values, count, padded.begin());
      from = padded.data();
    }
    coder.encode(coder, table, from, out);
    if (in_full != 0) {
      std::memcpy(whole, from, static_cast<size_t>(kLineNbytes));
      whole += kLineNbytes;
    }
    values += kLine;
    count -= kLine;
    out += coder.line_nbytes;
  }
}

void decode_lines(const Table &table, const Coder &coder, const std::byte *coded, int64_t count, std::span<const uint8_t> full,
                  float *out) {
  const std::byte *whole = coded + std::ssize(full) * coder.line_nbytes;
  for (const uint8_t in_full : full) {
    std::array<float, kLine> decoded;
    float *to = count < kLine ? decoded.data() : out;
    if (in_full != 0) {
      std::memcpy(to, whole, static_cast<size_t>(kLineNbytes));
      whole += kLineNbytes;
    } else {
      coder.decode(coder, table, coded, to);
    }
    if (count < kLine) std::copy_n(decoded.begin(), count, out);
    out += kLine;
    count -= kLine;
    coded += coder.line_nbytes;
  }
}

}  // namespace zero::kernels
