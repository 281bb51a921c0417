/// @file Applying pushes.
#include "engine/server/held_part.h"

#include "core/default_floats.h"
#include "kernels/update.h"

#include <algorithm>

namespace zero {
namespace {

/// The number of states, as in an optimizer: without momentum there is no buffer of it.
int states_of(const ServerSettings &settings) {
  if (settings.algorithm == nullptr) return 0;
  const auto &keys = settings.algorithm->keys;
  const bool optional = std::find(keys.begin(), keys.end(), ZERO_KEY_MOMENTUM) != keys.end();
  return optional && settings.hyper.values().momentum == 0 ? 0 : settings.algorithm->state_count;
}

}  // namespace

Status HeldPart::allocate(Range range) {
  range_ = range;
  state_count_ = states_of(settings_);
  const int arrays = settings_.rule == ZERO_SERVER_RULE_MEAN ? 1 : state_count_;
  const int64_t nbytes = range.count() * static_cast<int64_t>(sizeof(float));
  const MemorySource source{&settings_.hook, &accounting_};
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_PARAM, nbytes, &params_));
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_GRAD, nbytes, &pushed_));
  return Arena::create_private(source, ZERO_MEMORY_STATE, arrays * Arena::view_nbytes(nbytes), &states_);
}

kernels::UpdateSegment HeldPart::piece() const {
  kernels::UpdateSegment piece;
  piece.param.data = params_.data();
  piece.grad.data = pushed_.data();
  for (int state = 0; state < state_count_; ++state) {
    piece.state[state].data = states_.data() + state * Arena::view_nbytes(range_.count() * static_cast<int64_t>(sizeof(float)));
  }
  piece.count = range_.count();
  return piece;
}

kernels::UpdateScalars HeldPart::scalars() const {
  kernels::UpdateScalars scalars;
  scalars.hyper = settings_.hyper.values();
  scalars.hyper.step = applied_;
  scalars.step = applied_;
  return scalars;
}

void HeldPart::begin() {
  if (state_count_ == 0 || range_.empty()) return;
  const DefaultFloats floats;
  kernels::begin_states(kernels::active(), *settings_.algorithm, piece(), scalars());
}

void HeldPart::apply() {
  ++applied_;
  if (range_.empty()) return;
  const int64_t count = range_.count();
  if (settings_.rule == ZERO_SERVER_RULE_UPDATE) {
    const UpdateJob job{settings_.algorithm, piece(), scalars()};
    kernels_.update({&job, 1});
  } else if (settings_.rule == ZERO_SERVER_RULE_AVERAGE) {
    kernels_.scale(params(), params(), count, static_cast<float>(1 - settings_.rate));
    kernels_.add(params(), DType::f32, pushed(), DType::f32, count, static_cast<float>(settings_.rate));
  } else {
    auto *sums = reinterpret_cast<float *>(states_.data());
    kernels_.add(sums, DType::f32, pushed(), DType::f32, count, 1);
    if (applied_ % settings_.period != 0) return;
    kernels_.scale(params(), sums, count, static_cast<float>(1 / static_cast<double>(settings_.period)));
    kernels_.clear(sums, count * static_cast<int64_t>(sizeof(float)));
  }
}

}  // namespace zero
