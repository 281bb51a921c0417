/// @file Tests that have a quick and a full size.
#pragma once

#include <cstdlib>
#include <string_view>

namespace zero::tests {

/// True when ZERO_TEST_FULL is set to anything but 0.
inline bool is_full_size() {
  const char *const value = std::getenv("ZERO_TEST_FULL");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace zero::tests
