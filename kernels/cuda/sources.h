/// @file Quad sums over sources of floats, in fp32.
#pragma once

#include "kernels/cuda/quad.h"
#include "kernels/cuda/tree.h"

namespace zero::kernels::cuda {

/// Elements [index, index + count) of some sources.
struct Sources {
  const void *const *address;
  DType dtype;  ///< f32, f16, bf16
  int64_t index;
  int count;

  template <class Element>
  ZERO_DEVICE bool has_whole_quads(int64_t sources) const {
    bool all = count == kQuad;
    for (int64_t i = 0; i < sources; ++i) all = all && cuda::has_whole_quads<Element>(static_cast<const Element *>(address[i]) + index);
    return all;
  }
};

/// Leaves of the tree.
template <class Element, bool kWhole>
struct Addends {
  using Loaded = Quad<Element>;
  using Value = Quad<float>;
  const Sources &sources;

  ZERO_DEVICE Loaded load(int64_t source) const {
    const void *address = sources.address[source];
    if constexpr (kWhole) {
      return whole_quad<Element>(address, sources.index);
    } else {
      return cuda::load<Element>(address, sources.index, sources.count);
    }
  }
  ZERO_DEVICE Value value_of(const Loaded &loaded) const { return widened(loaded, sources.dtype); }
  ZERO_DEVICE Value combine(const Value &a, const Value &b) const {
    Value sum;
    ZERO_UNROLLED
    for (int i = 0; i < kQuad; ++i) sum.element[i] = a.element[i] + b.element[i];
    return sum;
  }
};

/// Leaves of the tree: 16-bit elements that are multiplied before they are added.
struct WeightedAddends {
  struct Loaded {
    Quad<uint16_t> quad;
    float weight;
  };
  using Value = Quad<float>;
  const Sources &sources;
  const float *weights;

  ZERO_DEVICE Loaded load(int64_t source) const {
    return {cuda::load<uint16_t>(sources.address[source], sources.index, sources.count), weights[source]};
  }
  ZERO_DEVICE Value value_of(const Loaded &loaded) const {
    Value value = widened(loaded.quad, sources.dtype);
    ZERO_UNROLLED
    for (int i = 0; i < kQuad; ++i) value.element[i] = value.element[i] * loaded.weight;
    return value;
  }
  ZERO_DEVICE Value combine(const Value &a, const Value &b) const { return Addends<uint16_t, false>{sources}.combine(a, b); }
};

template <class Element>
ZERO_DEVICE Quad<float> sum_of_elements(const Sources &sources, int64_t n) {
  return sources.has_whole_quads<Element>(n) ? tree_of(Addends<Element, true>{sources}, n) : tree_of(Addends<Element, false>{sources}, n);
}

/// The sum of 2 or 4 sources. All loads are issued before the first result is used.
template <class Element>
ZERO_DEVICE Quad<float> sum_of_few(const Sources &sources, int64_t n) {
  const auto sum = [n](const auto &leaves) { return n == 2 ? subtree<2>(leaves, 0) : subtree<4>(leaves, 0); };
  return sources.has_whole_quads<Element>(n) ? sum(Addends<Element, true>{sources}) : sum(Addends<Element, false>{sources});
}

ZERO_DEVICE Quad<float> divided(Quad<float> sum, double divisor) {
  const auto by = static_cast<float>(divisor);
  ZERO_UNROLLED
  for (int i = 0; i < kQuad && divisor != 1; ++i) sum.element[i] = sum.element[i] / by;
  return sum;
}

/// The sum of n sources, divided, before it is rounded.
ZERO_DEVICE Quad<float> reduced(const Sources &sources, int64_t n, double divisor) {
  const Quad<float> sum = sources.dtype == DType::f32 ? sum_of_elements<float>(sources, n) : sum_of_elements<uint16_t>(sources, n);
  return divided(sum, divisor);
}

}  // namespace zero::kernels::cuda
