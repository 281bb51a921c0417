/// @file VoteGroup: the group in which the ranks of saves and loads vote, split from that of all
/// ranks, so that votes meet nothing else. Knows groups; never votes.
#pragma once

#include "core/task.h"
#include "group/group.h"

#include <memory>
#include <vector>

namespace zero {

/// A group that a rank has failed alone is made anew.
class VoteGroup {
 public:
  /// Submits the split from `whole`, if there is no group that may be used. Called when the caller
  /// calls, so that the split keeps its place among the caller's other collectives of `whole`.
  void ask(Group &whole);
  /// Awaits that split, and names the call that votes from now on. A collective.
  Task open(Group &whole, Caller caller);
  /// The newest group is there, and no other was asked for.
  bool is_open() const { return group_ != nullptr && making_ == nullptr; }
  bool is_made() const { return group_ != nullptr; }
  /// Once it is made.
  Group &group() const { return *group_; }
  /// Groups that failed go.
  void let_go() { failed_.clear(); }

 private:
  bool is_usable() const { return group_ != nullptr && group_->usable().ok(); }
  void split_from(Group &whole);

  std::shared_ptr<Group> group_;
  std::shared_ptr<Group> made_;                 ///< by `making_`
  std::vector<std::shared_ptr<Group>> failed_;  ///< that were used before
  /// The split that makes the next group; nullptr: none is in progress.
  std::shared_ptr<Operation> making_;
};

}  // namespace zero
