/// @file MemoryNeed: the memory that a plan needs in each stage, and a check against the memory of
/// the ranks' hosts. Knows no allocation.
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

/// Inputs beside the plan.
struct NeedOptions {
  bool alone;                      ///< a world of one
  bool adopts;                     ///< parameters of stages 1 and 2 are in another rank's memory
  int64_t pool_limit;              ///< most bytes of gradient buckets; 0 = no limit
  int64_t ahead_nbytes;            ///< most bytes of parameters that stage 3 gathers ahead
  int64_t workspace_nbytes;        ///< workspace for updates of this rank's own parts
  int64_t whole_workspace_nbytes;  ///< workspace for updates of all parameters, as in stage 0
};

MemoryNeed memory_need(const Plan &plan, std::span<const Format> formats, const NeedOptions &options);

/// Compares the total need of the ranks on each host with limit_nbytes. If that is 0, compares it
/// with the memory that the system offers: on the host, and in the ranks' control groups
/// (containers, batch jobs). Returns ZERO_E_OUT_OF_MEMORY on all ranks if one host or control group
/// has too little. Call it before anything is allocated. `mine` is this rank's error, if any.
Task check_memory(Group &group, Status mine, MemoryNeed need, int64_t stage, int64_t limit_nbytes, MemoryOffer offer);

}  // namespace zero
