/// @file OptimizerGroups: the group of an optimizer and the groups split from it. Reductions,
/// gathers and the step flags of a model that is cut over groups make progress in parallel in them.
/// Knows ranks; never their data.
#pragma once

#include "core/task.h"
#include "group/group.h"

#include <array>
#include <cstdint>
#include <memory>

namespace zero {

/// Used by one thread at a time; once open, all() may be called from any thread.
class OptimizerGroups {
 public:
  explicit OptimizerGroups(std::shared_ptr<Group> whole) : whole_(std::move(whole)) {}

  void set_model_parent(std::shared_ptr<Group> group) { model_parent_ = std::move(group); }
  /// A collective over the whole group, then over the parent of the model-parallel group.
  /// `reducer`: for reductions and gathers; `on_host`: for the other groups; nullptr: the reducer
  /// of the parent group. A round of reductions or gathers carries at most `most_round_nbytes`.
  /// Reductions and gathers are over the `replica_ranks` ranks of a replica, gathers of sharded
  /// parameters over blocks of `param_ranks` of them; 0: over all. `exchanges`: replicas exchange
  /// values behind steps.
  Task open(const std::shared_ptr<const Reducer> &reducer, const std::shared_ptr<const Reducer> &on_host, int64_t most_round_nbytes,
            int64_t replica_ranks, int64_t param_ranks, bool exchanges);
  void close();

  /// @name The groups; nullptr if not open, or if none was set
  /// @{
  const std::shared_ptr<Group> &reduce() const { return reduce_; }
  const std::shared_ptr<Group> &gather() const { return gather_; }
  /// The ranks that hold all sharded parameters between them: those of gather(), or a block.
  const std::shared_ptr<Group> &holders() const { return holders_ != nullptr ? holders_ : gather_; }
  /// The ranks that hold the same cuts of sharded parameters, one of each block.
  const std::shared_ptr<Group> &copies() const { return copies_; }
  /// The ranks with the same shard in all replicas.
  const std::shared_ptr<Group> &across() const { return across_; }
  /// The ranks of across() once more, for exchanges that go on behind steps.
  const std::shared_ptr<Group> &exchange() const { return exchange_; }
  /// Exchanges step flags over all groups of the model.
  const std::shared_ptr<Group> &model() const { return model_; }
  /// The group that model() is split from.
  const std::shared_ptr<Group> &model_parent() const { return model_parent_; }
  /// The groups that were split for the optimizer, or nullptr.
  std::array<Group *, 7> all() const {
    return {reduce_.get(), gather_.get(), holders_.get(), copies_.get(), across_.get(), exchange_.get(), model_.get()};
  }
  /// Those of them in which ranks share memory.
  std::array<Group *, 4> sharing() const { return {reduce_.get(), gather_.get(), holders_.get(), copies_.get()}; }

  /// Runs `meanwhile` as around() does, in the groups in which other calls gather parameters.
  Task around_gathers(Task meanwhile, uint64_t what);
  /// Copies the current deadlines of the parent groups.
  void take_deadline();
  /// Sets the caller of the groups in which nothing else runs during a call: gather(), holders(),
  /// copies() and model().
  void name_caller(Caller caller);
  /// Passes the error to the ranks that would wait for this one.
  void fail(const Status &cause);

 private:
  Task split_blocks(const std::shared_ptr<const Reducer> &reducer, int64_t most_round_nbytes, int64_t replica_ranks, int64_t param_ranks);
  void name_ranks(int64_t replica_ranks);

  const std::shared_ptr<Group> whole_;
  std::shared_ptr<Group> model_parent_;
  std::shared_ptr<Group> reduce_;
  std::shared_ptr<Group> gather_;
  std::shared_ptr<Group> holders_;  ///< nullptr: gather_
  std::shared_ptr<Group> copies_;
  std::shared_ptr<Group> across_;
  std::shared_ptr<Group> exchange_;
  std::shared_ptr<Group> model_;
};

}  // namespace zero
