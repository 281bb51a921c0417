/// @file Square sums over ranges, added as squares.h states. 4 or 2 bytes per element must move.
#include "kernels/cuda/squares.h"

#include "kernels/cuda/entries.h"
#include "kernels/cuda/quad.h"

namespace zero::kernels::cuda {
namespace {

/// Lines of a block: enough that few blocks add to the words at once, and few enough that small
/// tensors occupy a device.
constexpr int kLines = 128;
constexpr int kLinesAtOnce = kThreads / reference::kSquareLanes;

ZERO_DEVICE float wide(float element, DType) { return element; }
ZERO_DEVICE float wide(uint16_t element, DType dtype) { return dtype == DType::f16 ? from_f16(element) : reference::from_bf16(element); }

template <class Element>
struct AddSquares {
  struct Registers {};
  struct Shared {
    double lane[kLines][reference::kSquareLanes];
    BlockSum sum;
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
    if constexpr (phase == 2) shared.sum.add_words(place, words);
  }

  ZERO_DEVICE void add_lanes(const Place &place, Shared &shared) const {
    shared.sum.clear(place);
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
    if (place.thread < kLines && (place.block * kLines + place.thread) * kLine < count) shared.sum.add_line(shared.lane[place.thread]);
  }
};

static_assert(kLines <= kThreads);

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
