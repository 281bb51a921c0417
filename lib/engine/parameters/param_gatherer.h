/// @file ParamGatherer: parameters of which each rank holds or has updated a part, made whole
/// again: bucket after bucket behind a step, tensor after tensor for the caller or ahead of it.
/// Knows where parts lie; never when they change.
#pragma once

#include "core/task.h"
#include "engine/compute/step_kernels.h"
#include "engine/config/settings.h"
#include "engine/layout/layout.h"
#include "engine/layout/params.h"
#include "engine/parameters/deferred_all_gather.h"
#include "engine/parameters/difference_gather.h"
#include "engine/parameters/master_gather.h"
#include "engine/parameters/param_pool.h"
#include "engine/parameters/prefetch.h"
#include "engine/parameters/quantized_params.h"
#include "engine/parameters/row_gather.h"
#include "engine/parameters/value_gather.h"
#include "engine/ranks/optimizer_groups.h"
#include "engine/stats/trace.h"
#include "engine/storage/given_rows.h"
#include "engine/storage/tensor_slots.h"
#include "group/group.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace zero {

/// Used by one thread at a time; gathers may run on the progress thread.
class ParamGatherer {
 public:
  /// `buffered`: those of which a rank takes over its own part of first values only.
  enum class Buckets { trained, buffered, all };

  /// All arguments must outlive the object. `rows`: those that steps updated.
  ParamGatherer(const Params &params, const Layout &layout, const TensorSlots &tensors, QuantizedParams &quantized_params,
                const GivenRows &rows, const Kernels &kernels, const Settings &settings, Trace &trace)
      : params_(params),
        layout_(layout),
        tensors_(tensors),
        kernels_(kernels),
        settings_(settings),
        trace_(trace),
        values_(layout, tensors, quantized_params),
        masters_(values_, layout, tensors),
        differences_(values_, params, layout, tensors, settings),
        rows_(values_, layout, tensors, rows) {}

  /// The order in which the first step acquires parameters.
  void set_order(std::vector<int64_t> ids) { prefetch_.set_order(std::move(ids)); }
  const std::vector<int64_t> &order() const { return prefetch_.order(); }

  /// The way in which parameters are gathered after most steps, and when they are acquired.
  const GatherStrategy &strategy() const { return usual_; }
  /// Once slots have memory; `source` is that of slots. `one_copy`: all ranks see the same
  /// parameters, of which each has updated a part.
  Status open(const OptimizerGroups &groups, const MemorySource &source, bool one_copy);
  /// Waits for the end of what is under way.
  void close();
  void release() {
    pool_.release();
    usual_.close();
  }

  /// @name Buckets that all ranks hold, or of which several hold the same cuts
  /// @{
  /// Every rank's cuts go to all of them.
  Task gather(Buckets which);
  /// Owners have written a part of the parameter. Copies of it are stale until the next gather of
  /// its bucket, which comes before the next tensor at the latest. The same on all ranks.
  void note_write(int64_t id);
  /// Gathers the parameters that a step updated: behind the step, if gathers may run there and
  /// `behind` is true. `in_full`: as they are, or as their masters are, even if most steps gather
  /// something else.
  Task gather_updated(bool behind, bool in_full);
  bool may_trail() const { return trailing_.allowed(); }
  /// The bucket is as the last step left it.
  Task arrived(int64_t bucket) { return trailing_.wait(bucket); }
  /// All buckets are. Blocks.
  Status all_arrived() { return trailing_.finish(); }
  /// @}

  /// @name Tensors
  /// @{
  /// Into *data, or a buffer of the pool where that is nullptr.
  Task whole(int64_t id, std::byte **data, bool *out_pooled);
  void give_back(const std::byte *data) { pool_.give_back(data); }
  bool runs_ahead() const { return prefetch_.runs_ahead(); }
  int64_t most_ahead_nbytes() const { return prefetch_.most_nbytes(); }
  /// The next step follows the order of this one.
  void end_step() { prefetch_.end_step(); }
  /// @}

  /// Ends what runs ahead and behind: parameters are about to change.
  Task end();

 private:
  bool alone() const { return group_->size() == 1; }
  bool is_whole(int64_t bucket) const { return tensors_.memory().place(tensors_.memory().param(), bucket).whole; }
  bool is_among(int64_t bucket, Buckets which) const;
  Task refresh();
  Task gather_all(Buckets which, GatherStrategy &strategy);
  Task gather_bucket(int64_t index, Trace::Track track, GatherStrategy &strategy);
  Task gather_ahead(int64_t id, std::byte *whole);

  const Params &params_;
  const Layout &layout_;
  const TensorSlots &tensors_;
  const Kernels &kernels_;
  const Settings &settings_;
  Trace &trace_;
  /// @name The strategies, and those picked for this optimizer
  /// @{
  ValueGather values_;
  MasterGather masters_;
  DifferenceGather differences_;
  RowGather rows_;
  GatherStrategy &usual_ = differences_.on()           ? static_cast<GatherStrategy &>(differences_)
                           : settings_.leaves_unfilled ? static_cast<GatherStrategy &>(rows_)
                                                       : values_;
  GatherStrategy &in_full_ = differences_.on() ? static_cast<GatherStrategy &>(masters_) : values_;
  /// @}
  std::shared_ptr<Group> group_;
  std::shared_ptr<Group> holders_;  ///< gathers tensors
  std::shared_ptr<Group> copies_;   ///< has the same cuts; nullptr: only this rank has its own
  std::vector<bool> stale_;         ///< by bucket: copies differ from the values of owners
  bool one_copy_ = false;
  ParamPool pool_;
  Prefetch prefetch_;
  DeferredAllGather trailing_;
};

}  // namespace zero
