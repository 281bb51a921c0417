/// @file Sums of squares: lines as reference/add_squares.cpp adds them, one thread per lane; lines are added as integers, whose order does
/// not matter. 4 or 2 bytes per element must move.
#include "kernels/cuda/entries.h"
#include "kernels/cuda/quad.h"
#include "kernels/reference/add_squares-inl.h"
#include "kernels/reference/exact_sum-inl.h"

namespace zero::kernels::cuda {
namespace {

/// Lines of a block: enough that few blocks add to the words at once, and few enough that small tensors occupy a device.
constexpr int kLines = 128;
constexpr int kLinesAtOnce = kThreads / reference::kSquareLanes;

ZERO_DEVICE float wide(float element, DType) { return element; }
ZERO_DEVICE float wide(uint16_t element, DType dtype) {
  return dtype == DType::f16 ? reference::from_f16(element) : reference::from_bf16(element);
}

template <class Element>
struct AddSquares {
  struct Registers {};
  struct Shared {
    double lane[kLines][reference::kSquareLanes];
    int64_t word[kSquareWords];
  };
  static constexpr int kPhases = 3;

  const Element *values;
  DType dtype;
  int64_t count;
  int64_t *words;

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &shared) const {
    if constexpr (phase == 0) add_lanes(place, shared);
    if constexpr (phase == 1) add_line(place, shared);
    if constexpr (phase == 2) add_words(place, shared);
  }

  ZERO_DEVICE void add_lanes(const Place &place, Shared &shared) const {
    if (place.thread < kSquareWords) shared.word[place.thread] = 0;
    const int lane = place.thread % reference::kSquareLanes;
    for (int line = place.thread / reference::kSquareLanes; line < kLines; line += kLinesAtOnce) {
      const int64_t begin = (place.block * kLines + line) * kLine;
      const int64_t end = begin + kLine < count ? begin + kLine : count;
      double sum = 0;
      for (int64_t i = begin + lane; i < end; i += reference::kSquareLanes) sum = reference::with_square(sum, wide(values[i], dtype));
      shared.lane[line][lane] = sum;
    }
  }

  ZERO_DEVICE void add_line(const Place &place, Shared &shared) const {
    if (place.thread >= kLines || (place.block * kLines + place.thread) * kLine >= count) return;
    const reference::Digits digits = reference::digits_of(reference::sum_of_lanes(shared.lane[place.thread]));
    if (digits.is_nan) add_to(shared.word[ExactSum::kLimbs], 1);
    if (digits.is_infinite) add_to(shared.word[ExactSum::kLimbs + 1], 1);
    for (int i = 0; i < 3; ++i) {
      if (digits.digit[i] != 0) add_to(shared.word[digits.limb + i], digits.digit[i]);
    }
  }

  ZERO_DEVICE void add_words(const Place &place, Shared &shared) const {
    if (place.thread < kSquareWords && shared.word[place.thread] != 0) add_to(words[place.thread], shared.word[place.thread]);
  }
};

static_assert(kLines <= kThreads && kSquareWords <= kThreads);

template <class Element>
int32_t launch_add_squares(int64_t device, const void *values, DType dtype, int64_t count, int64_t *words, void *stream) {
  const int64_t blocks = (count + kLines * kLine - 1) / (kLines * kLine);
  return launch(device, stream, blocks, AddSquares<Element>{static_cast<const Element *>(values), dtype, count, words});
}

}  // namespace

int32_t add_squares(int64_t device, const void *values, int64_t dtype, int64_t count, int64_t *words, void *stream) {
  const auto type = static_cast<DType>(dtype);
  return (type == DType::f32 ? launch_add_squares<float> : launch_add_squares<uint16_t>)(device, values, type, count, words, stream);
}

}  // namespace zero::kernels::cuda
