/// @file ReduceStrategy: one way from the contributions of a group's ranks to a bucket to their
/// sum: the collectives, the wire code, the state. Knows buckets; never when they are reduced, or
/// why.
#pragma once

#include "core/task.h"
#include "engine/gradients/carried_state.h"
#include "engine/storage/given_rows.h"
#include "engine/storage/slot_memory.h"
#include "group/collectives.h"
#include "memory/arena.h"

#include <cstddef>
#include <cstdint>

namespace zero {

class MomentFreeze;

/// One rank's part of a bucket's sum.
struct Contribution {
  std::byte *data = nullptr;  ///< may be changed
  RowMarks rows = {};         ///< the rows that data has, if the bucket is reduced by rows
};

/// ReduceScatter::what of sums that are added to those of other micro-steps: a rank that reduces
/// the step's only one must not meet them.
inline constexpr uint64_t kMicroSums = 1;

/// Told to strategies before the first gradient of a step.
struct StepTerms {
  bool across;  ///< sums are over the ranks of all replicas
  /// Values that other steps code are sent in full, with earlier losses.
  bool in_full;
  double loss_scale;                      ///< gradients are multiplied by it
  const MomentFreeze *carried = nullptr;  ///< first moments in coded values; nullptr: none
};

/// Used by one operation at a time.
class ReduceStrategy {
 public:
  virtual ~ReduceStrategy() = default;

  /// Bytes that open() takes.
  virtual int64_t workspace_nbytes() const { return 0; }
  virtual Status open(const MemorySource &) { return {}; }
  virtual void close() {}

  /// Does as `call` says, which lacks the contribution. Within a replica ranks give the whole
  /// bucket, and call.out becomes this rank's cut of the sum. Over replicas they give their cut in
  /// fp32, which is call.out itself if the result has that dtype, and all get the whole sum.
  virtual Task sum(Group &group, int64_t bucket, Contribution given, ReduceScatter call) = 0;
  /// Sends the sums of all ranks' cuts, which are in that slot, to all ranks. Strategies over
  /// replicas do nothing: every rank has these sums already.
  virtual Task gather(Group &, int64_t /*bucket*/, const SlotPlace &) { co_return Status(); }

  /// @name State from one step to the next
  /// @{
  virtual void begin_step(const StepTerms &) {}
  /// `applied`: the step's gradients were applied; otherwise they count as never given.
  virtual void end_step(bool /*applied*/) {}
  virtual void forget() {}
  /// The values of this kind that it carries; nullptr: none.
  virtual CarriedState *carried(Carried) { return nullptr; }
  /// Those of a tensor that this rank, one of this replica, has of a kind that is carried.
  virtual CarriedPart carried_of(Carried, int64_t /*id*/, int64_t /*replica*/) { return {}; }
  /// @}
};

/// The dtype that `call` stores.
inline DType result_dtype(const ReduceScatter &call) { return call.out_dtype == DType{} ? call.dtype : call.out_dtype; }

}  // namespace zero
