/// @file MemoryNeed: what a plan would take in each stage, and the refusal of plans that the ranks' hosts have no room for. Knows no
/// allocation.
#pragma once

#include "core/machine.h"
#include "core/task.h"
#include "engine/layout/format.h"
#include "engine/layout/plan.h"
#include "group/group.h"

#include <array>
#include <cstdint>
#include <span>

namespace zero {

/// Bytes on this rank, by stage.
using MemoryNeed = std::array<int64_t, 4>;

/// What a plan does not say.
struct NeedOptions {
  bool alone;                      ///< a world of one
  bool adopts;                     ///< parameters of stages 1 and 2 lie in another rank's memory
  int64_t pool_limit;              ///< of gradient buckets; 0 = none
  int64_t ahead_nbytes;            ///< most bytes of parameters that stage 3 gathers ahead
  int64_t workspace_nbytes;        ///< of updates of what this rank owns
  int64_t whole_workspace_nbytes;  ///< of updates of everything, as in stage 0
};

MemoryNeed memory_need(const Plan &plan, std::span<const Format> formats, const NeedOptions &options);

/// Compares what the ranks of each host need together with limit_nbytes, or where that is 0 with what the system offers them: on the host,
/// and in their control groups (containers, batch jobs). Returns ZERO_E_OUT_OF_MEMORY on every rank when one of them has too little, before
/// anything was allocated. `mine` is this rank's error, if any.
Task check_memory(Group &group, Status mine, MemoryNeed need, int64_t stage, int64_t limit_nbytes, MemoryOffer offer);

}  // namespace zero
