/// @file FirstValues: the initial values of parameters, from replicas, from rank 0 or from shards,
/// and a record of writes that the next begin takes over. Knows slots and their owners; never the
/// order of calls.
#pragma once

#include "core/choice.h"
#include "core/task.h"
#include "engine/compute/step_kernels.h"
#include "engine/layout/layout.h"
#include "engine/layout/params.h"
#include "engine/parameters/param_gatherer.h"
#include "engine/parameters/quantized_params.h"
#include "engine/ranks/optimizer_groups.h"
#include "engine/storage/tensor_slots.h"
#include "memory/arena.h"

#include <zero/optimizer.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

inline constexpr Choice kSources[] = {
    {ZERO_SOURCE_LOCAL, "ZERO_SOURCE_LOCAL"}, {ZERO_SOURCE_ROOT, "ZERO_SOURCE_ROOT"}, {ZERO_SOURCE_SHARDS, "ZERO_SOURCE_SHARDS"}};

/// Used by one thread at a time.
class FirstValues {
 public:
  /// All arguments must outlive this object.
  FirstValues(const Params &params, const Layout &layout, const TensorSlots &tensors, const QuantizedParams &quantized_params,
              const Kernels &kernels, ParamGatherer &gathers, const OptimizerGroups &groups)
      : params_(params),
        layout_(layout),
        tensors_(tensors),
        quantized_params_(quantized_params),
        kernels_(kernels),
        gathers_(gathers),
        groups_(groups) {}

  /// Call it once slots have memory; `source` is that of slots. `one_copy` as in
  /// ParamGatherer::open.
  void open(const MemorySource &source, bool one_copy);
  void release() { copies_.clear(); }

  /// Returns a private copy of a whole tensor, zero at first. It is for use before begin if the
  /// parameter is sharded or stored in 8 bits.
  Status whole_copy(int64_t id, std::byte **out);
  /// Sets parameters from a zero_source; masters and averages follow. A collective.
  Task take_over(int32_t source);
  /// Takes over the bits of all slots, after each rank has loaded its own cuts from a checkpoint. A
  /// collective.
  Task take_loaded();

  /// @name Writes since the last begin
  /// @{
  /// Records a write of a parameter. `begun`: it came after begin. `changed`: it was a write of a
  /// range or an initialiser, so that only the owners have the values.
  void note_params(int64_t id, bool begun, bool changed);
  void note_state(int32_t slot, int64_t id);
  /// From now on begin leaves averages unchanged.
  void note_step() { stepped_ = true; }
  /// True if parameters were written after begin.
  bool edited() const { return edited_; }
  /// True if parameters were written by range, so that their owners have the values.
  bool edited_by_range() const { return range_edited_; }
  bool wrote_master(int64_t id) const { return master_written_[static_cast<size_t>(id)]; }
  bool has_written_masters() const;
  /// Forgets writes of masters whose parameters a step has updated: these are rounded from their
  /// masters. `filled` as in StepFlags; with it some rows of tables stay untouched.
  void forget_updated_masters(std::span<const int64_t> filled);
  /// @}

 private:
  Task take_replicas();
  Task take_root();
  Task take_copies_of_root();
  Task take_copy_of_root(int64_t id);
  void keep_copy(int64_t id);
  void forget_edits();
  Task check_replicas();
  static Task are_same(Group &group, uint64_t mine, bool *out);
  Task compare_hashes(Group &group, const std::vector<uint64_t> &mine, int64_t first, int64_t stride);
  Status param_hash(int64_t id, uint64_t *out);
  void follow_master(int64_t id);
  void follow_param(int64_t id);

  const Plan &plan() const { return layout_.plan(); }
  const Slot &param_slot() const { return tensors_.memory().param(); }

  const Params &params_;
  const Layout &layout_;
  const TensorSlots &tensors_;
  const QuantizedParams &quantized_params_;
  const Kernels &kernels_;
  ParamGatherer &gathers_;
  const OptimizerGroups &groups_;
  MemorySource source_{};
  bool one_copy_ = false;
  std::vector<Arena> copies_;          ///< by parameter: whole first values, where asked for
  std::vector<bool> master_written_;   ///< by parameter
  std::vector<bool> average_written_;  ///< since seal
  bool stepped_ = false;
  bool edited_ = false;
  bool range_edited_ = false;
};

}  // namespace zero
