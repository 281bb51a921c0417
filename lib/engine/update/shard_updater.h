/// @file ShardUpdater: the pieces of parameters that this rank updates, and their update. Knows
/// kernels and slots; never the exchange of gradients or votes.
#pragma once

#include "core/task.h"
#include "engine/compute/step_kernels.h"
#include "engine/config/hyper_set.h"
#include "engine/config/settings.h"
#include "engine/gradients/moment_freeze.h"
#include "engine/layout/params.h"
#include "engine/layout/plan.h"
#include "engine/ranks/peer_views.h"
#include "engine/storage/given_rows.h"
#include "engine/storage/slot_memory.h"
#include "group/group.h"
#include "kernels/update.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace zero {

/// The inputs of an update that change with each step.
struct StepScalars {
  int64_t step;       ///< step of the run, from 1
  float grad_factor;  ///< unscales and clips gradients
  /// By parameter: number of ranks that filled it; empty: all count as filled.
  std::span<const int64_t> touched;
  bool sums = false;        ///< gradients are summed from the contributions of all ranks
  bool replicates = false;  ///< updated values are written to all ranks that keep them
};

class ShardUpdater {
 public:
  /// `rows`: those that the step under way gives; where unfilled parameters stay untouched, only
  /// these are updated.
  ShardUpdater(const Plan &plan, const Settings &settings, const SlotMemory &slots, const Params &params, const GivenRows &rows,
               Kernels &kernels, const std::vector<HyperSet> &sets, const MomentFreeze &freeze)
      : plan_(plan), settings_(settings), slots_(slots), params_(params), rows_(rows), kernels_(kernels), sets_(sets), freeze_(freeze) {}

  /// `all`: this rank updates all parameters, but only its cuts in steps that replicate. `formats`
  /// are those of the plan's spaces, `source` that of slots.
  Status build(std::span<const Format> formats, bool all, const MemorySource &source);
  void clear();
  /// Memory of all ranks that steps which replicate access; nullptr: not accessed.
  struct Reached {
    const PeerViews *params = nullptr;
    const PeerViews *states = nullptr;
    const PeerViews *grads = nullptr;  ///< contributions to gradients
  };
  /// Finds the addresses of pieces in that memory. From now on this rank updates only its cuts in
  /// steps that replicate.
  void reach(std::span<const Format> formats, const Reached &reached, int64_t ranks, int64_t self);
  /// Sets states to their values before the first step.
  Status begin_states(const MemorySource &source) const;
  /// Prepares the kernels. Call it once all addresses are known.
  Status prepare();
  /// Bytes of workspace for updates of all parameters, or of this rank's cuts.
  int64_t workspace_nbytes(std::span<const Format> formats, bool all) const { return workspaces(formats, all).nbytes(); }
  /// Returns all pieces with their current hyper-parameters.
  std::span<const UpdateJob> all_jobs();

  /// Updates all pieces. A collective over `group` if an algorithm needs norms of whole tensors.
  Task run(Group &group, StepScalars step);

 private:
  struct UpdateSegment {
    /// The first parameter of the segment; the only one if each tensor has its own segment.
    int64_t param;
    int64_t set;
    kernels::UpdateSegment slots;
    kernels::TouchedRows rows = {};               ///< without marks unless rows may stay untouched
    std::vector<const void *> sources = {};       ///< contributions of all ranks, by rank
    std::vector<kernels::Replica> replicas = {};  ///< copies on the other ranks
  };
  using Pieces = std::vector<UpdateSegment>;

  Pieces cut(std::span<const Format> formats, bool all) const;
  void add_bucket(int64_t index, const Format &format, bool all, Pieces &pieces) const;
  static void add_peers(UpdateSegment &piece, const Reached &reached, int64_t ranks, int64_t self);
  UpdateSegment piece_of(int64_t index, const Format &format, int64_t param, Range range) const;
  kernels::UpdateSegment slots_of(int64_t index, const Format &format, Range range) const;
  kernels::UpdateSegment at_work(const UpdateSegment &piece, const StepScalars &step) const;
  kernels::UpdateScalars scalars_of(const UpdateSegment &piece, const StepScalars &step) const;
  bool skips(const UpdateSegment &piece, const StepScalars &step) const;
  const kernels::Algorithm &algorithm_of(const UpdateSegment &piece) const { return *sets_[static_cast<size_t>(piece.set)].algorithm(); }
  /// True if this rank updates only its cuts in this step, although it keeps everything.
  bool takes_cuts(const StepScalars &step) const { return step.replicates && cuts_.has_value(); }
  void list_jobs(const StepScalars &step);

  /// @name Updates that need whole tensors (shard_updater_whole.cpp)
  /// @{
  struct Workspaces {
    int64_t count = 0;
    int64_t elements = 0;  ///< elements of each workspace
    int64_t nbytes() const { return count * elements * static_cast<int64_t>(sizeof(float)); }
  };
  Workspaces workspaces(std::span<const Format> formats, bool all) const;
  Status prepare_whole(std::span<const Format> formats, const MemorySource &source);
  Task add_norms(Group &group, bool over_ranks);
  int64_t *norms_at(int64_t param) const;
  void place_matrix(UpdateJob &job, int64_t param) const;
  /// @}

  const Plan &plan_;
  const Settings &settings_;
  const SlotMemory &slots_;
  const Params &params_;
  const GivenRows &rows_;
  Kernels &kernels_;
  const std::vector<HyperSet> &sets_;
  const MomentFreeze &freeze_;
  /// By parameter, if tensors may have no gradient in a step.
  const int64_t *update_counts_ = nullptr;
  Pieces pieces_;
  bool all_ = false;  ///< pieces_ are all parameters
  /// This rank's cuts, for steps that replicate, if pieces_ are all parameters.
  std::optional<Pieces> cuts_;
  std::vector<UpdateJob> jobs_;  ///< all pieces of one step
  bool streams_ = false;         ///< parameters do not fit in caches until they are read
  /// By parameter: its index among those whose updates need norms, or -1.
  std::vector<int64_t> norm_index_;
  int64_t norm_count_ = 0;
  Arena norms_;  ///< kernels::kNormWords words for each such parameter
  Workspaces workspaces_;
  Arena workspace_memory_;
};

}  // namespace zero
