/// @file DeferredAllGather: the gathers of new parameters that continue after a step of stages 1
/// and 2. They run bucket after bucket in a separate queue, which the progress thread advances.
/// Knows buckets by number; each gather is a task that the caller passes.
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
  /// `allowed` false: submit() will not be called.
  void open(std::shared_ptr<Group> group, int64_t bucket_count, bool allowed);
  bool allowed() const { return allowed_; }
  /// False if there is no progress thread for the last submitted gather. It then makes progress
  /// only while a call waits for it.
  bool watched() const { return watched_; }

  /// All ranks submit the same buckets in the same order. No gather of the bucket may be in
  /// progress.
  void submit(int64_t bucket, Task gather);
  /// Waits until the bucket has the values of the last step.
  Task wait(int64_t bucket);
  /// Waits until all buckets have the values of the last step.
  Task drain();
  /// The same as drain(), for callers that are not tasks. Blocks.
  Status finish();
  /// Waits until all gathers in progress have ended, with or without an error.
  void stop();

 private:
  std::shared_ptr<Group> group_;
  bool allowed_ = false;
  std::shared_ptr<OperationQueue> queue_ = std::make_shared<OperationQueue>();
  /// By bucket; nullptr: no gather in progress.
  std::vector<std::shared_ptr<Operation>> operations_;
  std::vector<int64_t> order_;  ///< submitted buckets in order; those before next_ have ended
  size_t next_ = 0;
  bool watched_ = true;
  QueueWatch watch_;
};

}  // namespace zero
