/// @file Square sums of the threads of a block. Lines are summed as in reference/add_squares.cpp,
/// one thread per lane. They are then added as integers, in any order.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/cuda/table.h"
#include "kernels/reference/add_squares-inl.h"
#include "kernels/reference/exact_sum-inl.h"

namespace zero::kernels::cuda {

static_assert(kSquareWords <= kThreads);

/// The sum of a block, before it is added to the words of one sum.
struct BlockSum {
  int64_t word[kSquareWords];

  ZERO_DEVICE void clear(const Place &place) {
    if (place.thread < kSquareWords) word[place.thread] = 0;
  }

  ZERO_DEVICE void add_line(const double *lanes) {
    const reference::Digits digits = reference::digits_of(reference::sum_of_lanes(lanes));
    if (digits.is_nan) add_to(word[ExactSum::kLimbs], 1);
    if (digits.is_infinite) add_to(word[ExactSum::kLimbs + 1], 1);
    for (int i = 0; i < 3; ++i) {
      if (digits.digit[i] != 0) add_to(word[digits.limb + i], digits.digit[i]);
    }
  }

  ZERO_DEVICE void add_words(const Place &place, int64_t *words) const {
    if (place.thread < kSquareWords && word[place.thread] != 0) add_to(words[place.thread], word[place.thread]);
  }
};

/// Sums of squares over a chunk of fp32 values, which the threads of its block put here, padded
/// with zeros. The threads must wait for one another between clear, add_lanes, add_lines and
/// add_words.
template <int kSums>
struct ChunkSquares {
  static constexpr int kLines = kChunk / kLine;
  static constexpr int kLanes = kLines * reference::kSquareLanes;
  static_assert(kSums * kLanes <= kThreads);

  float value[kSums][kChunk];
  double lane[kSums][kLines][reference::kSquareLanes];
  BlockSum sum[kSums];

  ZERO_DEVICE void clear(const Place &place) {
    for (int s = 0; s < kSums; ++s) sum[s].clear(place);
  }

  ZERO_DEVICE void add_lanes(const Place &place) {
    if (place.thread >= kSums * kLanes) return;
    const int s = place.thread / kLanes;
    const int line = place.thread % kLanes / reference::kSquareLanes;
    const int which = place.thread % reference::kSquareLanes;
    double total = 0;
    for (int i = which; i < kLine; i += reference::kSquareLanes) total = reference::with_square(total, value[s][line * kLine + i]);
    lane[s][line][which] = total;
  }

  ZERO_DEVICE void add_lines(const Place &place) {
    if (place.thread < kSums * kLines) sum[place.thread / kLines].add_line(lane[place.thread / kLines][place.thread % kLines]);
  }

  ZERO_DEVICE void add_words(const Place &place, int64_t *words) const {
    for (int s = 0; s < kSums; ++s) sum[s].add_words(place, words + s * kSquareWords);
  }
};

}  // namespace zero::kernels::cuda
