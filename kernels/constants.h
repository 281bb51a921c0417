/// @file Constants: makes those of any algorithm in the form that kernels take. Files that are
/// compiled once per target do not include this; they only read constants.
#pragma once

#include "kernels/kernels.h"

#include <cstring>
#include <type_traits>

namespace zero::kernels {

/// Algorithm: a struct of reference/ that makes constants, as Adam in adam-inl.h does.
template <class Algorithm>
Constants constants_of(const HyperParameters &hyper) {
  const auto made = Algorithm::constants(hyper);
  Constants constants;
  static_assert(sizeof made <= sizeof constants.bytes && std::is_trivially_copyable_v<decltype(made)>);
  std::memcpy(constants.bytes, &made, sizeof made);
  return constants;
}

}  // namespace zero::kernels
