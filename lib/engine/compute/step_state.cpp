/// @file Keeps the host's and the device's copy of the run's state consistent.
#include "engine/compute/step_state.h"

#include <algorithm>

namespace zero {

/// State that the caller has set is newer than the device's until tell().
Status StepState::learn() const {
  if (!told_ || (decided_count_ == 0 && !captured_)) return {};
  ZERO_TRY(device_->read_run(&state_));
  decided_count_ = 0;
  return {};
}

kernels::StepState &StepState::edit() {
  told_ = false;
  edited_ = true;
  return state_;
}

void StepState::tell() {
  if (!told_ && device_ != nullptr) device_->set_run(state_);
  told_ = true;
}

void StepState::decide(const kernels::DecisionRules &rules, bool nonfinite, double squares) {
  kernels::decide(rules, nonfinite, squares, state_);
  told_ = false;
  tell();
}

void StepState::leave_out() {
  state_.skips = 0;
  state_.grad_norm = 0;
}

void StepState::decide_on_device(const kernels::DecisionRules &rules, bool captured) {
  captured_ = captured_ || captured;
  if (!captured) tell();
  device_->decide(rules);
  ++decided_count_;
}

void StepState::count() {
  ++state_.applied_count;
  told_ = false;
}

/// The device's count is newer, even if the host has made the decision.
void StepState::end_on_device(bool counts) {
  device_->end_step(counts);
  decided_count_ = std::max<int64_t>(decided_count_, 1);
}

}  // namespace zero
