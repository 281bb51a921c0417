/// @file LAMB: the passes before the parameters are updated.
#include "kernels/lamb.h"

#include "kernels/block.h"
#include "kernels/constants.h"
#include "kernels/reference/lamb-inl.h"

namespace zero::kernels {
namespace {

Slots moments_of(Block &block, int64_t count) {
  return {.param = block.param(), .grad = nullptr, .state = {block.state(0), block.state(1)}, .count = count};
}

}  // namespace

void lamb_moments(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars) {
  const Constants constants = constants_of<reference::AdamW>(scalars.hyper);
  Block block(table, piece, scalars);
  for (int64_t begin = 0; begin < piece.count; begin += Block::kMost) {
    Slots slots = {.param = nullptr, .grad = nullptr, .state = {}, .count = block.move(begin)};
    block.give_gradient(slots);
    for (int i = 0; i < 2; ++i) slots.state[i] = block.state(i);
    table.lamb_moments(slots, constants);
    for (int i = 0; i < 2; ++i) block.store_state(i, slots.state[i]);
  }
}

void lamb_add_norms(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars, ExactSum &param, ExactSum &direction) {
  const Constants constants = constants_of<reference::LambParam>(scalars.hyper);
  Block block(table, piece, scalars);
  float values[Block::kMost];
  for (int64_t begin = 0; begin < piece.count; begin += Block::kMost) {
    const int64_t count = block.move(begin);
    const Slots slots = moments_of(block, count);
    table.lamb_direction(values, slots, constants);
    table.add_squares(slots.param, DType::f32, count, param);
    table.add_squares(values, DType::f32, count, direction);
  }
}

double lamb_trust_ratio(const ExactSum &param, const ExactSum &direction) {
  return reference::trust_ratio(param.total(), direction.total());
}

}  // namespace zero::kernels
