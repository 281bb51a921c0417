/// @file Collectives: algorithms over rounds, one per file. Data takes the shortest way: every element goes straight from the rank that has
/// it to the rank that needs it, and sums are made by the owner of the result from all contributions in one pass.
/// No algorithm writes user memory before its first round, in which fingerprints are compared.
/// Arguments are checked by the caller; memory given here stays borrowed until the task has ended.
#pragma once

#include "core/partition.h"
#include "group/group.h"

#include <memory>
#include <span>
#include <vector>

namespace zero {

Task barrier(Group &group);
/// Lasts for `meanwhile`, which waits for the same ranks in other groups, and ends as a barrier. A rank that calls something else in this
/// group meanwhile, or gives another `what`, learns so at once; without it both would wait for as long as they may.
Task around(Group &group, Task meanwhile, uint64_t what);
Task broadcast(Group &group, void *data, int64_t count, DType dtype, int64_t root);
Task all_reduce(Group &group, const void *send, void *recv, int64_t count, DType dtype, ReduceOp op);
Task reduce(Group &group, const void *send, void *recv, int64_t count, DType dtype, ReduceOp op, int64_t root);
Task gather(Group &group, const void *send, void *recv, int64_t total, DType dtype, int64_t root);
Task scatter(Group &group, const void *send, void *recv, int64_t total, DType dtype, int64_t root);
Task all_to_all(Group &group, const void *send, void *recv, int64_t count, DType dtype);

/// cuts[r] = the part of the whole that rank r owns. The vector must outlive the task and be the same on all ranks.
using Cuts = std::vector<Range, CachedAllocator<Range>>;
Cuts even_cuts(int64_t count, int64_t size);

/// What reduce_scatter does beyond its operation.
struct ReduceScatter {
  const void *whole;  ///< this rank's contribution, addressed by the elements of cuts
  void *out;          ///< this rank's cut; may be its own part of whole
  const Cuts *cuts;
  DType dtype;
  ReduceOp op;
  double divisor = 1;          ///< with sum; must be the same on all ranks
  bool *out_finite = nullptr;  ///< cleared when an output is not finite; may be nullptr
  DType out_dtype = DType{};   ///< f32: fp32 sums of 16-bit contributions are not rounded; otherwise dtype
  uint64_t what = 0;           ///< as in all_gather
  /// By rank, of f16 and bf16 contributions to a sum: what they are multiplied by in fp32. nullptr: 1. The same on all ranks; must outlive
  /// the task.
  const float *weights = nullptr;
};
Task reduce_scatter(Group &group, ReduceScatter call);

/// whole = the ranks' cuts, each from its owner's `mine` (which may be its own part of whole). `what`: a number that must be the same on
/// all ranks, where several things have these cuts.
Task all_gather(Group &group, const void *mine, void *whole, const Cuts &cuts, DType dtype, uint64_t what = 0);

/// Pieces of any size between all ranks: offers[r] goes to rank r, receives[r] comes from rank r (own entries are copied). Both sides must
/// know the sizes. The spans must outlive the task. `what` as in all_gather.
struct Receive {
  void *data = nullptr;
  int64_t nbytes = 0;
};
Task exchange(Group &group, std::span<const Offer> offers, std::span<const Receive> receives, uint64_t what = 0);

/// Splits the group by color and key; out stays nullptr for a negative color. The new group's collectives work on memory that `reducer`
/// reaches; nullptr: that of the group. Another needs a transport that copies offers; where the transport underneath carries words alone,
/// the group's own stands in for one of the host. Rounds of the new group carry at most `most_round_nbytes`, the same on all ranks.
Task split(Group &group, int64_t color, int64_t key, std::shared_ptr<Group> *out, std::shared_ptr<const Reducer> reducer = nullptr,
           int64_t most_round_nbytes = INT64_MAX);

}  // namespace zero
