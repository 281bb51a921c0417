/// @file Matrix product in fp32: every element is a chain of fma over ascending k, as in
/// reference/multiply.cpp. A block computes a tile of the product. It multiplies kDepth columns of
/// a by kDepth rows of b at a time, while it loads the next ones. An element that a thread reads
/// from shared memory serves four fma on average.
#include "kernels/cuda/entries.h"
#include "kernels/cuda/quad.h"
#include "kernels/reference/elementwise-inl.h"

namespace zero::kernels::cuda {
namespace {

constexpr int kTile = 128;
constexpr int kDepth = 16;
/// A thread computes kParts x kParts squares of kQuad x kQuad elements, kApart rows or columns
/// apart, so that adjacent threads read adjacent quads.
constexpr int kParts = 2;
constexpr int kApart = kTile / kParts;
constexpr int kThreadsAcross = kApart / kQuad;
static_assert(kThreadsAcross * kThreadsAcross == kThreads);
/// Quads of a, and of b, that a thread loads per round.
constexpr int kBrought = kTile * kDepth / kQuad / kThreads;

ZERO_DEVICE int within_quad(int64_t left) { return left >= kQuad ? kQuad : left > 0 ? static_cast<int>(left) : 0; }

struct Multiplying {
  struct Registers {
    float sum[kParts][kQuad][kParts][kQuad];
    Quad<float> next_a[kBrought];
    Quad<float> next_b[kBrought];
  };
  struct Shared {
    /// Transposed; padding puts columns that are written together in different banks.
    alignas(sizeof(Quad<float>)) float a[kDepth][kTile + kQuad];
    alignas(sizeof(Quad<float>)) float b[kDepth][kTile];
  };
  static constexpr int kPhases = 4;
  static constexpr int kFirstRepeated = 1;
  static constexpr int kEndRepeated = 3;
  static constexpr int kResidentBlocks = 2;

  /// The first row and column of a tile in the product.
  struct Corner {
    int64_t row;
    int64_t column;
  };

  Product call;

  ZERO_DEVICE int64_t rounds(int64_t block) const {
    return skips() || is_mirrored(corner_of(block)) ? 0 : (call.inner + kDepth - 1) / kDepth;
  }

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &registers, Shared &shared) const {
    const Corner corner = corner_of(place.block);
    if constexpr (phase == 0) begin(place, corner, registers);
    if constexpr (phase == 1) put(place, registers, shared);
    if constexpr (phase == 2) {
      bring(place, corner, (place.round + 1) * kDepth, registers);
      add_round(place, corner, registers, shared);
    }
    if constexpr (phase == 3) {
      if (skips() || is_mirrored(corner)) return;
      store_sums(place, corner, registers);
      if (call.symmetric && corner.row != corner.column) store_mirrored(place, corner, registers);
    }
  }

  ZERO_DEVICE bool skips() const { return call.skips != nullptr && *call.skips != 0; }
  /// True for a tile below the diagonal, which another block computes.
  ZERO_DEVICE bool is_mirrored(const Corner &corner) const { return call.symmetric && corner.row > corner.column; }
  ZERO_DEVICE Corner corner_of(int64_t block) const { return {block / tiles(call.columns) * kTile, block % tiles(call.columns) * kTile}; }
  /// Returns the number of tiles that cover `count` rows or columns.
  static ZERO_ELEMENT int64_t tiles(int64_t count) { return (count + kTile - 1) / kTile; }

  /// The thread's first row and column in a part.
  static ZERO_DEVICE int64_t row_of(const Place &place, const Corner &corner, int part) {
    return corner.row + part * kApart + place.thread / kThreadsAcross * kQuad;
  }
  static ZERO_DEVICE int64_t column_of(const Place &place, const Corner &corner, int part) {
    return corner.column + part * kApart + place.thread % kThreadsAcross * kQuad;
  }

  ZERO_DEVICE void begin(const Place &place, const Corner &corner, Registers &registers) const {
    for (auto &rows : registers.sum) {
      for (auto &row : rows) {
        for (auto &part : row) {
          for (float &sum : part) sum = 0;
        }
      }
    }
    bring(place, corner, 0, registers);
  }

  /// Loads from column k of a and row k of b on; zeros beyond the matrices.
  ZERO_DEVICE void bring(const Place &place, const Corner &corner, int64_t k, Registers &registers) const {
    if (k >= call.inner || skips()) return;
    constexpr int kQuadsDeep = kDepth / kQuad;
    constexpr int kQuadsWide = kTile / kQuad;
    ZERO_UNROLLED
    for (int i = 0; i < kBrought; ++i) {
      const int which = place.thread + i * kThreads;
      const int64_t row = corner.row + which / kQuadsDeep;
      const int64_t at = k + which % kQuadsDeep * kQuad;
      registers.next_a[i] = load<float>(call.a, row * call.inner + at, row < call.rows ? within_quad(call.inner - at) : 0);
      const int64_t deep = k + which / kQuadsWide;
      const int64_t column = corner.column + which % kQuadsWide * kQuad;
      registers.next_b[i] = load<float>(call.b, deep * call.columns + column, deep < call.inner ? within_quad(call.columns - column) : 0);
    }
  }

  ZERO_DEVICE void put(const Place &place, const Registers &registers, Shared &shared) const {
    constexpr int kQuadsDeep = kDepth / kQuad;
    constexpr int kQuadsWide = kTile / kQuad;
    ZERO_UNROLLED
    for (int i = 0; i < kBrought; ++i) {
      const int which = place.thread + i * kThreads;
      ZERO_UNROLLED
      for (int j = 0; j < kQuad; ++j) shared.a[which % kQuadsDeep * kQuad + j][which / kQuadsDeep] = registers.next_a[i].element[j];
      whole_quad<float>(shared.b[which / kQuadsWide], which % kQuadsWide * kQuad) = registers.next_b[i];
    }
  }

  ZERO_DEVICE void add_round(const Place &place, const Corner &corner, Registers &registers, const Shared &shared) const {
    if (row_of(place, corner, 0) >= call.rows || column_of(place, corner, 0) >= call.columns) return;
    const int64_t left = call.inner - place.round * kDepth;
    if (left >= kDepth) {
      add_all(place, registers, shared);
    } else {
      add_last(place, static_cast<int>(left), registers, shared);
    }
  }

  ZERO_DEVICE void add_all(const Place &place, Registers &registers, const Shared &shared) const {
    ZERO_UNROLLED
    for (int k = 0; k < kDepth; ++k) add(place, k, registers, shared);
  }

  /// Stops at the last k: products with padding zeros would turn sums of -0 into 0.
  ZERO_DEVICE void add_last(const Place &place, int count, Registers &registers, const Shared &shared) const {
    ZERO_ROLLED
    for (int k = 0; k < count; ++k) add(place, k, registers, shared);
  }

  ZERO_DEVICE void add(const Place &place, int k, Registers &registers, const Shared &shared) const {
    Quad<float> a[kParts];
    Quad<float> b[kParts];
    ZERO_UNROLLED
    for (int p = 0; p < kParts; ++p) {
      a[p] = whole_quad<float>(shared.a[k], p * kApart + place.thread / kThreadsAcross * kQuad);
      b[p] = whole_quad<float>(shared.b[k], p * kApart + place.thread % kThreadsAcross * kQuad);
    }
    ZERO_UNROLLED
    for (int row = 0; row < kParts * kQuad; ++row) {
      ZERO_UNROLLED
      for (int column = 0; column < kParts * kQuad; ++column) {
        float &sum = registers.sum[row / kQuad][row % kQuad][column / kQuad][column % kQuad];
        sum = std::fma(a[row / kQuad].element[row % kQuad], b[column / kQuad].element[column % kQuad], sum);
      }
    }
  }

  /// The registers keep the stored values.
  ZERO_DEVICE void store_sums(const Place &place, const Corner &corner, Registers &registers) const {
    ZERO_UNROLLED
    for (int i = 0; i < kParts * kQuad; ++i) {
      const int64_t row = row_of(place, corner, i / kQuad) + i % kQuad;
      ZERO_UNROLLED
      for (int q = 0; q < kParts; ++q) {
        const int64_t column = column_of(place, corner, q);
        const int count = row < call.rows ? within_quad(call.columns - column) : 0;
        store_quad(row * call.columns + column, count, registers.sum[i / kQuad][i % kQuad][q]);
      }
    }
  }

  ZERO_DEVICE void store_quad(int64_t index, int count, float *sums) const {
    const Quad<float> addend = call.addend != nullptr ? load<float>(call.addend, index, count) : Quad<float>{};
    Quad<float> quad;
    for (int i = 0; i < kQuad; ++i) {
      sums[i] = reference::canonical(sums[i]);
      if (call.addend != nullptr) sums[i] = reference::combined(sums[i], call.factor, addend.element[i], call.weight);
      quad.element[i] = sums[i];
    }
    store(call.out, index, count, quad);
  }

  /// Stores columns as rows.
  ZERO_DEVICE void store_mirrored(const Place &place, const Corner &corner, const Registers &registers) const {
    ZERO_UNROLLED
    for (int i = 0; i < kParts * kQuad; ++i) {
      const int64_t column = column_of(place, corner, i / kQuad) + i % kQuad;
      ZERO_UNROLLED
      for (int p = 0; p < kParts; ++p) {
        const int64_t row = row_of(place, corner, p);
        Quad<float> quad;
        for (int j = 0; j < kQuad; ++j) quad.element[j] = registers.sum[p][j][i / kQuad][i % kQuad];
        store(call.out, column * call.rows + row, column < call.columns ? within_quad(call.rows - row) : 0, quad);
      }
    }
  }
};

}  // namespace

int32_t multiply(int64_t device, const Product *call, void *stream) {
  return launch(device, stream, Multiplying::tiles(call->rows) * Multiplying::tiles(call->columns), Multiplying{*call});
}

}  // namespace zero::kernels::cuda
