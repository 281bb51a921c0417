/// @file Muon: momentum, Newton-Schulz iteration, update.
#include "kernels/muon.h"

#include "kernels/block.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zero::kernels {
namespace {

// Coefficients of the quintic iteration.
constexpr float kA = 3.4445F;
constexpr float kB = -4.7750F;
constexpr float kC = 2.0315F;

/// out = values transposed, in squares that stay in the first-level cache.
void transpose(float *out, const float *values, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = 32;
  for (int64_t i = 0; i < rows; i += kSide) {
    for (int64_t j = 0; j < columns; j += kSide) {
      for (int64_t row = i; row < std::min(rows, i + kSide); ++row) {
        for (int64_t column = j; column < std::min(columns, j + kSide); ++column) out[column * rows + row] = values[row * columns + column];
      }
    }
  }
}

/// Updates the momentum and writes the direction.
void momentum_direction(const Table &table, const Piece &piece, const UpdateScalars &scalars, float *out) {
  const auto momentum = static_cast<float>(scalars.hyper.momentum);
  const auto weight = static_cast<float>(1 - scalars.hyper.momentum);
  Block block(table, piece, scalars);
  for (int64_t begin = 0; begin < piece.count; begin += Block::kMost) {
    const int64_t count = block.move(begin);
    const float *gradient = block.grad();
    float *moment = block.state(0);
    table.interpolate(moment, moment, gradient, weight, count);
    if (scalars.hyper.nesterov != 0) {
      table.interpolate(out + begin, gradient, moment, momentum, count);
    } else {
      std::copy_n(moment, count, out + begin);
    }
    block.store_state(0, moment);
  }
}

/// values /= max(Frobenius norm, epsilon); zeros stay zeros.
void normalise(const Table &table, float *values, int64_t count, double epsilon) {
  ExactSum squares;
  table.add_squares(values, count, squares);
  const double norm = std::sqrt(squares.total());
  if (norm == 0) return;
  table.scale(values, values, count, static_cast<float>(1 / (norm > epsilon ? norm : epsilon)));
}

/// p = fma(-rate, direction, p * decay_factor).
void apply(const Table &table, const Piece &piece, const UpdateScalars &scalars, const float *direction, double rate) {
  const auto decay_factor = static_cast<float>(1 - scalars.hyper.lr * scalars.hyper.weight_decay);
  Block block(table, piece, scalars);
  for (int64_t begin = 0; begin < piece.count; begin += Block::kMost) {
    const int64_t count = block.move(begin);
    float *param = block.param();
    table.combine(param, decay_factor, direction + begin, static_cast<float>(-rate), count);
    block.store_param(param);
  }
}

}  // namespace

int64_t muon_workspace(int64_t rows, int64_t columns) {
  const int64_t side = std::min(rows, columns);
  return 2 * rows * columns + 2 * side * side;
}

void muon(const Table &table, const Piece &piece, int64_t rows, int64_t columns, const UpdateScalars &scalars, float *workspace) {
  const int64_t count = rows * columns;
  if (count == 0) return;
  const int64_t side = std::min(rows, columns);
  const int64_t length = std::max(rows, columns);
  float *x = workspace;
  float *other = x + count;
  float *gram = other + count;
  float *polynomial = gram + side * side;

  momentum_direction(table, piece, scalars, x);
  normalise(table, x, count, scalars.hyper.epsilon);
  if (rows > columns) {
    transpose(other, x, rows, columns);
    std::swap(x, other);
  }
  for (auto step = static_cast<int64_t>(scalars.hyper.newton_schulz_steps); step > 0; --step) {
    transpose(other, x, side, length);
    table.multiply(gram, x, other, side, length, side);
    table.multiply(polynomial, gram, gram, side, side, side);
    table.combine(polynomial, kC, gram, kB, side * side);
    table.multiply(other, polynomial, x, side, side, length);
    table.combine(other, 1, x, kA, count);
    std::swap(x, other);
  }
  if (rows > columns) {
    transpose(other, x, columns, rows);
    std::swap(x, other);
  }
  apply(table, piece, scalars, x, scalars.hyper.lr * std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns))));
}

}  // namespace zero::kernels
