/// @file Adds rules, and renames by them.
#include "engine/checkpoint/renames.h"

namespace zero {

Status Renames::add(const char *in_file, const char *here) {
  const std::string from = in_file;
  const std::string to = here;
  const auto is_pattern = [](const std::string &name) { return name.size() >= 2 && name.ends_with(".*"); };
  ZERO_CHECK(!from.empty() && !to.empty(), ZERO_E_INVALID_ARGUMENT, "in_file is \"%s\" and here is \"%s\", but neither may be empty", in_file,
             here);
  ZERO_CHECK(is_pattern(from) == is_pattern(to), ZERO_E_INVALID_ARGUMENT,
             "in_file is \"%s\" and here is \"%s\", but either both end with .* or neither", in_file, here);
  rules_.emplace_back(from, to);
  return {};
}

std::string Renames::here(const std::string &in_file) const {
  for (const auto &[from, to] : rules_) {
    if (from == in_file) return to;
    const std::string stem = from.substr(0, from.size() - 1);
    if (from.ends_with(".*") && in_file.starts_with(stem)) return to.substr(0, to.size() - 1) + in_file.substr(stem.size());
  }
  return in_file;
}

}  // namespace zero
