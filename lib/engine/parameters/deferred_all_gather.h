/// @file Trailing gathers: the gathers of new parameters that go on behind a step of stages 1 and 2, bucket after bucket, in a queue of
/// their own which the progress thread advances. Knows buckets by number; the gather itself is a task it is given.
#pragma once

#include "core/progress_thread.h"
#include "core/task.h"
#include "group/group.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace zero {

/// Used by one thread at a time.
class DeferredAllGather {
 public:
  /// `allowed` false: nothing will be submitted.
  void open(std::shared_ptr<Group> group, int64_t bucket_count, bool allowed);
  bool allowed() const { return allowed_; }
  /// False when there is no progress thread for what was submitted last: it then ends only while somebody waits for it.
  bool watched() const { return watched_; }

  /// All ranks submit the same buckets in the same order, and only when none is under way.
  void submit(int64_t bucket, Task gather);
  /// The bucket is as the last step left it.
  Task wait(int64_t bucket);
  /// All buckets are.
  Task drain();
  /// The same, for callers that are no task. Blocks.
  Status finish();
  /// Waits for the end of what is under way, whatever becomes of it.
  void stop();

 private:
  std::shared_ptr<Group> group_;
  bool allowed_ = false;
  std::shared_ptr<OperationQueue> queue_ = std::make_shared<OperationQueue>();
  std::vector<std::shared_ptr<Operation>> operations_;  ///< by bucket; nullptr: nothing is under way
  std::vector<int64_t> order_;                          ///< buckets as they were submitted; those before next_ have ended
  size_t next_ = 0;
  bool watched_ = true;
  QueueWatch watch_;
};

}  // namespace zero
