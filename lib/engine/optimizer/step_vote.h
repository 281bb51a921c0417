/// @file StepVote: what all ranks must know before any applies a step, and what it comes to: whether to skip, the norm, who filled what,
/// whether ranks have the same hyper-parameters and made the same call, whether the run is to stop.
#pragma once

#include "core/task.h"
#include "engine/optimizer/ballot.h"
#include "engine/optimizer/parts.h"
#include "engine/optimizer/stop_request.h"
#include "kernels/verdict.h"

#include <cstdint>

namespace zero {

class StepVote {
 public:
  explicit StepVote(OptimizerParts &parts) : parts_(parts) {}

  /// `params`: how many have a word; 0: nobody asks who filled them.
  void open(int64_t params) { ballot_.open(params); }
  /// Votes on the step under way. `change`: of memory, as this rank found it.
  Task run(Finding &change);
  /// `splitting`: ranks that called reduce.
  Status check_same_call(int64_t splitting) const;

  const Ballot &ballot() const { return ballot_; }
  StopRequest &stop_request() { return stop_request_; }

 private:
  void fill_in_ballot();
  bool weightless() const;
  Task vote_of_model();
  Task vote_of_replicas();
  Task check_alike();
  kernels::VerdictRules verdict_rules() const;
  void judge();
  Status judge_on_device();
  Task compare_update_counts();
  Task agree_on_stop();

  OptimizerParts &parts_;
  Ballot ballot_;
  StopRequest stop_request_;
  int64_t stop_seen_ = 0;  ///< this rank's reason, as it was when the step under way was voted on
};

}  // namespace zero
