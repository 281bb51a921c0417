/// @file The sequence of a step's micro-steps.
#include "engine/gradients/gradients.h"

#include <algorithm>
#include <utility>

namespace zero {

Status Gradients::open(const std::shared_ptr<Group> &group, std::shared_ptr<Group> across, bool alone, const MemorySource &source,
                       std::vector<bool> counted) {
  state_.alone = alone;
  state_.delays = settings_.delays_grads;
  held_ = {.filled = std::vector<uint8_t>(plan_.params().size())};
  ZERO_TRY(schedule_.open(group, source));
  accumulator_.open(group, source, settings_.grad_norm && std::find(counted.begin(), counted.end(), false) == counted.end());
  ZERO_TRY(reductions_.open(group, std::move(across), source, std::move(counted)));
  reductions_.end_step(false);
  begin_step();
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

/// Local sums become the contribution.
void Gradients::close_local_sums() {
  if (state_.kind != MicroStep::local) return;
  state_.local_weight = state_.contribution_weight();
  state_.weight = 0;
  state_.kind = MicroStep::last;
  schedule_.begin_micro_step();
}

/// A micro-step of any kind may be the last: local sums are then reduced, and reduced sums divided.
Task Gradients::finish() {
  close_local_sums();
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

Task Gradients::hold(double loss_scale) {
  close_local_sums();
  state_.reducing = true;
  ZERO_CO_AWAIT(accumulator_.fill_rest());
  if (state_.alone) {
    schedule_.bring_all();
    accumulator_.finish_slots();
  } else {
    ZERO_CO_TRY(schedule_.check_submitted());
  }
  note_held(loss_scale);
  begin_step();
  if (!reductions_.overlapping()) ZERO_CO_AWAIT(schedule_.see_submitted_end());
  co_return Status();
}

void Gradients::note_held(double loss_scale) {
  held_.any = true;
  held_.loss_scale = loss_scale;
  held_.unfilled_count = accumulator_.unfilled_count();
  for (size_t id = 0; id < held_.filled.size(); ++id) held_.filled[id] = accumulator_.filled(static_cast<int64_t>(id)) ? 1 : 0;
  held_.finite = accumulator_.finite();
  held_.weight = state_.contribution_weight();
}

void Gradients::drop() {
  if (!state_.delays) return;
  reductions_.end_step(false);
  forget_held();
}

/// A save does not tell how many elements were missing on each rank.
void Gradients::take_loaded(double loss_scale, double weight) {
  reductions_.take_sums(weight, !state_.alone);
  held_.any = true;
  held_.loss_scale = loss_scale;
  held_.unfilled_count = 0;
  std::fill(held_.filled.begin(), held_.filled.end(), 1);
  held_.finite = reductions_.finite();
  held_.weight = weight;
}

void Gradients::forget_held() {
  held_.any = false;
  held_.finite = true;
}

void Gradients::end_step(bool applied) {
  reductions_.end_step(applied);
  forget_held();
  if (!state_.delays) begin_step();
}

void Gradients::begin_step() {
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
