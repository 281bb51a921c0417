/// @file Muon: momentum, Newton-Schulz iteration, update.
#include "kernels/muon.h"

#include "kernels/block.h"
#include "kernels/reference/muon-inl.h"

#include <algorithm>
#include <utility>

namespace zero::kernels {
namespace {

using reference::Muon;
using reference::MuonConstants;
using reference::MuonParam;

/// out = values transposed, in squares that stay in the L1 cache.
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
void momentum_direction(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars, float *out) {
  const MuonConstants constants = Muon::constants(scalars.hyper);
  Block block(table, piece, scalars);
  for (int64_t begin = 0; begin < piece.count; begin += Block::kMost) {
    const int64_t count = block.move(begin);
    const float *gradient = block.grad();
    float *moment = block.state(0);
    table.interpolate(moment, moment, gradient, constants.gradient_weight, count);
    if (constants.nesterov) {
      table.interpolate(out + begin, gradient, moment, constants.momentum, count);
    } else {
      std::copy_n(moment, count, out + begin);
    }
    block.store_state(0, moment);
  }
}

/// values /= max(Frobenius norm, epsilon).
void normalise(const Table &table, float *values, int64_t count, double epsilon) {
  ExactSum squares;
  table.add_squares(values, DType::f32, count, squares);
  table.scale(values, values, count, Muon::normalising_factor(squares.total(), epsilon));
}

void apply(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars, const float *direction, double adjustment) {
  const MuonParam::Constants constants = MuonParam::constants(Muon::constants(scalars.hyper), adjustment);
  Block block(table, piece, scalars);
  for (int64_t begin = 0; begin < piece.count; begin += Block::kMost) {
    const int64_t count = block.move(begin);
    float *param = block.param();
    table.combine(param, constants.decay_factor, direction + begin, constants.negative_rate, count);
    block.store_param(param);
  }
}

}  // namespace

int64_t muon_workspace(int64_t rows, int64_t columns) {
  const int64_t side = std::min(rows, columns);
  return 2 * muon_part(rows * columns) + 2 * muon_part(side * side) + kProductWorkspace;
}

void muon(const Table &table, const UpdateSegment &piece, int64_t rows, int64_t columns, const UpdateScalars &scalars, float *workspace) {
  const int64_t count = rows * columns;
  if (count == 0) return;
  const int64_t side = std::min(rows, columns);
  const int64_t length = std::max(rows, columns);
  float *x = workspace;
  float *other = x + muon_part(count);
  float *gram = other + muon_part(count);
  float *polynomial = gram + muon_part(side * side);
  float *packed = polynomial + muon_part(side * side);

  momentum_direction(table, piece, scalars, x);
  normalise(table, x, count, scalars.hyper.epsilon);
  if (rows > columns) {
    transpose(other, x, rows, columns);
    std::swap(x, other);
  }
  for (auto step = static_cast<int64_t>(scalars.hyper.newton_schulz_steps); step > 0; --step) {
    transpose(other, x, side, length);
    table.multiply_symmetric(gram, x, other, side, length, packed);
    table.multiply_symmetric(polynomial, gram, gram, side, side, packed);
    table.combine(polynomial, Muon::kC, gram, Muon::kB, side * side);
    table.multiply(other, polynomial, x, side, side, length, packed);
    table.combine(other, 1, x, Muon::kA, count);
    std::swap(x, other);
  }
  if (rows > columns) {
    transpose(other, x, columns, rows);
    std::swap(x, other);
  }
  apply(table, piece, scalars, x, Muon::rate_adjustment(rows, columns));
  hand_on_states(table, piece, scalars);
}

}  // namespace zero::kernels
