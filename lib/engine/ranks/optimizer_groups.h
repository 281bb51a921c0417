/// @file OptimizerGroups: the group that an optimizer was made in and those split from it, so that reductions, gathers and the votes of a
/// model that is cut over groups go on beside one another. Knows ranks; never what they send.
#pragma once

#include "core/task.h"
#include "group/group.h"

#include <array>
#include <memory>

namespace zero {

/// Used by one thread at a time, but for all(), once open.
class OptimizerGroups {
 public:
  explicit OptimizerGroups(std::shared_ptr<Group> whole) : whole_(std::move(whole)) {}

  void set_model_parent(std::shared_ptr<Group> group) { model_parent_ = std::move(group); }
  /// A collective over the whole group, then over the model's. `reducer`: of reductions and gathers; `on_host`: of votes; nullptr: that of
  /// the group they are split from. A round of reductions or gathers carries at most `most_round_nbytes`.
  /// Reductions and gathers are over the `replica_ranks` ranks of a replica.
  Task open(const std::shared_ptr<const Reducer> &reducer, const std::shared_ptr<const Reducer> &on_host, int64_t most_round_nbytes,
            int64_t replica_ranks);
  void close();

  /// @name nullptr: not open, or none was set
  /// @{
  const std::shared_ptr<Group> &reduce() const { return reduce_; }
  const std::shared_ptr<Group> &gather() const { return gather_; }
  const std::shared_ptr<Group> &across() const { return across_; }              ///< of ranks that have the same shard in their replicas
  const std::shared_ptr<Group> &model() const { return model_; }                ///< of votes over all groups of the model
  const std::shared_ptr<Group> &model_parent() const { return model_parent_; }  ///< what it is split from
  /// @}
  /// Those that were made for the optimizer, or nullptr.
  std::array<Group *, 4> all() const { return {reduce_.get(), gather_.get(), across_.get(), model_.get()}; }

  /// Waits last as long as the groups that they were split from now say.
  void take_deadline();
  /// Of those in which nothing else runs while a call does: all but reductions.
  void name_caller(Caller caller);
  /// Tells the ranks that would wait for this one.
  void fail(const Status &cause);

 private:
  void name_ranks(int64_t replica_ranks);

  const std::shared_ptr<Group> whole_;
  std::shared_ptr<Group> model_parent_;
  std::shared_ptr<Group> reduce_;
  std::shared_ptr<Group> gather_;
  std::shared_ptr<Group> across_;
  std::shared_ptr<Group> model_;
};

}  // namespace zero
