/// @file The passes of Muon that update slots: kernels/muon.h on a device.
#pragma once

#include "kernels/cuda/device_update.h"
#include "kernels/reference/muon-inl.h"

namespace zero::kernels::cuda {

/// Updates the momentum and returns the direction in place of the parameter.
template <>
struct Pass<reference::MuonMomentum> {
  static constexpr bool kUpdatesParam = false;
  static constexpr bool kUpdatesStates = true;

  ZERO_DEVICE reference::MuonConstants constants(const UpdateSegment &, const Scalars &scalars) const {
    return constants_in<reference::MuonConstants>(scalars);
  }
  ZERO_DEVICE Quad<float> input(const Span &) const { return {}; }
};

template <>
struct Pass<reference::MuonParam> {
  static constexpr bool kUpdatesParam = true;
  static constexpr bool kUpdatesStates = false;

  const float *direction;
  double adjustment;  ///< Muon::rate_adjustment()

  ZERO_DEVICE reference::MuonParam::Constants constants(const UpdateSegment &, const Scalars &scalars) const {
    return reference::MuonParam::constants(constants_in<reference::MuonConstants>(scalars), adjustment);
  }
  ZERO_DEVICE Quad<float> input(const Span &span) const { return load<float>(direction, span.index, span.count); }
};

}  // namespace zero::kernels::cuda
