/// @file StepState: what goes on from step to step: counts, the loss scale, the newest decision. A device that decides steps goes
/// ahead of the host, which asks it only where somebody wants to know. Knows no gradients and no ranks.
#pragma once

#include "engine/compute/device_kernels.h"
#include "kernels/step_decision.h"

#include <cstdint>

namespace zero {

class StepState {
 public:
  /// `device` has a copy and must outlive it; nullptr: everything lies on the host.
  StepState(const kernels::LossScaleState &first, const DeviceKernels *device) : device_(device), state_{.loss_scale = first} {}

  /// What the host knows. Where the device may know more, learn() comes before.
  const kernels::StepState &known() const { return state_; }
  Status learn() const;
  /// Steps applied, as many as there may be at most.
  int64_t most_applied_count() const { return state_.applied_count + decided_count_; }

  /// What the caller sets, after learn(). The device and the other ranks are told before the next step is decided.
  kernels::StepState &edit();
  /// Edited since ranks last compared theirs.
  bool edited() const { return edited_; }
  void compared() { edited_ = false; }

  /// What the device is to go on from, where it is not told yet.
  void tell();
  /// Where the loss scale lies, on the device if there is one, which must be told.
  double *loss_scale() { return device_ != nullptr ? device_->loss_scale() : &state_.loss_scale.value; }

  /// @name Decisions
  /// @{
  void decide(const kernels::DecisionRules &rules, bool nonfinite, double squares);
  /// About what kernels have found. `captured`: when a graph is run, as often as it is.
  void decide_on_device(const kernels::DecisionRules &rules, bool captured);
  /// Some steps are decided in graphs, whose runs nobody tells the host.
  bool captured() const { return captured_; }
  /// @}

  /// @name The end of a step
  /// @{
  /// It was applied.
  void count();
  /// The device `counts` it unless it was skipped.
  void end_on_device(bool counts);
  /// @}

 private:
  const DeviceKernels *device_;
  mutable kernels::StepState state_;
  mutable int64_t decided_count_ = 0;  ///< steps that the device has decided since state_ was all there is to know
  bool told_ = false;                 ///< the device has state_, or has gone on from it
  bool edited_ = false;
  bool captured_ = false;
};

}  // namespace zero
