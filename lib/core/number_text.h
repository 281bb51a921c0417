/// @file number_text: the shortest decimal text that reads back as the same number, whatever the locale and the rounding mode.
#pragma once

#include <charconv>
#include <string>

namespace zero {

inline std::string number_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace zero
