/// @file Collectives: algorithms over rounds, one per file. Each element is sent directly from the
/// rank that has it to the rank that needs it. The owner of a result sums all contributions in one
/// pass.
/// No algorithm writes user memory before its first round, in which fingerprints are compared.
/// The caller has checked the arguments. Memory that is passed here is borrowed until the task has
/// ended.
#pragma once

#include "core/partition.h"
#include "group/group.h"

#include <memory>
#include <span>
#include <vector>

namespace zero {

Task barrier(Group &group);
/// Runs `meanwhile`, which waits for the same ranks in other groups, and ends as a barrier. A rank
/// that makes another call in this group meanwhile, or passes another `what`, gets an error at
/// once. Without this, both ranks would wait until their deadline.
Task around(Group &group, Task meanwhile, uint64_t what);
Task broadcast(Group &group, void *data, int64_t count, DType dtype, int64_t root);
Task all_reduce(Group &group, const void *send, void *recv, int64_t count, DType dtype, ReduceOp op);
Task reduce(Group &group, const void *send, void *recv, int64_t count, DType dtype, ReduceOp op, int64_t root);
Task gather(Group &group, const void *send, void *recv, int64_t total, DType dtype, int64_t root);
Task scatter(Group &group, const void *send, void *recv, int64_t total, DType dtype, int64_t root);
Task all_to_all(Group &group, const void *send, void *recv, int64_t count, DType dtype);

/// cuts[r] = the part of the whole that rank r owns. The vector must outlive the task and be the
/// same on all ranks.
using Cuts = std::vector<Range, CachedAllocator<Range>>;
Cuts even_cuts(int64_t count, int64_t size);

/// Arguments of reduce_scatter.
struct ReduceScatter {
  const void *whole;  ///< this rank's contribution, indexed by the elements of cuts
  void *out;          ///< this rank's cut; may be its own part of whole
  const Cuts *cuts;
  DType dtype;
  ReduceOp op;
  double divisor = 1;          ///< with sum; must be the same on all ranks
  bool *out_finite = nullptr;  ///< cleared when an output is not finite; may be nullptr
  /// `f32`: fp32 sums of 16-bit contributions are not rounded; otherwise dtype.
  DType out_dtype = DType{};
  uint64_t what = 0;  ///< as in all_gather
  /// By rank: factors in fp32 for f16 and bf16 contributions to a sum; nullptr: 1. They must be the
  /// same on all ranks and outlive the task.
  const float *weights = nullptr;
};
Task reduce_scatter(Group &group, ReduceScatter call);

/// whole = the cuts of all ranks, each from its owner's `mine` (which may be its own part of
/// whole). `what`: a number that must be the same on all ranks; it separates arrays with the same
/// cuts.
Task all_gather(Group &group, const void *mine, void *whole, const Cuts &cuts, DType dtype, uint64_t what = 0);

/// Exchanges pieces of any size between all ranks: offers[r] is sent to rank r, receives[r] comes
/// from rank r (a rank's own piece is copied). Both sides must know the sizes. The spans must
/// outlive the task. `what` as in all_gather.
struct Receive {
  void *data = nullptr;
  int64_t nbytes = 0;
};
Task exchange(Group &group, std::span<const Offer> offers, std::span<const Receive> receives, uint64_t what = 0);

/// Splits the group by color and key; out stays nullptr for a negative color. `reducer` selects the
/// memory of the new group's collectives; nullptr: that of the group. Another reducer requires a
/// transport that copies offers. If the transport underneath carries only words, the group's own
/// reducer replaces one for host memory. Rounds of the new group carry at most `most_round_nbytes`,
/// the same on all ranks.
Task split(Group &group, int64_t color, int64_t key, std::shared_ptr<Group> *out, std::shared_ptr<const Reducer> reducer = nullptr,
           int64_t most_round_nbytes = INT64_MAX);

}  // namespace zero
