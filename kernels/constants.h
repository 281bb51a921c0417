/// @file Constants of any algorithm in the form that kernels take. Not for files that are compiled once per target, which read them only.
#pragma once

#include "kernels/kernels.h"

#include <cstring>
#include <type_traits>

namespace zero::kernels {

/// kMake: what makes the constants of one algorithm, as adam_constants does.
template <auto kMake>
Constants constants_of(const HyperParameters &hyper) {
  const auto made = kMake(hyper);
  Constants constants;
  static_assert(sizeof made <= sizeof constants.bytes && std::is_trivially_copyable_v<decltype(made)>);
  std::memcpy(constants.bytes, &made, sizeof made);
  return constants;
}

}  // namespace zero::kernels
