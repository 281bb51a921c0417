/// @file The sequence of a step's micro-steps.
#include "engine/gradients/gradients.h"

#include <algorithm>
#include <utility>

namespace zero {

Status Gradients::open(const std::shared_ptr<Group> &group, std::shared_ptr<Group> across, bool alone, const MemorySource &source,
                       std::vector<bool> counted) {
  state_.alone = alone;
  ZERO_TRY(schedule_.open(group, source));
  accumulator_.open(group, source, settings_.grad_norm && std::find(counted.begin(), counted.end(), false) == counted.end());
  ZERO_TRY(reductions_.open(group, std::move(across), source, std::move(counted)));
  end_step(false);
  return {};
}

void Gradients::close() {
  reductions_.stop();
  schedule_.close();
  accumulator_.close();
}

Status Gradients::check_between_steps(const char *call) const {
  ZERO_CHECK(!state_.weight_set, ZERO_E_STATE, "zero_optimizer_set_weight was called for the next step; call %s before it", call);
  return {};
}

Status Gradients::check_micro_step() {
  ZERO_CHECK(state_.acquired_count == 0, ZERO_E_STATE,
             "acquired gradients that are not all ready: %lld; give them to zero_optimizer_grad_ready before the next micro-step",
             lld(state_.acquired_count));
  ZERO_CHECK(!state_.started || state_.kind != MicroStep::last, ZERO_E_STATE,
             "the last micro-step of the step has begun (gradients were given without zero_optimizer_micro_step, or its kind was "
             "ZERO_MICRO_STEP_LAST); zero_optimizer_step comes next");
  if (state_.started || !std::exchange(state_.weight_set, false)) return {};
  state_.weight = 1;
  return Status::error(ZERO_E_STATE,
                       "the weight was set before zero_optimizer_micro_step, which begins the micro-step that it is to be of; it is 1 "
                       "again: call zero_optimizer_micro_step, then set it");
}

/// Waits until every bucket is reduced. Not in a world of one.
Task Gradients::reduce_rest() {
  ZERO_CO_AWAIT(accumulator_.fill_rest());
  co_return co_await schedule_.wait();
}

Task Gradients::end_micro_step() {
  if (!state_.started) co_return Status();
  if (state_.kind == MicroStep::local || state_.alone) {
    state_.local_weight = state_.contribution_weight();
    co_return Status();
  }
  ZERO_CO_AWAIT(reduce_rest());
  reductions_.end_micro_step();
  accumulator_.end_sums();
  ++state_.reduced_count;
  state_.accumulating = false;
  state_.local_weight = 0;
  co_return Status();
}

Status Gradients::begin_micro_step(MicroStep kind) {
  // A world of one has nothing to reduce.
  if (state_.alone && kind == MicroStep::reduce) kind = MicroStep::local;
  if (kind == MicroStep::local) ZERO_TRY(accumulator_.accumulate());
  if (kind == MicroStep::reduce) ZERO_TRY(reductions_.keep_sums());
  state_.started = true;
  open_micro_step(kind);
  return {};
}

void Gradients::open_micro_step(MicroStep kind) {
  state_.begin_micro_step(kind);
  schedule_.begin_micro_step();
  accumulator_.begin_micro_step();
}

/// A micro-step of any kind may be the last: local sums are then reduced, and reduced sums divided.
Task Gradients::finish() {
  if (state_.kind == MicroStep::local) {
    state_.local_weight = state_.contribution_weight();
    state_.weight = 0;
    state_.kind = MicroStep::last;
    schedule_.begin_micro_step();
  }
  if (state_.alone || late()) {
    ZERO_CO_AWAIT(accumulator_.fill_rest());
    accumulator_.finish_slots();
    co_return Status();
  }
  ZERO_CO_AWAIT(reduce_rest());
  if (state_.kind == MicroStep::reduce) ZERO_CO_AWAIT(schedule_.reduce_sums());
  co_return Status();
}

Task Gradients::reduce_late() {
  state_.reducing = true;
  co_return co_await reduce_rest();
}

void Gradients::end_step(bool applied) {
  reductions_.end_step(applied);
  state_.begin_step();
  schedule_.begin_step();
  accumulator_.begin_step();
  open_micro_step(MicroStep::last);
}

kernels::ExactSum Gradients::squares() {
  kernels::ExactSum sum = reductions_.squares();
  if (state_.alone) add_squares(sum);
  kernels_.finish_squares(sum);
  return sum;
}

void Gradients::add_squares(kernels::ExactSum &sum) const {
  for (const int64_t index : plan_.order()) {
    if (!reductions_.counts(index)) continue;
    const SlotPlace &place = slots_.place(slots_.grad(), index);
    kernels_.add_squares(place.at(0), place.dtype, plan_.bucket(index).flat.count(), sum);
  }
}

}  // namespace zero
