/// @file Muon: kernels/muon.h on a device, one launch after another, with the host's order of every
/// sum. A skipped step may leave values in the workspace, which are never read.
#include "kernels/cuda/device_muon.h"

#include "kernels/cuda/entries.h"
#include "kernels/cuda/over_quads.h"
#include "kernels/cuda/squares.h"

#include <algorithm>
#include <utility>

namespace zero::kernels::cuda {
namespace {

using reference::Muon;

/// Computes the momentum of a chunk, its direction, and the squares of the direction.
struct Directing {
  using Momentum = Updating<reference::MuonMomentum>;
  using Registers = Momentum::Registers;
  struct Shared {
    Momentum::Shared momentum;
    ChunkSquares<1> squares;
  };
  static constexpr int kPhases = Momentum::kPhases + 4;

  Momentum momentum;
  float *direction;
  int64_t *words;

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &registers, Shared &shared) const {
    if constexpr (phase < Momentum::kPhases) momentum.run<phase>(place, registers, shared.momentum);
    if constexpr (phase == Momentum::kPhases) put(place, registers.param, shared.squares);
    if constexpr (phase == Momentum::kPhases + 1) shared.squares.add_lanes(place);
    if constexpr (phase == Momentum::kPhases + 2) shared.squares.add_lines(place);
    if constexpr (phase == Momentum::kPhases + 3) shared.squares.add_words(place, words);
  }

  ZERO_DEVICE void put(const Place &place, const Quad<float> &made, ChunkSquares<1> &squares) const {
    squares.clear(place);
    const Span span = momentum.work_of(place).span;
    if (span.count > 0) store(direction, span.index, span.count, made);
    ZERO_UNROLLED
    for (int i = 0; i < kQuad; ++i) squares.value[0][place.thread * kQuad + i] = i < span.count ? made.element[i] : 0;
  }
};

/// Computes the normalising factor in one block.
struct FindingFactor {
  struct Registers {};
  struct Shared {
    int64_t word[kSquareWords];
  };
  static constexpr int kPhases = 2;

  const Scalars *scalars;
  DirectionSum *sum;

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &shared) const {
    if constexpr (phase == 0) {
      if (place.thread >= kSquareWords) return;
      shared.word[place.thread] = sum->words[place.thread];
      sum->words[place.thread] = 0;
    } else if (place.thread == 0) {
      const auto constants = constants_in<Muon::Constants>(*scalars);
      sum->factor = Muon::normalising_factor(reference::total_of(shared.word), constants.epsilon);
    }
  }
};

struct Normalising {
  float *values;
  const DirectionSum *sum;

  ZERO_DEVICE void operator()(int64_t index, int count) const {
    Quad<float> quad = load<float>(values, index, count);
    for (int i = 0; i < kQuad; ++i) quad.element[i] = reference::scaled(quad.element[i], sum->factor);
    store(values, index, count, quad);
  }
};

/// Transposes a square of elements per block, so that adjacent threads access adjacent elements.
struct Transposing {
  static constexpr int kSide = 32;
  static constexpr int kRowsAtOnce = kThreads / kSide;
  struct Registers {};
  struct Shared {
    float value[kSide][kSide + 1];  ///< padding puts columns in different banks
  };
  static constexpr int kPhases = 2;

  float *out;
  const float *values;
  int64_t rows;
  int64_t columns;

  static ZERO_ELEMENT int64_t squares(int64_t count) { return (count + kSide - 1) / kSide; }

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &shared) const {
    const int64_t first_row = place.block / squares(columns) * kSide;
    const int64_t first_column = place.block % squares(columns) * kSide;
    const int across = place.thread % kSide;
    for (int down = place.thread / kSide; down < kSide; down += kRowsAtOnce) {
      if constexpr (phase == 0) {
        const int64_t row = first_row + down;
        const int64_t column = first_column + across;
        if (row < rows && column < columns) shared.value[down][across] = values[row * columns + column];
      } else {
        const int64_t row = first_row + across;
        const int64_t column = first_column + down;
        if (row < rows && column < columns) out[column * rows + row] = shared.value[across][down];
      }
    }
  }
};

/// The launches of one update, and the first error among them.
class Launches {
 public:
  Launches(int64_t device, const Matrix &call, void *stream)
      : device_(device),
        call_(call),
        stream_(stream),
        count_(call.rows * call.columns),
        side_(std::min(call.rows, call.columns)),
        length_(std::max(call.rows, call.columns)),
        x_(call.workspace),
        other_(x_ + muon_part(count_)),
        gram_(other_ + muon_part(count_)),
        polynomial_(gram_ + muon_part(side_ * side_)) {}

  int32_t run() {
    const Update &update = call_.update;
    note(launch(device_, stream_, update.chunk_count, Directing{{update}, x_, call_.sum->words}));
    note(launch(device_, stream_, 1, FindingFactor{call_.scalars, call_.sum}));
    note(over_quads(device_, stream_, count_, Normalising{x_, call_.sum}));
    if (call_.rows > call_.columns) turn(call_.rows, call_.columns);
    for (int64_t step = 0; step < call_.newton_schulz_steps; ++step) iterate();
    if (call_.rows > call_.columns) turn(call_.columns, call_.rows);
    const double adjustment = Muon::rate_adjustment(call_.rows, call_.columns);
    note(launch(device_, stream_, update.chunk_count, Updating<reference::MuonParam>{update, {x_, adjustment}}));
    return error_;
  }

 private:
  void note(int32_t error) {
    if (error_ == 0) error_ = error;
  }

  void transpose(int64_t rows, int64_t columns) {
    note(launch(device_, stream_, Transposing::squares(rows) * Transposing::squares(columns), Transposing{other_, x_, rows, columns}));
  }

  void turn(int64_t rows, int64_t columns) {
    transpose(rows, columns);
    std::swap(x_, other_);
  }

  void multiply(Product product) {
    product.skips = &call_.scalars->skips;
    note(cuda::multiply(device_, &product, stream_));
  }

  void iterate() {
    transpose(side_, length_);
    multiply({.out = gram_, .a = x_, .b = other_, .rows = side_, .inner = length_, .columns = side_, .symmetric = true});
    multiply({.out = polynomial_,
              .a = gram_,
              .b = gram_,
              .rows = side_,
              .inner = side_,
              .columns = side_,
              .addend = gram_,
              .factor = Muon::kC,
              .weight = Muon::kB,
              .symmetric = true});
    multiply({.out = other_,
              .a = polynomial_,
              .b = x_,
              .rows = side_,
              .inner = side_,
              .columns = length_,
              .addend = x_,
              .factor = 1,
              .weight = Muon::kA});
    std::swap(x_, other_);
  }

  const int64_t device_;
  const Matrix &call_;
  void *const stream_;
  const int64_t count_;
  const int64_t side_;
  const int64_t length_;
  float *x_;
  float *other_;
  float *const gram_;
  float *const polynomial_;
  int32_t error_ = 0;
};

}  // namespace

int32_t muon(int64_t device, const Matrix *call, void *stream) {
  if (call->rows * call->columns == 0) return 0;
  return Launches(device, *call, stream).run();
}

}  // namespace zero::kernels::cuda
