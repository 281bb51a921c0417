/// @file Names of the library's optimizer algorithms, for what holds for all of them: tests that ask here run new ones too.
#pragma once

#include "kernels/kernels.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace zero::test {

using Names = std::vector<const char *>;

/// Those that `wanted` is true of, but for some that the test draws elsewhere, or more often.
template <class Wanted>
Names names_where(const Wanted &wanted, std::initializer_list<std::string_view> but) {
  Names names;
  for (const kernels::Algorithm &algorithm : kernels::algorithms()) {
    if (wanted(algorithm) && std::find(but.begin(), but.end(), algorithm.name) == but.end()) names.push_back(algorithm.name);
  }
  return names;
}

inline Names all_names(std::initializer_list<std::string_view> but = {}) {
  return names_where([](const kernels::Algorithm &) { return true; }, but);
}

/// Those that take tensors of any shape.
inline Names any_shape_names(std::initializer_list<std::string_view> but = {}) {
  return names_where([](const kernels::Algorithm &algorithm) { return !algorithm.matrix; }, but);
}

/// Those that update each element from what belongs to it alone.
inline Names elementwise_names(std::initializer_list<std::string_view> but = {}) {
  return names_where([](const kernels::Algorithm &algorithm) { return !algorithm.matrix && !algorithm.layerwise; }, but);
}

}  // namespace zero::test
