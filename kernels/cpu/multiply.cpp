/// @file Matrix product in fp32, SIMD: reference/multiply.cpp states the order of the sums. Blocks
/// of a and panels of b are packed to fit the caches. A tile of sums stays in registers during a
/// run of k, and in `out` between runs.
#include "kernels/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int64_t kLanes = hn::MaxLanes(D());
constexpr int64_t kTileRows = 6;
/// With 6 rows, the sums, one row of b and one element of a fill 16 registers (AVX2) or 32.
constexpr int64_t kTileVectors = kLanes == 8 ? 2 : 4;
constexpr int64_t kWidth = kTileVectors * kLanes;
constexpr int64_t kRun = 128;
constexpr int64_t kBlockRows = kProductWorkspace / kRun;
static_assert(kBlockRows % kTileRows == 0);

/// Part of a product: one tile of `out` or a column of tiles, one panel of b, one run of k.
struct Part {
  float *out;
  const float *a;      ///< packed: for every k the elements of a tile's rows
  const float *panel;  ///< run * kWidth elements, zeros after the last column
  int64_t columns;     ///< row stride of `out`
  int64_t width;       ///< columns of this panel
  int64_t run;
  bool continues;  ///< `out` holds the sums of the runs before
};

/// Loads a row of `width` elements as whole vectors, padded with zeros.
HWY_INLINE void load_row(const float *row, int64_t width, V *sums) {
  float copy[kWidth] = {};
  const float *from = row;
  if (width < kWidth) {
    for (int64_t j = 0; j < width; ++j) copy[j] = row[j];
    from = copy;
  }
  for (int64_t v = 0; v < kTileVectors; ++v) sums[v] = hn::LoadU(D(), from + v * kLanes);
}

HWY_INLINE void store_row(float *row, int64_t width, const V *sums) {
  float copy[kWidth];
  float *to = width < kWidth ? copy : row;
  for (int64_t v = 0; v < kTileVectors; ++v) hn::StoreU(canonical(D(), sums[v]), D(), to + v * kLanes);
  for (int64_t j = 0; to == copy && j < width; ++j) row[j] = copy[j];
}

template <int64_t kRows>
void multiply_tile(const Part &part) {
  V sums[kRows][kTileVectors];
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t v = 0; v < kTileVectors; ++v) sums[i][v] = hn::Zero(D());
    if (part.continues) load_row(part.out + i * part.columns, part.width, sums[i]);
  }
  const float *panel = part.panel;
  for (int64_t k = 0; k < part.run; ++k, panel += kWidth) {
    V row[kTileVectors];
    for (int64_t v = 0; v < kTileVectors; ++v) row[v] = hn::Load(D(), panel + v * kLanes);
    for (int64_t i = 0; i < kRows; ++i) {
      const V factor = hn::Set(D(), part.a[k * kRows + i]);
      for (int64_t v = 0; v < kTileVectors; ++v) sums[i][v] = hn::MulAdd(factor, row[v], sums[i][v]);
    }
  }
  for (int64_t i = 0; i < kRows; ++i) store_row(part.out + i * part.columns, part.width, sums[i]);
}

void multiply_last_rows(const Part &part, int64_t rows) {
  switch (rows) {
    case 1:
      return multiply_tile<1>(part);
    case 2:
      return multiply_tile<2>(part);
    case 3:
      return multiply_tile<3>(part);
    case 4:
      return multiply_tile<4>(part);
    case 5:
      return multiply_tile<5>(part);
    default:
      return;
  }
}

void pack_panel(float *panel, const float *b, int64_t run, int64_t width, int64_t columns) {
  for (int64_t k = 0; k < run; ++k, panel += kWidth, b += columns) {
    V row[kTileVectors];
    load_row(b, width, row);
    for (int64_t v = 0; v < kTileVectors; ++v) hn::Store(row[v], D(), panel + v * kLanes);
  }
}

/// Multiplies all rows of a block by one panel, for one run of k.
void multiply_panel(Part part, int64_t rows) {
  int64_t i = 0;
  for (; i + kTileRows <= rows; i += kTileRows) {
    multiply_tile<kTileRows>(part);
    part.out += kTileRows * part.columns;
    part.a += kTileRows * part.run;
  }
  multiply_last_rows(part, rows - i);
}

/// Packs rows tile by tile.
void pack_rows(float *packed, const float *a, int64_t rows, int64_t run, int64_t inner) {
  for (int64_t i = 0; i < rows; i += kTileRows) {
    const int64_t height = rows - i < kTileRows ? rows - i : kTileRows;
    for (int64_t k = 0; k < run; ++k) {
      for (int64_t row = i; row < i + height; ++row) *packed++ = a[row * inner + k];
    }
  }
}

/// Returns `needed`, rounded up to the rows of whole packed tiles, at most `rows`.
int64_t rows_above(int64_t needed, int64_t rows) {
  const int64_t whole = (needed + kTileRows - 1) / kTileRows * kTileRows;
  return whole < rows ? whole : rows;
}

/// Computes rows [begin, end) of `out`. With `upper`, skips panels below its diagonal.
void multiply_block(float *out, const float *a, const float *b, int64_t begin, int64_t end, int64_t inner, int64_t columns, bool upper,
                    float *packed) {
  alignas(64) float panel[kRun * kWidth];
  for (int64_t k = 0; k == 0 || k < inner; k += kRun) {
    const int64_t run = inner - k < kRun ? inner - k : kRun;
    pack_rows(packed, a + begin * inner + k, end - begin, run, inner);
    for (int64_t j = upper ? begin / kWidth * kWidth : 0; j < columns; j += kWidth) {
      const int64_t width = columns - j < kWidth ? columns - j : kWidth;
      pack_panel(panel, b + k * columns + j, run, width, columns);
      const int64_t rows = upper ? rows_above(j + width - begin, end - begin) : end - begin;
      multiply_panel({out + begin * columns + j, packed, panel, columns, width, run, k > 0}, rows);
    }
  }
}

void multiply_rows(float *out, const float *a, const float *b, int64_t rows, int64_t inner, int64_t columns, bool upper, float *workspace) {
  for (int64_t begin = 0; begin < rows; begin += kBlockRows) {
    const int64_t end = rows - begin < kBlockRows ? rows : begin + kBlockRows;
    multiply_block(out, a, b, begin, end, inner, columns, upper, workspace);
  }
}

/// Copies the elements above the diagonal to below it, in squares that stay in the L1 cache.
void mirror(float *values, int64_t side) {
  constexpr int64_t kSquare = 32;
  for (int64_t i = 0; i < side; i += kSquare) {
    for (int64_t j = 0; j <= i; j += kSquare) {
      for (int64_t row = i; row < side && row < i + kSquare; ++row) {
        for (int64_t column = j; column < row && column < j + kSquare; ++column) values[row * side + column] = values[column * side + row];
      }
    }
  }
}

}  // namespace

void multiply(float *out, const float *a, const float *b, int64_t rows, int64_t inner, int64_t columns, float *workspace) {
  multiply_rows(out, a, b, rows, inner, columns, false, workspace);
}

void multiply_symmetric(float *out, const float *a, const float *b, int64_t side, int64_t inner, float *workspace) {
  multiply_rows(out, a, b, side, inner, side, true, workspace);
  mirror(out, side);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
