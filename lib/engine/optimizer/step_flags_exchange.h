/// @file StepFlagsExchange: the vote of all ranks before a step is applied. It yields the decision
/// to skip, the norm and the filled gradients. It checks that all ranks have the same
/// hyper-parameters and made the same call, and agrees on a stop.
#pragma once

#include "core/task.h"
#include "engine/optimizer/parts.h"
#include "engine/optimizer/step_flags.h"
#include "engine/optimizer/stop_request.h"
#include "kernels/step_decision.h"

#include <cstdint>

namespace zero {

class StepFlagsExchange {
 public:
  explicit StepFlagsExchange(OptimizerParts &parts) : parts_(parts) {}

  /// `params`: number of parameters that have a word; 0: ranks do not vote on filled gradients.
  void open(int64_t params) { step_flags_.open(params); }
  /// Votes on the step in progress. `change`: a change of memory that this rank has found.
  Task run(Finding &change);
  /// Checks that all ranks made the same call. `splitting`: number of ranks that called reduce.
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
  int64_t stop_seen_ = 0;  ///< this rank's reason at the vote of the step in progress
};

}  // namespace zero
