/// @file The passes of LAMB that update slots: kernels/lamb.h on a device.
#pragma once

#include "kernels/cuda/device_update.h"
#include "kernels/reference/lamb-inl.h"

namespace zero::kernels::cuda {

template <>
struct Pass<reference::LambMoments> {
  static constexpr bool kUpdatesParam = false;
  static constexpr bool kUpdatesStates = true;

  ZERO_DEVICE AdamConstants constants(const UpdateSegment &, const Scalars &scalars) const {
    return constants_in<reference::Lamb::Constants>(scalars).moments;
  }
  ZERO_DEVICE Quad<float> input(const Span &) const { return {}; }
};

template <>
struct Pass<reference::LambParam> {
  static constexpr bool kUpdatesParam = true;
  static constexpr bool kUpdatesStates = false;

  ZERO_DEVICE LambConstants constants(const UpdateSegment &piece, const Scalars &scalars) const {
    const auto given = constants_in<reference::Lamb::Constants>(scalars);
    LambConstants constants = given.param;
    constants.negative_step = reference::LambParam::negative_step(given.lr, *piece.trust_ratio);
    return constants;
  }
  ZERO_DEVICE Quad<float> input(const Span &) const { return {}; }
};

}  // namespace zero::kernels::cuda
