/// @file ShardUpdater: the pieces of parameters that this rank updates, and the update of all of them. Knows kernels and slots; never gradients'
/// ways or votes.
#pragma once

#include "core/task.h"
#include "engine/compute/step_kernels.h"
#include "engine/config/hyper_set.h"
#include "engine/config/settings.h"
#include "engine/layout/params.h"
#include "engine/layout/plan.h"
#include "engine/ranks/peer_views.h"
#include "engine/storage/slot_memory.h"
#include "group/group.h"
#include "kernels/update.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace zero {

/// What a step tells its update.
struct StepScalars {
  int64_t step;                      ///< of the run, from 1
  float grad_factor;                 ///< unscales and clips
  std::span<const int64_t> touched;  ///< by parameter: ranks that filled it; empty: all count as filled
  bool sums = false;                 ///< gradients are summed from the contributions of all ranks
  bool replicates = false;           ///< what is updated goes to all ranks that keep it
};

class ShardUpdater {
 public:
  ShardUpdater(const Plan &plan, const Settings &settings, const SlotMemory &slots, const Params &params, Kernels &kernels,
          const std::vector<HyperSet> &sets)
      : plan_(plan), settings_(settings), slots_(slots), params_(params), kernels_(kernels), sets_(sets) {}

  /// `all`: this rank updates everything, not only its cuts, but in steps that replicate. `formats` are those of the plan's spaces;
  /// `source` that of slots.
  Status build(std::span<const Format> formats, bool all, const MemorySource &source);
  void clear();
  /// What steps that replicate reach in the memory of all ranks; nullptr: not.
  struct Reached {
    const PeerViews *params = nullptr;
    const PeerViews *states = nullptr;
    const PeerViews *grads = nullptr;  ///< contributions
  };
  /// Finds the places of pieces there. This rank then updates its cuts in steps that replicate.
  void reach(std::span<const Format> formats, const Reached &reached, int64_t ranks, int64_t self);
  /// Gives states the values they have before the first step.
  Status begin_states(const MemorySource &source) const;
  /// Once all places are known.
  Status prepare();
  /// What updates of everything, or of this rank's cuts, need beside the slots.
  int64_t workspace_nbytes(std::span<const Format> formats, bool all) const { return workspaces(formats, all).nbytes(); }
  /// Every piece with the hyper-parameters that it has now.
  std::span<const UpdateJob> all_jobs();

  /// Updates all pieces. A collective over `group` where an algorithm needs norms of whole tensors.
  Task run(Group &group, StepScalars step);

 private:
  struct UpdateSegment {
    int64_t param;  ///< the first that lies in it, and the only one where tensors are told apart
    int64_t set;
    kernels::UpdateSegment slots;
    std::vector<const void *> sources = {};       ///< contributions of all ranks, by rank
    std::vector<kernels::Replica> replicas = {};  ///< on the other ranks
  };
  using Pieces = std::vector<UpdateSegment>;

  Pieces cut(std::span<const Format> formats, bool all) const;
  void add_bucket(int64_t index, const Format &format, bool all, Pieces &pieces) const;
  static void add_peers(UpdateSegment &piece, const Reached &reached, int64_t ranks, int64_t self);
  kernels::UpdateSegment slots_of(int64_t index, const Format &format, Range range) const;
  kernels::UpdateSegment at_work(const UpdateSegment &piece, const StepScalars &step) const;
  kernels::UpdateScalars scalars_of(const UpdateSegment &piece, const StepScalars &step) const;
  bool skips(const UpdateSegment &piece, const StepScalars &step) const;
  const kernels::Algorithm &algorithm_of(const UpdateSegment &piece) const { return *sets_[static_cast<size_t>(piece.set)].algorithm(); }
  /// Whether this rank updates only its cuts in this step, although it keeps everything.
  bool takes_cuts(const StepScalars &step) const { return step.replicates && cuts_.has_value(); }
  void list_jobs(const StepScalars &step);

  /// @name Updates that need whole tensors (shard_updater_whole.cpp)
  /// @{
  struct Workspaces {
    int64_t count = 0;
    int64_t elements = 0;  ///< of each
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
  Kernels &kernels_;
  const std::vector<HyperSet> &sets_;
  const int64_t *update_counts_ = nullptr;  ///< by parameter, where tensors may stay untouched
  Pieces pieces_;
  bool all_ = false;                 ///< they are everything
  std::optional<Pieces> cuts_;       ///< this rank's, of steps that replicate, where pieces_ are everything
  std::vector<UpdateJob> jobs_;      ///< of one step: all its pieces
  bool streams_ = false;             ///< parameters are larger than what stays in caches until they are read
  std::vector<int64_t> norm_index_;  ///< by parameter: its place among those whose updates need norms, or -1
  int64_t norm_count_ = 0;
  Arena norms_;  ///< kernels::kNormWords words of each
  Workspaces workspaces_;
  Arena workspace_memory_;
};

}  // namespace zero
