/// @file What host and device tell each other of the run.
#include "engine/compute/training_run.h"

#include <algorithm>

namespace zero {

/// What the caller has set is newer until the device is told.
Status TrainingRun::learn() const {
  if (!told_ || (judged_count_ == 0 && !captured_)) return {};
  ZERO_TRY(device_->read_run(&state_));
  judged_count_ = 0;
  return {};
}

kernels::RunState &TrainingRun::edit() {
  told_ = false;
  edited_ = true;
  return state_;
}

void TrainingRun::tell() {
  if (!told_ && device_ != nullptr) device_->set_run(state_);
  told_ = true;
}

void TrainingRun::judge(const kernels::VerdictRules &rules, bool nonfinite, double squares) {
  kernels::judge(rules, nonfinite, squares, state_);
  told_ = false;
  tell();
}

void TrainingRun::judge_on_device(const kernels::VerdictRules &rules, bool captured) {
  captured_ = captured_ || captured;
  if (!captured) tell();
  device_->judge(rules);
  ++judged_count_;
}

void TrainingRun::count() {
  ++state_.applied_count;
  told_ = false;
}

/// Also where the host was told of the verdict: the count is newer.
void TrainingRun::end_on_device(bool counts) {
  device_->end_step(counts);
  judged_count_ = std::max<int64_t>(judged_count_, 1);
}

}  // namespace zero
