/// @file Reads variables of launchers: numbers, pairs of rank and size, and names made of several
/// variables. Knows no launcher.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

namespace zero {

/// Like getenv: returns nullptr for a variable that is not set.
using Environment = std::function<const char *(const char *)>;

/// Rank and size from one launcher.
struct World {
  const char *launcher;
  const char *size_variable;
  int64_t rank;
  int64_t size;
};

/// Returns the value of a variable, or nullptr if it is not set or empty.
const char *value_of(const Environment &environment, const char *variable);

/// Reads digits, 0 .. 2147483647. Returns ZERO_E_LAUNCHER for any other text.
Status read_number(const char *variable, const char *value, int64_t *out);

/// Reads both variables of a pair; if neither is set, out stays empty. Returns ZERO_E_LAUNCHER if
/// only one is set, or if the rank is not below the size.
Status read_pair(const Environment &environment, const char *launcher, const char *rank_variable, const char *size_variable,
                 std::optional<World> *out);

/// A short name that differs if the values of these variables differ.
std::string name_from(const Environment &environment, const char *prefix, std::initializer_list<const char *> variables);

}  // namespace zero
