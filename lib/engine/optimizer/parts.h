/// @file OptimizerParts: everything that the calls of an optimizer work with, and where this rank
/// stands among the others. Each part knows the parts that it was given; the calls are in classes
/// of their own: sealing, values, parameters, gradients, steps.
#pragma once

#include "core/task.h"
#include "engine/compute/memory_domain.h"
#include "engine/compute/step_state.h"
#include "engine/config/loss_scale.h"
#include "engine/config/settings.h"
#include "engine/gradients/gradients.h"
#include "engine/integrity/verifier.h"
#include "engine/optimizer/call_guard.h"
#include "engine/optimizer/read_gate.h"
#include "engine/optimizer/registry.h"
#include "engine/optimizer/sharded_state.h"
#include "engine/optimizer/step_path.h"
#include "engine/parameters/first_values.h"
#include "engine/parameters/param_gatherer.h"
#include "engine/ranks/optimizer_groups.h"
#include "engine/ranks/peer_views.h"
#include "engine/replicas/replica_run.h"
#include "engine/replicas/replicas.h"
#include "engine/stats/trace.h"
#include "engine/update/shard_updater.h"
#include "group/group.h"

#include <cstdint>
#include <memory>

namespace zero {

/// The arguments from which an optimizer is made.
struct OptimizerOrigin {
  std::shared_ptr<Group> group;
  Settings settings;
  HyperSet hyper;
  LossScale loss_scale;
  std::unique_ptr<MemoryDomain> memory;
};

/// Arenas in the memory of all ranks, as far as this rank reaches them.
struct PeerArenas {
  PeerViews grads;
  PeerViews params;
  PeerViews block_params;   ///< those of the ranks of a block (OptimizerGroups::holders())
  PeerViews copied_params;  ///< those of the ranks that hold the same cuts
  PeerViews states;         ///< used if states are shared
};

/// The step under way, or the newest.
struct CurrentStep {
  bool splits = false;    ///< it is reduce, apply and gather
  bool skips = false;     ///< the result of the vote; false if the device decides
  bool applied = false;   ///< it was applied
  bool empty = false;     ///< with delays: no gradients are there to be applied
  double loss_scale = 1;  ///< at its beginning, in the gradients that the caller gave before it
  int64_t unfilled_count = 0;
  int64_t stop_reason = 0;  ///< the largest of all ranks
};

struct OptimizerParts {
  explicit OptimizerParts(OptimizerOrigin origin);

  /// @name This rank among others
  /// @{
  /// Of one replica: over these everything is sharded.
  int64_t ranks() const { return settings.replicas.ranks; }
  /// This rank's number among them.
  int64_t rank() const { return group->rank() % ranks(); }
  /// No other rank has a part in this one's steps.
  bool alone() const { return ranks() == 1 && !settings.replicas.sum_gradients(); }
  /// True when parameters are kept as shards, small ones perhaps excepted.
  bool shards_params() const { return !alone() && settings.stage == 3; }
  bool buffers_params() const { return shards_params() || state.layout.any_coded(); }
  /// Whole parameters are in the memory of rank 0 only; each rank writes its cuts there.
  bool one_copy() const { return settings.gathers.one_copy && !alone(); }
  /// Gradients and states are whole on this rank, which is to update all of them but in steps that
  /// write into the memory of others.
  bool updates_all() const { return alone() || settings.stage == 0; }
  /// In stage 0, where ranks reach one another's memory. Then a step updates this rank's cuts and
  /// writes all that it updates into the memory of all, which is less than an update of everything
  /// on each.
  bool shares_states() const;
  Sharding sharding() const { return {settings.stage, alone(), one_copy() && rank() > 0, shares_states()}; }
  /// @}

  MemorySource host_source() { return {&settings.memory.hook, &memory->accounting, group->transport().capabilities().within_process}; }
  /// The source of memory for parameters, gradients and states.
  MemorySource memory_source() { return memory->source(host_source()); }

  /// The body comes after what `stream` was given before, and what the stream is given next comes
  /// after the body.
  Task in_order(Task body, void *stream) const;
  /// Checks that a call may be captured: captured work runs later, on the device alone.
  Status check_captured(void *stream, const char *what, bool *out_captured = nullptr) const;
  /// Before the first byte that is kept changes, on this rank or on others.
  Task await_readers();
  /// Parameters that were written since the last begin were taken over by another.
  Status check_taken_over() const;

  /// @name The run
  /// @{
  int64_t call_count() const { return run.known().applied_count + run.known().skipped_count; }
  /// While a task is under way the host knows what it knew before.
  Status known_run() const { return guard.busy() ? Status() : run.learn(); }
  /// From now on memory has the counts that the caller has set, and so have checksums taken before.
  Status tell_update_counts();
  /// Captured steps that run from now on compute with the scalars and counts as they are now.
  Status tell_run();
  /// Before a step's first gradient.
  void plan_next_step();
  /// Before gradients with this loss scale are reduced.
  void tell_terms(double scale);
  /// A hash of the values that must be the same on all ranks. `with_run`: counts and the loss scale
  /// too.
  uint64_t hyper_hash(bool with_run) const;
  /// @}

  const std::shared_ptr<Group> group;
  const Settings settings;
  const std::unique_ptr<MemoryDomain> memory;
  Registry registry;
  LossScale loss_scale;
  Trace trace;
  ShardedState state;
  StepState run;
  Verifier verifier;
  Gradients gradients;
  ShardUpdater updates;
  PeerArenas peers;
  OptimizerGroups groups;
  ParamGatherer gathers;
  FirstValues first_values;
  Replicas replicas;
  CallGuard guard;
  const std::shared_ptr<OperationQueue> queue = std::make_shared<OperationQueue>();
  std::shared_ptr<void> saved_run;  ///< the state of the checkpoints of this optimizer
  std::shared_ptr<ReadGate> gate;   ///< closed while a save reads what is kept; nullptr: none does
  int64_t acquired_count = 0;       ///< acquires of parameters without release
  /// If the device decides, `run` holds only the state known so far.
  StepPaths paths;
  CurrentStep step;
  ReplicaRun replica_run;
};

}  // namespace zero
