/// @file LAMB before its last pass: kernels/lamb.h on a device. One launch computes moments and
/// norms. It moves 24 bytes per element with fp32 throughout, because the block reads moments again
/// right after it has written them.
#include "kernels/cuda/device_lamb.h"

#include "kernels/cuda/entries.h"
#include "kernels/cuda/squares.h"

namespace zero::kernels::cuda {
namespace {

/// Computes the moments of a chunk, and the squares of its parameter and of the direction from the
/// stored moments.
struct AddingNorms {
  using Moments = Updating<reference::LambMoments>;
  using Registers = Moments::Registers;
  struct Shared {
    Moments::Shared moments;
    ChunkSquares<2> squares;
  };
  static constexpr int kPhases = Moments::kPhases + 4;

  Moments moments;

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &registers, Shared &shared) const {
    if constexpr (phase < Moments::kPhases) moments.run<phase>(place, registers, shared.moments);
    if constexpr (phase == Moments::kPhases) fetch(place, shared.squares);
    if constexpr (phase == Moments::kPhases + 1) shared.squares.add_lanes(place);
    if constexpr (phase == Moments::kPhases + 2) shared.squares.add_lines(place);
    if constexpr (phase == Moments::kPhases + 3) shared.squares.add_words(place, moments.work_of(place).piece.norms);
  }

  ZERO_DEVICE void fetch(const Place &place, ChunkSquares<2> &squares) const {
    squares.clear(place);
    const auto work = moments.work_of(place);
    Quad<float> param = {};
    Quad<float> state[2] = {};
    if (work.span.count > 0) {
      param = load_param(work.piece, work.span);
      for (int s = 0; s < 2; ++s) state[s] = load_slot(work.piece.state[s], work.span);
    }
    const LambConstants constants = constants_in<reference::Lamb::Constants>(work.scalars).param;
    ZERO_UNROLLED
    for (int i = 0; i < kQuad; ++i) {
      const float moment[2] = {state[0].element[i], state[1].element[i]};
      const int at = place.thread * kQuad + i;
      squares.value[0][at] = param.element[i];
      squares.value[1][at] = i < work.span.count ? reference::LambParam::direction(param.element[i], moment, constants) : 0;
    }
  }
};

/// Uses one block per piece, whose first two threads total one sum each.
struct FindingRatios {
  struct Registers {};
  struct Shared {
    int64_t word[2][kSquareWords];
    double squares[2];
  };
  static constexpr int kPhases = 3;

  const UpdateSegment *pieces;

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &shared) const {
    const UpdateSegment &piece = pieces[place.block];
    if (piece.norms == nullptr) return;
    if constexpr (phase == 0) {
      if (place.thread < kNormWords) shared.word[place.thread / kSquareWords][place.thread % kSquareWords] = piece.norms[place.thread];
    } else if constexpr (phase == 1) {
      if (place.thread < 2) shared.squares[place.thread] = reference::total_of(shared.word[place.thread]);
    } else if (place.thread == 0) {
      *piece.trust_ratio = reference::trust_ratio(shared.squares[0], shared.squares[1]);
    }
  }
};

static_assert(kNormWords <= kThreads);

}  // namespace

int32_t lamb_norms(int64_t device, const Update *call, void *stream) {
  return launch(device, stream, call->chunk_count, AddingNorms{{*call}});
}

int32_t lamb_trust_ratios(int64_t device, const UpdateSegment *pieces, int64_t count, void *stream) {
  return launch(device, stream, count, FindingRatios{pieces});
}

}  // namespace zero::kernels::cuda
