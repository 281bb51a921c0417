/// @file ReduceStrategies: chooses the strategies of buckets, and runs them: within the replica,
/// then over replicas.
#pragma once

#include "engine/config/settings.h"
#include "engine/gradients/reduce_strategy.h"
#include "engine/layout/format.h"
#include "engine/layout/plan.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace zero {

class ReduceStrategies {
 public:
  /// `rows` as in RowSums.
  ReduceStrategies(const Plan &plan, const Settings &settings, const SlotMemory &slots, GivenRows &rows);

  /// Bytes that open() takes. `formats`: those of the plan.
  int64_t workspace_nbytes(std::span<const Format> formats) const;
  /// `across`: the ranks that have the same shard in other replicas; nullptr: there is one replica.
  Status open(std::shared_ptr<Group> within, std::shared_ptr<Group> across, const MemorySource &source);
  void close();

  /// As in ReduceStrategy, over all ranks that take part; call.out becomes this rank's cut.
  Task sum(int64_t bucket, Contribution given, ReduceScatter call);
  /// Every rank's cut of the gradient slot goes to all ranks of the replica.
  Task gather(int64_t bucket) { return strategy_within(bucket).gather(*within_, bucket, slots_.place(slots_.grad(), bucket)); }
  /// The ranks of other replicas that take part; nullptr: none.
  Group *across() const { return sums_across_ ? across_.get() : nullptr; }
  /// How many take part.
  int64_t ranks() const { return within_->size() * (sums_across_ ? across_->size() : 1); }

  /// @name As in ReduceStrategy, only while nothing is under way
  /// @{
  void begin_step(const StepTerms &terms);
  void end_step(bool applied);
  void forget();
  CarriedState *carried(Carried kind) const { return over_replicas() != nullptr ? over_replicas()->carried(kind) : nullptr; }
  CarriedPart carried_of(Carried kind, int64_t id, int64_t replica) const { return over_replicas()->carried_of(kind, id, replica); }
  /// @}

 private:
  ReduceStrategy &strategy_within(int64_t bucket) const { return *strategies_[plan_.bucket(bucket).rows.count > 0 ? 1 : 0]; }
  /// nullptr: gradients stay within the replica.
  ReduceStrategy *over_replicas() const { return strategies_.size() > 2 ? strategies_[2].get() : nullptr; }

  const Plan &plan_;
  const SlotMemory &slots_;
  /// For whole buckets, for buckets by rows, and over replicas.
  std::vector<std::unique_ptr<ReduceStrategy>> strategies_;
  std::shared_ptr<Group> within_;
  std::shared_ptr<Group> across_;
  bool sums_across_ = false;
  Arena sum_;  ///< in fp32: of a cut's 16-bit gradients, on its way to other replicas
};

}  // namespace zero
