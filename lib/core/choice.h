/// @file Choice: the values that something may have, with their names, for checks and their texts.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zero {

/// A value, and what it is called in the public headers.
struct Choice {
  int64_t value;
  const char *name;
};

/// nullptr: it is none of them.
inline const Choice *find_choice(std::span<const Choice> choices, int64_t value) {
  for (const Choice &choice : choices) {
    if (choice.value == value) return &choice;
  }
  return nullptr;
}

/// "A (0), B (1) or C (2)"
inline std::string choices_text(std::span<const Choice> choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 < choices.size() ? ", " : " or ";
    text += std::string(choices[i].name) + " (" + std::to_string(choices[i].value) + ")";
  }
  return text;
}

/// ZERO_OK when the value is one of them.
inline Status check_choice(std::span<const Choice> choices, int64_t value, const char *name) {
  ZERO_CHECK(find_choice(choices, value) != nullptr, ZERO_E_INVALID_ARGUMENT, "%s is %lld, but must be %s", name, lld(value),
             choices_text(choices).c_str());
  return {};
}

}  // namespace zero
