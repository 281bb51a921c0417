/// @file Coded lines: the scales of all lines, then their codes, then the values of lines sent in
/// full.
#include "kernels/coded_lines.h"

#include "core/partition.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace zero::kernels {
namespace {

constexpr uint32_t kInfinityBits = 0x7f800000;
constexpr auto kLineNbytes = kLine * static_cast<int64_t>(sizeof(float));

int64_t line_nbytes(Code code) { return code == Code::i4 ? kLine / 2 : kLine; }

/// Returns the bits of the largest magnitude. Bits order as magnitudes do; infinity and NaN are
/// above all finite values.
uint32_t largest_bits(const float *values) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < kLine; ++i) largest = std::max(largest, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffU);
  return largest;
}

/// Rounds to nearest, ties to even: the unit of the sum is 1.
int32_t rounded(float value) {
  constexpr float kShift = 12582912;
  return std::bit_cast<int32_t>(value + kShift) - std::bit_cast<int32_t>(kShift);
}

/// Returns the scale: 0 if the line is zero or too small to have an inverse, NaN if a value is not
/// finite.
float encode_integers(const float *values, int32_t most, int8_t *out) {
  const uint32_t bits = largest_bits(values);
  const float largest = std::bit_cast<float>(bits);
  const float inverse = static_cast<float>(most) / largest;
  if (bits >= kInfinityBits || bits == 0 || std::isinf(inverse)) {
    std::memset(out, 0, static_cast<size_t>(kLine));
    return bits >= kInfinityBits ? std::numeric_limits<float>::quiet_NaN() : 0;
  }
  for (int64_t i = 0; i < kLine; ++i) out[i] = static_cast<int8_t>(std::clamp(rounded(values[i] * inverse), -most, most));
  // `most` times the scale must not overflow.
  return std::min(largest / static_cast<float>(most), std::numeric_limits<float>::max() / static_cast<float>(most) * 0.9999999F);
}

void encode_line(const Table &table, Code code, const float *values, float *scale, std::byte *out) {
  auto *bytes = reinterpret_cast<uint8_t *>(out);
  if (code == Code::f8) return table.encode(bytes, scale, DType::f8e4m3, values, kLine, nullptr);
  std::array<int8_t, kLine> integers;
  *scale = encode_integers(values, code == Code::i8 ? 127 : 7, integers.data());
  if (code == Code::i8) return void(std::memcpy(out, integers.data(), integers.size()));
  for (size_t i = 0; i < integers.size() / 2; ++i) {
    bytes[i] = static_cast<uint8_t>((static_cast<uint32_t>(integers[2 * i]) & 15U) | (static_cast<uint32_t>(integers[2 * i + 1]) << 4));
  }
}

void decode_line(const Table &table, Code code, const std::byte *coded, float scale, float *out) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(coded);
  if (code == Code::f8) return table.decode(out, bytes, &scale, DType::f8e4m3, kLine);
  if (code == Code::i8) {
    for (int64_t i = 0; i < kLine; ++i) out[i] = static_cast<float>(static_cast<int8_t>(bytes[i])) * scale;
    return;
  }
  for (int64_t i = 0; i < kLine / 2; ++i) {
    out[2 * i] = static_cast<float>(static_cast<int8_t>(bytes[i] << 4) >> 4) * scale;
    out[2 * i + 1] = static_cast<float>(static_cast<int8_t>(bytes[i]) >> 4) * scale;
  }
}

/// The offsets of the parts of coded lines.
struct Parts {
  Parts(Code code, int64_t lines) : codes(lines * static_cast<int64_t>(sizeof(float))), whole(codes + lines * line_nbytes(code)) {}
  int64_t codes;
  int64_t whole;
};

/// Reads a scale at an address of any alignment.
float load(const std::byte *from) {
  float value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

int64_t coded_nbytes(Code code, int64_t lines, int64_t full) { return Parts(code, lines).whole + full * kLineNbytes; }

void encode_lines(const Table &table, Code code, const float *values, int64_t count, std::span<const uint8_t> full, std::byte *out) {
  const auto lines = static_cast<int64_t>(full.size());
  const Parts parts(code, lines);
  std::byte *whole = out + parts.whole;
  for (int64_t line = 0; line < lines; ++line) {
    std::array<float, kLine> padded;
    const float *from = values + line * kLine;
    const int64_t left = std::min(count - line * kLine, kLine);
    if (left < kLine) {
      padded.fill(0);
      std::copy_n(from, left, padded.begin());
      from = padded.data();
    }
    float scale = 0;
    encode_line(table, code, from, &scale, out + parts.codes + line * line_nbytes(code));
    std::memcpy(out + line * static_cast<int64_t>(sizeof scale), &scale, sizeof scale);
    if (full[static_cast<size_t>(line)] == 0) continue;
    std::memcpy(whole, from, static_cast<size_t>(kLineNbytes));
    whole += kLineNbytes;
  }
}

void decode_lines(const Table &table, Code code, const std::byte *coded, int64_t count, std::span<const uint8_t> full, float *out) {
  const auto lines = static_cast<int64_t>(full.size());
  const Parts parts(code, lines);
  const std::byte *whole = coded + parts.whole;
  for (int64_t line = 0; line < lines; ++line) {
    std::array<float, kLine> decoded;
    const int64_t left = std::min(count - line * kLine, kLine);
    float *to = left == kLine ? out + line * kLine : decoded.data();
    if (full[static_cast<size_t>(line)] != 0) {
      std::memcpy(to, whole, static_cast<size_t>(kLineNbytes));
      whole += kLineNbytes;
    } else {
      decode_line(table, code, coded + parts.codes + line * line_nbytes(code), load(coded + line * static_cast<int64_t>(sizeof(float))),
                  to);
    }
    if (left < kLine) std::copy_n(decoded.begin(), left, out + line * kLine);
  }
}

}  // namespace zero::kernels
