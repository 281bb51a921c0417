/// @file What the texts of errors say.
#pragma once

#include "core/status.h"

#include <string_view>

namespace zero::test {

inline bool contains(const Status &status, std::string_view words) {
  return std::string_view(status.text()).find(words) != std::string_view::npos;
}

}  // namespace zero::test
