/// @file ShardedState: this rank's share of the model. It holds the layout, the memory of slots,
/// 8-bit parameters, counts of updates, moments that codes freeze, the rows of a step, and the
/// views that callers get of their own part. Knows addresses and owners; never the order of calls.
#pragma once

#include "core/task.h"
#include "engine/compute/step_kernels.h"
#include "engine/gradients/moment_freeze.h"
#include "engine/layout/layout.h"
#include "engine/optimizer/registry.h"
#include "engine/parameters/quantized_params.h"
#include "engine/stats/results.h"
#include "engine/storage/given_rows.h"
#include "engine/storage/slot_memory.h"
#include "engine/storage/tensor_slots.h"
#include "engine/storage/update_counts.h"
#include "group/group.h"

#include <cstdint>
#include <vector>

namespace zero {

struct ShardedState {
  /// `all`: this rank updates everything, not only its cuts. All arguments must outlive the object.
  ShardedState(const Registry &registry, Kernels &kernels, bool all)
      : layout(registry.params, registry.settings, registry.sets),
        plan(layout.plan()),
        tensors(registry.params, layout, slots, all),
        quantized_params(registry.params, layout, tensors, kernels),
        update_counts(kernels),
        moment_freeze(registry.settings.replicas, plan, registry.params, registry.sets, slots) {}

  /// A state that every rank keeps follows its owners. A collective over `group`.
  Task follow_owners(Group &group, const Slot &slot, int64_t id) const;
  /// Lists the views: of this rank's cuts, or `all`: of everything.
  void list_views(const Params &params, bool all);

  Layout layout;
  const Plan &plan;  ///< part of the layout
  SlotMemory slots;
  TensorSlots tensors;
  QuantizedParams quantized_params;
  UpdateCounts update_counts;
  MomentFreeze moment_freeze;
  GivenRows given_rows;
  std::vector<View> views;
};

}  // namespace zero
