/// @file SavedState: an optimizer as checkpoints see it: what it keeps of each tensor, where that lies on this rank, its hyper-parameters and
/// scalars, and what becomes of it when a load writes them. Knows the optimizer; never files, nor how ranks agree on a save.
#pragma once

#include "checkpoint/description.h"
#include "core/task.h"
#include "engine/optimizer/optimizer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zero {

/// The name of a slot in files, and its number; nullptr and 0 for none.
const char *disk_slot_name(int32_t number);
int32_t slot_of_disk_name(const std::string &name);

/// "param" and its scales, which lie whole in model files where there are such.
constexpr bool is_param_slot(int32_t number) { return number == ZERO_SLOT_PARAM || number == ZERO_SLOT_PARAM_SCALE; }

/// A run's scalars, as a load finds them in a file.
struct SavedScalars {
  kernels::StepState run;
  bool dynamic_loss_scale = false;
};

class SavedState {
 public:
  /// Facts of sections and tensors in a save's description.
  static constexpr const char *kStage = "stage";
  static constexpr const char *kAlgorithm = "algorithm";
  static constexpr const char *kSetCount = "sets";
  static constexpr const char *kDtype = "dtype";
  static constexpr const char *kSet = "set";
  static constexpr const char *kFrozen = "frozen";

  explicit SavedState(std::shared_ptr<Optimizer> optimizer) : optimizer_(std::move(optimizer)) {}

  Optimizer &optimizer() const { return *optimizer_; }
  const Params &params() const { return optimizer_->parts_.registry.params; }
  const ModuleBuffers &module_buffers() const { return optimizer_->parts_.registry.module_buffers; }
  const std::vector<HyperSet> &sets() const { return optimizer_->parts_.registry.sets; }
  /// Those that are saved.
  std::vector<SlotFormat> slots_of(int64_t id) const;
  const Format &format_of(int64_t id) const { return optimizer_->parts_.state.layout.format_of(id); }
  const char *algorithm_name() const { return optimizer_->parts_.settings.algorithm_name(); }
  /// Of the first replica.
  int64_t applied_count() const { return run_of(0).applied_count; }

  /// @name States of the algorithm, which differ between replicas that make steps of their own: each has a set
  /// @{
  int64_t state_set_count() const { return optimizer_->parts_.settings.replicas.part() ? optimizer_->parts_.settings.replicas.count : 1; }
  /// The set of this rank's replica.
  int64_t state_set() const { return state_set_count() > 1 ? optimizer_->parts_.group->rank() / optimizer_->parts_.ranks() : 0; }
  static bool is_of_set(int32_t slot);
  /// Of a section with a further set, from 1 on.
  static constexpr const char *kSetKind = "replica";
  static std::string set_prefix(const std::string &prefix, int64_t set) { return prefix + "replica" + std::to_string(set) + "."; }
  void describe_set(const std::string &prefix, int64_t set, checkpoint::Section *out) const;
  /// Counts of steps in the replica of each set, after a load.
  void store_counts(const std::vector<SavedScalars> &sets) const;
  /// @}
  Range own(int64_t id) const { return optimizer_->parts_.state.tensors.own(id); }

  /// Of the short form: what goes on from one save to the next.
  std::shared_ptr<void> &run() const { return optimizer_->parts_.saved_run; }

  /// While it lives, calls that are no tasks find the optimizer busy.
  class Busy {
   public:
    explicit Busy(Optimizer &optimizer) : counted_(optimizer.parts_.guard.count()) {}

   private:
    CallGuard::Counted counted_;
  };
  /// Ends what a save must not meet: gathers behind the last step, counts that memory is not told of yet. Waits for devices.
  Task settle() const;
  /// `work` comes after what `stream` was given before, and before what it is given next.
  Task in_order(Task work, void *stream) const { return optimizer_->parts_.in_order(std::move(work), stream); }
  /// Until the gate is open, a save reads what the optimizer keeps.
  void set_gate(std::shared_ptr<ReadGate> gate) const { optimizer_->parts_.gate = std::move(gate); }
  bool on_device() const { return optimizer_->parts_.settings.on_device; }
  Status check_save(const char *call) const;
  Status check_load(const char *call) const;

  /// @name Saving
  /// @{
  /// All but prefix and files. `whole_params`: parameters lie in model files.
  void describe(bool whole_params, checkpoint::Section *out) const;
  /// Whether this rank holds all of the slot.
  bool holds_whole(int64_t id, int32_t slot) const;
  /// Copies entries of a slot, from `first` on, which this rank holds.
  Status copy(int64_t id, int32_t slot, int64_t first, std::span<std::byte> out) const;
  /// @}

  /// @name Loading
  /// @{
  /// Writes entries of a slot of this rank's own cut, from `first` on.
  Status store(int64_t id, int32_t slot, int64_t first, std::span<const std::byte> data) const;
  /// Values of elements of this rank's own cut of a tensor, from `first` on: the parameter and its master become them. `first` is the
  /// beginning of the cut or of a line, and whole lines are given, up to the end of the cut.
  Status store_values(int64_t id, int64_t first, std::span<const float> values) const;
  /// Likewise: elements of a slot become the values, rounded, with its scales.
  Status store_state(int64_t id, int32_t slot, int64_t first, std::span<const float> values) const;
  /// Sums up the scalars that a section's facts tell.
  static Status read_scalars(const checkpoint::Facts &facts, SavedScalars *out);
  /// Each hyper-parameter of a set that the facts tell.
  Status store_hyper(int64_t set, const checkpoint::Facts &facts) const;
  /// Rate and momentum of the outer step, where there is one.
  Status store_outer(const checkpoint::Facts &facts) const;
  /// From the first byte that a load writes until finish_load, the optimizer has no values.
  void begin_load() const;
  /// What every rank holds follows the ranks that own it; the optimizer runs. Without scalars they stay. A collective. `counts_set`: update
  /// counts were written; otherwise they become the step count.
  Task finish_load(const SavedScalars *scalars, bool counts_set) const;
  /// @}

 private:
  Status find_place(int64_t id, int32_t slot, const Slot **out_slot) const;
  std::byte *entry(int64_t id, const Slot &slot, int64_t first) const;
  Task take_loaded(const SavedScalars *scalars, bool counts_set) const;
  kernels::StepState run_of(int64_t set) const;
  void describe_cuts(checkpoint::Section *out) const;
  void describe_tensors(bool whole_params, bool of_set, checkpoint::Section *out) const;
  void describe_counts(int64_t set, checkpoint::Facts *out) const;
  void describe_facts(checkpoint::Facts *out) const;

  std::shared_ptr<Optimizer> optimizer_;
};

}  // namespace zero
