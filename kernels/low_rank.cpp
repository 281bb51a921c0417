/// @file Products with factors of low rank, and their columns.
#include "kernels/low_rank.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace zero::kernels {
namespace {

constexpr int64_t kLanes = 8;  ///< partial sums of a dot product
constexpr double kDependent = 0x1p-20;

/// Lane l adds elements l, l + 8, ...; lanes are added in pairs.
float dot(const float *a, const float *b, int64_t count) {
  std::array<float, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[static_cast<size_t>(lane)] += a[i + lane] * b[i + lane];
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) lanes[static_cast<size_t>(lane)] += a[i] * b[i];
  for (size_t width = kLanes / 2; width > 0; width /= 2) {
    for (size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

/// values += factor * added.
void add_multiple(float *values, float factor, const float *added, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] += factor * added[i];
}

double dot(const double *a, const float *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * static_cast<double>(b[i]);
  return sum;
}

template <class Value>
double length_of(const Value *values, int64_t count) {
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return std::sqrt(squares);
}

}  // namespace

void low_rank_left(const LowRank &sizes, float *p, const float *matrix, const float *q) {
  for (int64_t i = 0; i < sizes.rows; ++i) {
    const float *row = matrix + i * sizes.columns;
    for (int64_t r = 0; r < sizes.rank; ++r) p[r * sizes.rows + i] = dot(row, q + r * sizes.columns, sizes.columns);
  }
}

void low_rank_right(const LowRank &sizes, float *q, const float *matrix, const float *p) {
  std::fill_n(q, sizes.right_count(), 0.0F);
  for (int64_t i = 0; i < sizes.rows; ++i) {
    const float *row = matrix + i * sizes.columns;
    for (int64_t r = 0; r < sizes.rank; ++r) add_multiple(q + r * sizes.columns, p[r * sizes.rows + i], row, sizes.columns);
  }
}

void low_rank_product(const LowRank &sizes, float *out, const float *p, const float *q) {
  std::fill_n(out, sizes.count(), 0.0F);
  for (int64_t i = 0; i < sizes.rows; ++i) {
    float *row = out + i * sizes.columns;
    for (int64_t r = 0; r < sizes.rank; ++r) add_multiple(row, p[r * sizes.rows + i], q + r * sizes.columns, sizes.columns);
  }
}

void low_rank_loss(const LowRank &sizes, float *out, const float *matrix, const float *p, const float *q) {
  low_rank_product(sizes, out, p, q);
  for (int64_t i = 0; i < sizes.count(); ++i) {
    const float lost = matrix[i] - out[i];
    out[i] = std::isfinite(lost) ? lost : 0;
  }
}

/// The second time removes what the rounding of unit vectors to fp32 has left.
void orthonormalise(float *columns, int64_t count, int64_t rank, double *workspace) {
  for (int64_t r = 0; r < rank; ++r) {
    float *column = columns + r * count;
    std::copy_n(column, count, workspace);
    const double whole = length_of(workspace, count);
    for (int64_t times = 0; times < 2 * r; ++times) {
      const float *unit = columns + times % r * count;
      const double along = dot(workspace, unit, count);
      for (int64_t i = 0; i < count; ++i) workspace[i] -= along * static_cast<double>(unit[i]);
    }
    const double length = length_of(workspace, count);
    const double factor = length > kDependent * whole ? 1 / length : 0;
    for (int64_t i = 0; i < count; ++i) column[i] = static_cast<float>(workspace[i] * factor);
  }
}

void keep_columns(float *columns, const float *newest, int64_t count, int64_t rank) {
  for (int64_t r = 0; r < rank; ++r) {
    const double length = length_of(newest + r * count, count);
    if (length == 0 || !std::isfinite(length)) continue;
    int exponent = 0;
    (void)std::frexp(length, &exponent);
    for (int64_t i = r * count; i < (r + 1) * count; ++i) columns[i] = static_cast<float>(std::ldexp(double{newest[i]}, -exponent));
  }
}

}  // namespace zero::kernels
