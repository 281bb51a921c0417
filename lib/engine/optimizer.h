/// @file Optimizer: parameters, gradients and states of a model over the ranks of a group, and the steps that update them. The only object
/// that knows both which collective and which kernel. Never knows handles, requests or structs of the ABI other than results it fills.
#pragma once

#include "core/config.h"
#include "core/task.h"
#include "engine/bucket_pool.h"
#include "engine/gradients.h"
#include "engine/hyper_set.h"
#include "engine/param_pool.h"
#include "engine/params.h"
#include "engine/plan.h"
#include "engine/settings.h"
#include "engine/slot_memory.h"
#include "group/collectives.h"
#include "group/group.h"
#include "memory/accounting.h"

#include <zero/optimizer.h>
#include <zero/stats.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zero {

/// A contiguous piece of a tensor that this rank updates.
struct View {
  int64_t param;
  int64_t offset;  ///< first element within the tensor
  int64_t count;
  void *data;
};

/// Bytes of one category: what the stage needs for ever by formula, and what comes on top.
struct MemoryUse {
  int64_t now_nbytes;
  int64_t peak_nbytes;
  int64_t formula_nbytes;
  int64_t constant_nbytes;
};

/// Time and stalls since seal.
struct StepTimes {
  int64_t step_count;
  int64_t reduce_ns;
  int64_t apply_ns;
  int64_t gather_ns;
  int64_t stalled_nbytes;
  int64_t pool_grow_count;
  bool overlap_active;
};

/// Arguments are checked here, except addresses of results, which must not be nullptr, and `stream`. Functions that return a Task are
/// collectives: their task runs in the queue named, in the same order on every rank, the optimizer must outlive it, and a state error is
/// found when it runs. Functions that return a Status never wait for a task; while one that changes parameters is under way they
/// return ZERO_E_STATE.
class Optimizer {
 public:
  static Status create(std::shared_ptr<Group> group, const Config &config, std::shared_ptr<Optimizer> *out);
  Optimizer(const Optimizer &) = delete;
  /// Waits for reductions under way, after making them fail.
  ~Optimizer();

  const std::shared_ptr<Group> &group() const { return group_; }
  /// Where the task of seal() runs.
  const std::shared_ptr<OperationQueue> &seal_queue() const { return group_->queue(); }
  /// Where all other tasks run.
  const std::shared_ptr<OperationQueue> &queue() const { return queue_; }

  /// @name Building
  /// @{
  Status add_param(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int64_t *out_id);
  Status set_order(const int64_t *ids, int64_t count);
  Task seal();
  /// @}

  /// @name Values
  /// @{
  Task begin(int32_t source);
  Task param_acquire(int64_t id, void *dst, int64_t dst_count, void **out_data);
  Status param_release(int64_t id);
  Task read(int64_t id, int32_t slot, int64_t offset, void *data, int64_t count);
  Task write(int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count);
  /// @}

  /// @name Steps. `out` may be nullptr; its struct_size is the caller's.
  /// @{
  Status grad_acquire(int64_t id, void **out_data, int64_t *out_accumulate);
  Status grad_ready(int64_t id, const void *grad, int64_t offset, int64_t count);
  Status set_weight(double weight);
  Task step(zero_step_result *out);
  Task reduce(zero_step_result *out);
  Status apply();
  Task gather();
  Status view_count(int64_t *out) const;
  Status view(int64_t index, int32_t slot, View *out);
  /// @}

  /// @name Scalars
  /// @{
  Status set_f64(int64_t set, int32_t key, double value);
  Status get_f64(int64_t set, int32_t key, double *out) const;
  Status set_i64(int32_t key, int64_t value);
  Status get_i64(int32_t key, int64_t *out) const;
  /// @}

  /// @name Statistics. Any thread.
  /// @{
  Status memory(int32_t category, MemoryUse *out) const;
  Traffic traffic(OperationKind kind) const;
  StepTimes step_times() const;
  std::string describe() const;
  /// @}
