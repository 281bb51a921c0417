/// @file CodedSums: sums over replicas in a wire code, whose losses are added to later gradients,
/// and which get momentum or carry first moments through the code, if that is asked for.
#pragma once

#include "engine/compute/coded_mean.h"
#include "engine/config/settings.h"
#include "engine/gradients/momentum_correction.h"
#include "engine/gradients/reduce_strategy.h"
#include "engine/gradients/residuals.h"
#include "engine/layout/plan.h"
#include "memory/arena.h"

#include <cstdint>
#include <vector>

namespace zero {

class CodedSums final : public ReduceStrategy {
 public:
  CodedSums(const Plan &plan, const ReplicaSettings &replicas) : plan_(plan), replicas_(replicas) {}

  int64_t workspace_nbytes() const override;
  Status open(const MemorySource &source) override;
  void close() override;
  Task sum(Group &group, int64_t bucket, Contribution given, ReduceScatter call) override;
  void begin_step(const StepTerms &terms) override;
  void end_step(bool applied) override;
  void forget() override;
  CarriedState *carried(Carried kind) override;
  CarriedPart carried_of(Carried kind, int64_t id, int64_t replica) override;

 private:
  int64_t largest_cut() const;
  int64_t carried_nbytes() const;

  const Plan &plan_;
  const ReplicaSettings &replicas_;
  CodedMean coded_;
  Arena memory_;  ///< residuals and velocities
  Residuals residuals_;
  MomentumCorrection momentum_;
  /// By bucket and line of this rank's cut: not 0 if it is never coded.
  std::vector<std::vector<uint8_t>> full_lines_;
  std::vector<uint8_t> all_lines_;  ///< as many as the largest cut has, none coded
  const MomentFreeze *carried_ = nullptr;
  bool across_ = false;
  bool in_full_ = false;
};

}  // namespace zero
