/// @file StepState: state that continues from step to step: counts, the loss scale, the decision.
/// A device that decides steps runs ahead of the host, which reads its state only on request. Knows
/// no gradients and no ranks.
#pragma once

#include "engine/compute/device_kernels.h"
#include "kernels/step_decision.h"

#include <cstdint>

namespace zero {

class StepState {
 public:
  /// `device` has a copy and must outlive this object; nullptr: the state is on the host only.
  StepState(const kernels::LossScaleState &first, const DeviceKernels *device) : device_(device), state_{.loss_scale = first} {}

  /// The host's copy. Call learn() first if the device may have a newer one.
  const kernels::StepState &known() const { return state_; }
  Status learn() const;
  /// Upper bound on the number of applied steps.
  int64_t most_applied_count() const { return state_.applied_count + decided_count_; }

  /// State that the caller changes; call learn() first. The device and the other ranks receive it
  /// before the next step is decided.
  kernels::StepState &edit();
  /// True if the state was edited since the ranks last compared it.
  bool edited() const { return edited_; }
  void compared() { edited_ = false; }

  /// Sends edited state to the device.
  void tell();
  /// The address of the loss scale: on the device if there is one. Call tell() first.
  double *loss_scale() { return device_ != nullptr ? device_->loss_scale() : &state_.loss_scale.value; }

  /// @name Decisions
  /// @{
  void decide(const kernels::DecisionRules &rules, bool nonfinite, double squares);
  /// Nothing is there to be applied or skipped.
  void leave_out();
  /// Decides by the results of kernels. `captured`: the decision is part of a graph, and repeats
  /// with each run of it.
  void decide_on_device(const kernels::DecisionRules &rules, bool captured);
  /// True if some steps are decided in graphs. The host does not see the runs of a graph.
  bool captured() const { return captured_; }
  /// @}

  /// @name The end of a step
  /// @{
  /// Counts a step that was applied.
  void count();
  /// The device adds 1 to its count if `counts`, unless the step was skipped.
  void end_on_device(bool counts);
  /// @}

 private:
  const DeviceKernels *device_;
  mutable kernels::StepState state_;
  /// Steps that the device has decided since state_ was up to date.
  mutable int64_t decided_count_ = 0;
  bool told_ = false;  ///< the device has state_ or a newer state
  bool edited_ = false;
  bool captured_ = false;
};

}  // namespace zero
