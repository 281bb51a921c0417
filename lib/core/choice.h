/// @file Choice: the values that a setting may have, with their names, for checks and error texts.
#pragma once

#include "core/status.h"

#include <zero/dtype.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zero {

/// A value and its name in the public headers.
struct Choice {
  int64_t value;
  const char *name;
};

inline constexpr Choice kDtypes[] = {{ZERO_DTYPE_F32, "ZERO_DTYPE_F32"},         {ZERO_DTYPE_F64, "ZERO_DTYPE_F64"},
                                     {ZERO_DTYPE_F16, "ZERO_DTYPE_F16"},         {ZERO_DTYPE_BF16, "ZERO_DTYPE_BF16"},
                                     {ZERO_DTYPE_I32, "ZERO_DTYPE_I32"},         {ZERO_DTYPE_I64, "ZERO_DTYPE_I64"},
                                     {ZERO_DTYPE_U8, "ZERO_DTYPE_U8"},           {ZERO_DTYPE_U16, "ZERO_DTYPE_U16"},
                                     {ZERO_DTYPE_F8_E4M3, "ZERO_DTYPE_F8_E4M3"}, {ZERO_DTYPE_F8_UE5M3, "ZERO_DTYPE_F8_UE5M3"}};
/// The dtypes of collectives and buffers, without those for slots alone.
inline constexpr std::span<const Choice> kArrayDtypes{kDtypes, 7};

/// Returns nullptr if the value is not among the choices.
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

/// Returns ZERO_OK if the value is among the choices.
inline Status check_choice(std::span<const Choice> choices, int64_t value, const char *name) {
  ZERO_CHECK(find_choice(choices, value) != nullptr, ZERO_E_INVALID_ARGUMENT, "%s is %lld, but must be %s", name, lld(value),
             choices_text(choices).c_str());
  return {};
}

/// Returns ZERO_OK if `index` is in [0, count). `things` is the plural noun of the numbered things.
inline Status check_index(int64_t index, int64_t count, const char *name, const char *things) {
  ZERO_CHECK(count > 0, ZERO_E_INVALID_ARGUMENT, "%s is %lld, but there are no %s", name, lld(index), things);
  ZERO_CHECK(index >= 0 && index < count, ZERO_E_INVALID_ARGUMENT, "%s is %lld, but must be in 0 .. %lld, as %s are numbered", name,
             lld(index), lld(count - 1), things);
  return {};
}

}  // namespace zero
