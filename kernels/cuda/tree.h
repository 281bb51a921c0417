/// @file Sums of quads over sources by the fixed tree of kernels/reduce.h, in fp32. Sources are loaded in groups of 4 before any of them is
/// added, so that many loads are on their way.
///
/// T(0, n), n = sum of different powers of two: its complete subtrees from left to right, the largest first, added from right to left.
/// Complete subtrees of 4 sources and more are put together as the digits of a binary counter.
#pragma once

#include "kernels/cuda/quad.h"

namespace zero::kernels::cuda {

ZERO_DEVICE Quad<float> operator+(const Quad<float> &a, const Quad<float> &b) {
  Quad<float> sum;
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) sum.element[i] = a.element[i] + b.element[i];
  return sum;
}

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

template <class Element, int kSources>
ZERO_DEVICE Quad<float> complete_tree(const Quad<Element> *loaded, DType dtype) {
  if constexpr (kSources == 1) {
    return widened(*loaded, dtype);
  } else {
    return complete_tree<Element, kSources / 2>(loaded, dtype) + complete_tree<Element, kSources / 2>(loaded + kSources / 2, dtype);
  }
}

/// T(first, first + kSources), kSources a power of two.
template <class Element, bool kWhole, int kSources>
ZERO_DEVICE Quad<float> subtree(const Sources &sources, int64_t first) {
  Quad<Element> loaded[kSources];
  ZERO_UNROLLED
  for (int i = 0; i < kSources; ++i) {
    const void *address = sources.address[first + i];
    if constexpr (kWhole) {
      loaded[i] = whole_quad<Element>(address, sources.index);
    } else {
      loaded[i] = load<Element>(address, sources.index, sources.count);
    }
  }
  return complete_tree<Element, kSources>(loaded, sources.dtype);
}

/// A sum that grows to the left.
struct Suffix {
  Quad<float> sum = {};
  bool has_any = false;

  ZERO_DEVICE void prepend(const Quad<float> &part) {
    sum = has_any ? part + sum : part;
    has_any = true;
  }
};

/// T(0, n), n from 1 to 64.
template <class Element, bool kWhole>
ZERO_DEVICE Quad<float> tree_of(const Sources &sources, int64_t n) {
  constexpr int kDigits = 4;  // subtrees of 4, 8, 16 and 32
  Quad<float> digit[kDigits];
  const int64_t fours = n / 4;
  ZERO_ROLLED
  for (int64_t i = 0; i < fours; ++i) {
    Quad<float> sum = subtree<Element, kWhole, 4>(sources, 4 * i);
    bool carries = true;
    ZERO_UNROLLED
    for (int d = 0; d < kDigits; ++d) {
      const bool is_set = (i >> d & 1) != 0;
      if (carries && is_set) sum = digit[d] + sum;
      if (carries && !is_set) digit[d] = sum;
      carries = carries && is_set;
    }
    if (carries) return sum;  // of 64
  }
  Suffix suffix;
  if ((n & 1) != 0) suffix.prepend(subtree<Element, kWhole, 1>(sources, n - 1));
  if ((n & 2) != 0) suffix.prepend(subtree<Element, kWhole, 2>(sources, n - n % 4));
  ZERO_UNROLLED
  for (int d = 0; d < kDigits; ++d) {
    if ((fours >> d & 1) != 0) suffix.prepend(digit[d]);
  }
  return suffix.sum;
}

template <class Element>
ZERO_DEVICE Quad<float> sum_of_elements(const Sources &sources, int64_t n) {
  return sources.has_whole_quads<Element>(n) ? tree_of<Element, true>(sources, n) : tree_of<Element, false>(sources, n);
}

/// The sum of n sources, divided, before it is rounded.
ZERO_DEVICE Quad<float> reduced(const Sources &sources, int64_t n, double divisor) {
  Quad<float> sum = sources.dtype == DType::f32 ? sum_of_elements<float>(sources, n) : sum_of_elements<uint16_t>(sources, n);
  const auto by = static_cast<float>(divisor);
  ZERO_UNROLLED
  for (int i = 0; i < kQuad && divisor != 1; ++i) sum.element[i] = sum.element[i] / by;
  return sum;
}

}  // namespace zero::kernels::cuda
