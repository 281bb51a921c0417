/// @file Reads single variables and pairs of them.
#include "group/launch_variables.h"

#include "core/hash.h"

#include <charconv>
#include <cstdio>
#include <cstring>

namespace zero {

const char *value_of(const Environment &environment, const char *variable) {
  const char *value = environment(variable);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

Status read_number(const char *variable, const char *value, int64_t *out) {
  const char *end = value + std::strlen(value);
  const auto result = std::from_chars(value, end, *out);
  ZERO_CHECK(result.ec == std::errc() && result.ptr == end && *out >= 0 && *out <= INT32_MAX, ZERO_E_LAUNCHER,
             "the variable %s is \"%s\", not a number from 0 to 2147483647; start the ranks with mpirun, srun or torchrun, or unset it",
             variable, value);
  return {};
}

Status read_pair(const Environment &environment, const char *launcher, const char *rank_variable, const char *size_variable,
                 std::optional<World> *out) {
  const char *rank = value_of(environment, rank_variable);
  const char *size = value_of(environment, size_variable);
  if (rank == nullptr && size == nullptr) return {};
  ZERO_CHECK(rank != nullptr && size != nullptr, ZERO_E_LAUNCHER, "%s is set to \"%s\" but %s is not; %s sets both: set or unset both",
             rank != nullptr ? rank_variable : size_variable, rank != nullptr ? rank : size,
             rank != nullptr ? size_variable : rank_variable, launcher);
  World world{launcher, size_variable, 0, 0};
  ZERO_TRY(read_number(rank_variable, rank, &world.rank));
  ZERO_TRY(read_number(size_variable, size, &world.size));
  ZERO_CHECK(world.rank < world.size, ZERO_E_LAUNCHER, "%s is %lld but %s is %lld; ranks run from 0 to size - 1", rank_variable,
             lld(world.rank), size_variable, lld(world.size));
  *out = world;
  return {};
}

std::string name_from(const Environment &environment, const char *prefix, std::initializer_list<const char *> variables) {
  std::string values;
  for (const char *variable : variables) {
    const char *value = value_of(environment, variable);
    values.append(value != nullptr ? value : "").push_back('\0');
  }
  char text[40];
  std::snprintf(text, sizeof text, "%s-%016llx", prefix, static_cast<unsigned long long>(hash_of_text(values)));
  return text;
}

}  // namespace zero
