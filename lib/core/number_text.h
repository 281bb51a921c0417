/// @file Numbers as texts, whatever the locale and the rounding mode.
#pragma once

#include <charconv>
#include <string>

namespace zero {

/// The shortest decimal text that reads back as the same number.
inline std::string number_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

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
