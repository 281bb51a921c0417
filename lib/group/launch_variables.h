/// @file Variables as launchers set them: numbers, pairs of rank and size, names made of several. Knows no launcher.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

namespace zero {

/// Like getenv: nullptr for a variable that is not set.
using Environment = std::function<const char *(const char *)>;

/// Rank and size as one launcher gives them.
struct World {
  const char *launcher;
  const char *size_variable;
  int64_t rank;
  int64_t size;
};

/// A variable that is set to something; otherwise nullptr.
const char *value_of(const Environment &environment, const char *variable);

/// 0 .. 2147483647 in digits. ZERO_E_LAUNCHER for anything else.
Status read_number(const char *variable, const char *value, int64_t *out);

/// Both variables of a pair, or neither (then out stays empty). ZERO_E_LAUNCHER for one alone, and for a rank that is not below the size.
Status read_pair(const Environment &environment, const char *launcher, const char *rank_variable, const char *size_variable,
                 std::optional<World> *out);

/// Short, and another one for all other values of these variables.
std::string name_from(const Environment &environment, const char *prefix, std::initializer_list<const char *> variables);

}  // namespace zero
