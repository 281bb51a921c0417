/// @file Verifier: checks that memory still holds the values that libzero wrote. Compares shards
/// with checksums taken one step before, and replicas with each other. Knows slots and ranks; never
/// why memory changed, and no cure.
#pragma once

#include "core/task.h"
#include "engine/compute/step_kernels.h"
#include "engine/compute/step_state.h"
#include "engine/integrity/checksums.h"
#include "engine/layout/params.h"
#include "engine/ranks/optimizer_groups.h"
#include "engine/storage/tensor_slots.h"
#include "group/group.h"

#include <zero/optimizer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace zero {

/// The first difference; the fields are those of zero_verify_result.
struct Finding {
  int64_t found = ZERO_FINDING_NONE;
  int64_t chunk_count = 0;
  int64_t rank = -1;
  int64_t other_rank = -1;
  int64_t param = -1;
  int32_t slot = 0;
  int64_t offset = 0;
  int64_t count = 0;
};

class Verifier {
 public:
  /// All arguments must outlive the object.
  Verifier(const Params &params, const Layout &layout, const TensorSlots &tensors, const Kernels &kernels, const StepState &run)
      : params_(params), layout_(layout), tensors_(tensors), kernels_(kernels), run_(run) {}

  /// Call once slots have their addresses. Every `every`-th step compares shards; 0: none does.
  /// `one_copy`: all ranks share one copy of the parameters, which then are no replicas.
  Status open(const OptimizerGroups &groups, int64_t every, bool one_copy);
  void close();

  /// @name Shards. Nothing happens between steps that compare.
  /// @{
  /// Call after all of this rank's slots were written. Takes checksums if the next step compares
  /// shards.
  Status move_window();
  /// Call after this rank's part of a slot was written, for one parameter or for all.
  Status note_write(int64_t id, int32_t slot);
  Status note_writes(int32_t slot);
  /// Compares this rank's shards with their checksums, if those were taken.
  Status find_change(Finding *out);
  /// Bytes that find_change() would compare now.
  int64_t shard_nbytes() const { return window_open_ ? shards_.nbytes() : 0; }
  /// Returns ZERO_E_CORRUPT for a finding that share() has combined.
  Status corrupt(const Finding &finding) const;
  /// @}

  /// Replaces each rank's finding by the first one of this replica's ranks, with the chunks of all
  /// of them. The result is the same on all ranks.
  Task share(Finding &finding) { return share_in(*group_, finding); }
  /// Compares the slots that every rank of this replica keeps in full, and the cuts of sharded
  /// parameters that several keep. With `alike`, also compares the slots that are equal in all
  /// replicas. The finding is the same on all ranks. *out_nbytes:
  /// bytes that were compared.
  Task compare_replicas(bool alike, Finding &finding, int64_t *out_nbytes);

 private:
  /// Selects slots to list. `whole`: those that every rank of a replica keeps in full.
  enum class Which { all, whole, alike_together };
  /// The ranks to compare: rank r of the group is rank first + r * stride of the optimizer.
  struct Compared {
    Group &group;
    int64_t first;
    int64_t stride;
  };

  Compared within() const { return {*group_, across_ != nullptr ? across_->rank() * group_->size() : 0, 1}; }
  Task share_in(Group &group, Finding &finding) const;
  Task compare_copies(Finding &finding, int64_t *out_nbytes) const;
  Task compare(Compared ranks, const Checksums &alike, Finding &finding) const;
  void list_updated(Which which, Checksums &out) const;
  void list_replicas(Checksums &out) const;
  void list_copies(Checksums &out) const;
  void list_slots(int64_t id, Range range, Which which, Checksums &out) const;
  void narrow_down(const Compared &ranks, const SlotPart &chunk, std::span<const uint64_t> hashes, const std::vector<std::byte> &pieces,
                   Finding &finding) const;

  const Params &params_;
  const Layout &layout_;
  const TensorSlots &tensors_;
  const Kernels &kernels_;
  const StepState &run_;
  std::shared_ptr<Group> group_;
  std::shared_ptr<Group> holders_;  ///< those that hold all sharded parameters between them
  std::shared_ptr<Group> copies_;   ///< those that hold the same cuts of them; may be nullptr
  std::shared_ptr<Group> across_;   ///< those with the same shard in all replicas; may be nullptr
  int64_t every_ = 0;
  bool one_copy_ = false;
  Checksums shards_;          ///< for the slots that this rank updates, if every_ is set
  bool window_open_ = false;  ///< shards_ match the memory as libzero wrote it
};

}  // namespace zero
