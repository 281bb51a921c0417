/// @file The fixed tree of kernels/reduce.h over sources. Sources are loaded in groups of 4 before
/// any of them is combined, so that many loads overlap.
///
/// n is a sum of distinct powers of two. T(0, n) consists of one complete subtree for each of them,
/// the largest first, combined from right to left. Complete subtrees of 4 and more sources are
/// built like the digits of a binary counter.
///
/// A struct of leaves describes the sources:
/// - Loaded, Value: a source as it is stored, and as it is combined
/// - load(source), value_of(loaded), combine(left, right)
#pragma once

#include "kernels/cuda/launch.h"

namespace zero::kernels::cuda {

template <int kSources, class Leaves>
ZERO_DEVICE typename Leaves::Value complete_tree(const Leaves &leaves, const typename Leaves::Loaded *loaded) {
  if constexpr (kSources == 1) {
    return leaves.value_of(*loaded);
  } else {
    return leaves.combine(complete_tree<kSources / 2>(leaves, loaded), complete_tree<kSources / 2>(leaves, loaded + kSources / 2));
  }
}

/// T(first, first + kSources), kSources a power of two.
template <int kSources, class Leaves>
ZERO_DEVICE typename Leaves::Value subtree(const Leaves &leaves, int64_t first) {
  typename Leaves::Loaded loaded[kSources];
  ZERO_UNROLLED
  for (int i = 0; i < kSources; ++i) loaded[i] = leaves.load(first + i);
  return complete_tree<kSources>(leaves, loaded);
}

/// A value that grows to the left.
template <class Leaves>
struct Suffix {
  typename Leaves::Value value = {};
  bool has_any = false;

  ZERO_DEVICE void prepend(const Leaves &leaves, const typename Leaves::Value &part) {
    value = has_any ? leaves.combine(part, value) : part;
    has_any = true;
  }
};

/// T(0, n), n from 1 to 64.
template <class Leaves>
ZERO_DEVICE typename Leaves::Value tree_of(const Leaves &leaves, int64_t n) {
  using Value = typename Leaves::Value;
  constexpr int kDigits = 4;  // subtrees of 4, 8, 16 and 32
  Value digit[kDigits];
  const int64_t fours = n / 4;
  ZERO_ROLLED
  for (int64_t i = 0; i < fours; ++i) {
    Value value = subtree<4>(leaves, 4 * i);
    bool carries = true;
    ZERO_UNROLLED
    for (int d = 0; d < kDigits; ++d) {
      const bool is_set = (i >> d & 1) != 0;
      if (carries && is_set) value = leaves.combine(digit[d], value);
      if (carries && !is_set) digit[d] = value;
      carries = carries && is_set;
    }
    if (carries) return value;  // 64 sources
  }
  Suffix<Leaves> suffix;
  if ((n & 1) != 0) suffix.prepend(leaves, subtree<1>(leaves, n - 1));
  if ((n & 2) != 0) suffix.prepend(leaves, subtree<2>(leaves, n - n % 4));
  ZERO_UNROLLED
  for (int d = 0; d < kDigits; ++d) {
    if ((fours >> d & 1) != 0) suffix.prepend(leaves, digit[d]);
  }
  return suffix.value;
}

}  // namespace zero::kernels::cuda
