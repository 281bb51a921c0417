/// @file Kernels that apply one operation to each quad of a range, and the check of quads.
#pragma once

#include "kernels/cuda/quad.h"
#include "kernels/reference/elementwise-inl.h"

namespace zero::kernels::cuda {

/// Calls operation(index, count) for all quads of the range, one per thread.
template <class Operation>
struct OverQuads : ThreadsAlone {
  Operation operation;
  int64_t count;

  template <int>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &) const {
    const int64_t index = (place.block * kThreads + place.thread) * kQuad;
    if (index < count) operation(index, count - index < kQuad ? static_cast<int>(count - index) : kQuad);
  }
};

template <class Operation>
int32_t over_quads(int64_t device, void *stream, int64_t count, const Operation &operation) {
  constexpr int64_t kPerBlock = kThreads * kQuad;
  return launch(device, stream, (count + kPerBlock - 1) / kPerBlock, OverQuads<Operation>{{}, operation, count});
}

/// Sets the flag if one of the first `count` elements is beyond the limit.
ZERO_DEVICE void check(const Quad<float> &quad, int count, float limit, int32_t *flag) {
  bool within = true;
  for (int i = 0; i < kQuad; ++i) within = within && (i >= count || reference::is_within(quad.element[i], limit));
  if (!within) raise(flag);
}

}  // namespace zero::kernels::cuda
