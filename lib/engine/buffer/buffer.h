/// @file Buffer: a flat array that is sharded over the ranks of a group. Knows collectives and
/// arenas; never handles, requests or optimizers.
#pragma once

#include "core/config.h"
#include "core/task.h"
#include "group/collectives.h"
#include "group/group.h"
#include "memory/accounting.h"
#include "memory/arena.h"

#include <cstdint>
#include <memory>

namespace zero {

/// One rank's part of a buffer. Tasks run in queue(), in the same order on every rank; the buffer
/// must outlive them. Range checks are made here; NULL checks are the caller's.
class Buffer {
 public:
  /// A collective that runs in group->queue(). All elements are zero.
  static Task create(std::shared_ptr<Group> group, Config config, DType dtype, int64_t count, std::shared_ptr<Buffer> *out);
  Buffer(const Buffer &) = delete;
  ~Buffer();

  const std::shared_ptr<Group> &group() const { return group_; }
  const std::shared_ptr<OperationQueue> &queue() const { return group_->queue(); }
  DType dtype() const { return dtype_; }
  int64_t count() const { return count_; }

  /// The shard of this rank; data is nullptr if it is empty.
  struct Shard {
    void *data;
    int64_t offset;
    int64_t count;
  };
  Shard shard() const;
  /// The range of each rank.
  const Cuts &cuts() const { return cuts_; }

  Task whole_acquire(void **out_data);
  /// Never blocks.
  Status whole_release();
  Task reduce_scatter(const void *data, int64_t count, ReduceOp op);
  Task read(int64_t offset, void *data, int64_t count);
  Task write(int64_t offset, const void *data, int64_t count);

  /// Bytes of one category now and at peak. Any thread.
  const Accounting &accounting() const { return accounting_; }

 private:
  /// Distinguish reads from writes in fingerprints, beside the number.
  static constexpr uint64_t kRead = uint64_t{1} << 62;
  static constexpr uint64_t kWrite = uint64_t{1} << 63;

  Buffer(std::shared_ptr<Group> group, const AllocatorHook &hook, DType dtype, int64_t count);
  Status allocate();
  Status check_range(int64_t offset, int64_t count) const;
  const Range &own() const { return cuts_[static_cast<size_t>(group_->rank())]; }

  const std::shared_ptr<Group> group_;
  const DType dtype_;
  const int64_t count_;
  const AllocatorHook hook_;
  /// Identifies the buffer in its group, so that ranks that use different buffers get an error.
  uint64_t number_ = 0;
  Cuts cuts_;
  Accounting accounting_;
  Arena shard_;
  Arena whole_;
  bool whole_acquired_ = false;
};

}  // namespace zero
