/// @file Numbers as texts, in any locale and rounding mode.
#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace zero {

/// The shortest decimal text that reads back as the same number.
inline std::string number_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// "1 rank", "2 ranks": for nouns that take an s.
inline std::string count_text(int64_t count, const char *noun) { return std::to_string(count) + " " + noun + (count == 1 ? "" : "s"); }

/// @name Bounds as the public headers write them: "4096", "2^40", "2^62 - 1", "2^-30".
/// @{
inline std::string bound_text(int64_t bound) {
  const auto bits = static_cast<uint64_t>(bound);
  if (bound < int64_t{1} << 20) return std::to_string(bound);
  if (std::has_single_bit(bits)) return "2^" + std::to_string(std::countr_zero(bits));
  return std::has_single_bit(bits + 1) ? "2^" + std::to_string(std::countr_zero(bits + 1)) + " - 1" : std::to_string(bound);
}
inline std::string bound_text(double bound) {
  int exponent = 0;
  const bool power = std::frexp(bound, &exponent) == 0.5;
  return power && std::abs(exponent - 1) >= 20 ? "2^" + std::to_string(exponent - 1) : number_text(bound);
}
/// @}

/// "1.65 GB", "23.40 MB", "4.10 KB", "640 bytes"; powers of 1000. `nbytes` below 1e36.
inline std::string nbytes_text(double nbytes) {
  const auto in_unit = [nbytes](double unit, const char *name) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, nbytes / unit, std::chars_format::fixed, 2).ptr) + name;
  };
  if (nbytes >= 1e12) return in_unit(1e12, " TB");
  if (nbytes >= 1e9) return in_unit(1e9, " GB");
  if (nbytes >= 1e6) return in_unit(1e6, " MB");
  return nbytes >= 1e3 ? in_unit(1e3, " KB") : number_text(nbytes) + (nbytes == 1 ? " byte" : " bytes");
}

}  // namespace zero
