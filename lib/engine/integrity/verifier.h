/// @file Verifier: whether memory still holds what libzero wrote. Shards are compared with checksums taken one step before, replicas with
/// each other. Knows slots and ranks; never why memory changed, and no cure.
#pragma once

#include "core/task.h"
#include "engine/compute/step_kernels.h"
#include "engine/compute/step_state.h"
#include "engine/integrity/checksums.h"
#include "engine/layout/params.h"
#include "engine/storage/tensor_slots.h"
#include "group/group.h"

#include <zero/optimizer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace zero {

/// What is found first; the fields are those of zero_verify_result.
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
  /// What is given must outlive it.
  Verifier(const Params &params, const Layout &layout, const TensorSlots &tensors, const Kernels &kernels, const StepState &run)
      : params_(params), layout_(layout), tensors_(tensors), kernels_(kernels), run_(run) {}

  /// Once slots have their addresses. `every`: how many steps lie between two that compare shards; 0: none does. `one_copy`: of parameters,
  /// which then are no replicas.
  /// `across`: the ranks with the same shard in all replicas, or nullptr.
  Status open(std::shared_ptr<Group> group, std::shared_ptr<Group> across, int64_t every, bool one_copy);
  void close();

  /// @name Shards. Between steps that compare nothing happens.
  /// @{
  /// At the end of whatever wrote all of this rank's slots: takes checksums when the step that comes next is one that compares.
  Status move_window();
  /// The caller wrote this rank's part of a slot, of one parameter or of all.
  Status note_write(int64_t id, int32_t slot);
  Status note_writes(int32_t slot);
  /// Compares this rank's shards with their checksums, where they were taken.
  Status find_change(Finding *out);
  /// Bytes that find_change() would compare now.
  int64_t shard_nbytes() const { return window_open_ ? shards_.nbytes() : 0; }
  /// ZERO_E_CORRUPT with what share() has made of findings.
  Status corrupt(const Finding &finding) const;
  /// @}

  /// Each rank's own finding becomes the first of all ranks' of this replica, the same on all of them, with the chunks of all.
  Task share(Finding &finding) { return share_in(*group_, finding); }
  /// Compares the slots that every rank of this replica keeps in full; where `alike`, also those that all replicas have alike. The finding
  /// is the same on all ranks. *out_nbytes: bytes that were compared.
  Task compare_replicas(bool alike, Finding &finding, int64_t *out_nbytes);

 private:
  /// Slots that are listed: of `whole`, those that every rank of a replica keeps in full.
  enum class Which { all, whole, alike_together };
  /// The ranks that are compared: rank r of the group is rank first + r * stride of the optimizer's.
  struct Compared {
    Group &group;
    int64_t first;
    int64_t stride;
  };

  Compared within() const { return {*group_, across_ != nullptr ? across_->rank() * group_->size() : 0, 1}; }
  Task share_in(Group &group, Finding &finding) const;
  Task compare(Compared ranks, const Checksums &alike, Finding &finding) const;
  void list_updated(Which which, Checksums &out) const;
  void list_replicas(Checksums &out) const;
  void list_slots(int64_t id, Range range, Which which, Checksums &out) const;
  void narrow_down(const Compared &ranks, const SlotPart &chunk, std::span<const uint64_t> hashes, const std::vector<std::byte> &pieces,
                   Finding &finding) const;

  const Params &params_;
  const Layout &layout_;
  const TensorSlots &tensors_;
  const Kernels &kernels_;
  const StepState &run_;
  std::shared_ptr<Group> group_;
  std::shared_ptr<Group> across_;
  int64_t every_ = 0;
  bool one_copy_ = false;
  Checksums shards_;          ///< of what this rank updates, where every_ is set
  bool window_open_ = false;  ///< shards_ are those of the memory as it should be
};

}  // namespace zero
