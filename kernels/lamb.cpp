/// @file LAMB: constants, and the passes before the parameters' own.
#include "kernels/lamb.h"

#include "kernels/block.h"
#include "kernels/reference/power-inl.h"

#include <cmath>

namespace zero::kernels {
namespace {

Slots moments_of(Block &block, int64_t count) {
  return {.param = block.param(), .grad = nullptr, .state = {block.state(0), block.state(1)}, .count = count};
}

}  // namespace

LambConstants lamb_constants(const HyperParameters &hyper) {
  return {
      .correction1 = static_cast<float>(1 - reference::power(hyper.beta1, hyper.step)),
      .root_correction = static_cast<float>(std::sqrt(1 - reference::power(hyper.beta2, hyper.step))),
      .epsilon = static_cast<float>(hyper.epsilon),
      .weight_decay = static_cast<float>(hyper.weight_decay),
      .negative_step = static_cast<float>(-(hyper.lr * hyper.trust_ratio)),
  };
}

void lamb_moments(const Table &table, const Piece &piece, const UpdateScalars &scalars) {
  Block block(table, piece, scalars);
  for (int64_t begin = 0; begin < piece.count; begin += Block::kMost) {
    Slots slots = {.param = nullptr, .grad = nullptr, .state = {}, .count = block.move(begin)};
    slots.grad = block.grad();
    for (int i = 0; i < 2; ++i) slots.state[i] = block.state(i);
    table.lamb_moments(slots, scalars.hyper);
    for (int i = 0; i < 2; ++i) block.store_state(i, slots.state[i]);
  }
}

void lamb_add_norms(const Table &table, const Piece &piece, const UpdateScalars &scalars, ExactSum &param, ExactSum &direction) {
  Block block(table, piece, scalars);
  float values[Block::kMost];
  for (int64_t begin = 0; begin < piece.count; begin += Block::kMost) {
    const int64_t count = block.move(begin);
    const Slots slots = moments_of(block, count);
    table.lamb_direction(values, slots, scalars.hyper);
    table.add_squares(slots.param, count, param);
    table.add_squares(values, count, direction);
  }
}

double lamb_trust_ratio(const ExactSum &param, const ExactSum &direction) {
  const double param_norm = std::sqrt(param.total());
  const double direction_norm = std::sqrt(direction.total());
  return param_norm == 0 || direction_norm == 0 ? 1 : param_norm / direction_norm;
}

}  // namespace zero::kernels
