/// @file StepFlagsExchange: what all ranks must know before any applies a step, and what it comes to: whether to skip, the norm, who filled what,
/// whether ranks have the same hyper-parameters and made the same call, whether the run is to stop.
#pragma once

#include "core/task.h"
#include "engine/optimizer/step_flags.h"
#include "engine/optimizer/parts.h"
#include "engine/optimizer/stop_request.h"
#include "kernels/step_decision.h"

#include <cstdint>

namespace zero {

class StepFlagsExchange {
 public:
  explicit StepFlagsExchange(OptimizerParts &parts) : parts_(parts) {}

  /// `params`: how many have a word; 0: nobody asks who filled them.
  void open(int64_t params) { step_flags_.open(params); }
  /// Votes on the step under way. `change`: of memory, as this rank found it.
  Task run(Finding &change);
  /// `splitting`: ranks that called reduce.
  Status check_same_call(int64_t splitting) const;

  const StepFlags &step_flags() const { return step_flags_; }
  StopRequest &stop_request() { return stop_request_; }

 private:
  void fill_in_step_flags();
  bool weightless() const;
  Task exchange_with_model();
  Task exchange_with_replicas();
  Task check_alike();
  kernels::DecisionRules decision_rules() const;
  void decide();
  Status decide_on_device();
  Task compare_update_counts();
  Task agree_on_stop();

  OptimizerParts &parts_;
  StepFlags step_flags_;
  StopRequest stop_request_;
  int64_t stop_seen_ = 0;  ///< this rank's reason, as it was when the step under way was voted on
};

}  // namespace zero
