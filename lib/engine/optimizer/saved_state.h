/// @file SavedState: an optimizer as checkpoints see it: the slots of each tensor, their places on
/// this rank, hyper-parameters and scalars, and the effects of a load. Knows the optimizer; never
/// files, nor how ranks agree on a save.
#pragma once

#include "checkpoint/description.h"
#include "core/task.h"
#include "engine/gradients/carried_state.h"
#include "engine/optimizer/optimizer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zero {

/// The name of a slot in files, and its number; nullptr or 0 if there is none.
const char *disk_slot_name(int32_t number);
int32_t slot_of_disk_name(const std::string &name);

/// A fact that has every bit of a double, in any locale; and back: false if it is none.
std::string hex_float(double value);
bool read_hex_float(const std::string &text, double *out);

/// True for "param" and its scales, which are stored whole in model files if a save has such files.
constexpr bool is_param_slot(int32_t number) { return number == ZERO_SLOT_PARAM || number == ZERO_SLOT_PARAM_SCALE; }

/// A run's scalars, as a load reads them from a file.
struct SavedScalars {
  kernels::StepState run;
  bool dynamic_loss_scale = false;
  int64_t second_missed = 0;  ///< as in MomentFreeze
  /// The loss scale of gradients that wait for their step, and the sum of their weights; 0: none
  /// are loaded.
  double gradient_scale = 0;
  double gradient_weight = 0;
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
  static constexpr const char *kGradientScale = "gradient_loss_scale";
  static constexpr const char *kGradientWeight = "gradient_weight";

  explicit SavedState(std::shared_ptr<Optimizer> optimizer) : optimizer_(std::move(optimizer)) {}

  Optimizer &optimizer() const { return *optimizer_; }
  const Params &params() const { return optimizer_->parts_.registry.params; }
  const ModuleBuffers &module_buffers() const { return optimizer_->parts_.registry.module_buffers; }
  const std::vector<HyperSet> &sets() const { return optimizer_->parts_.registry.sets; }
  /// The slots that are saved.
  std::vector<SlotFormat> slots_of(int64_t id) const;
  const Format &format_of(int64_t id) const { return optimizer_->parts_.state.layout.format_of(id); }
  const char *algorithm_name() const { return optimizer_->parts_.settings.algorithm_name(); }
  /// Steps that the first replica has applied.
  int64_t applied_count() const { return run_of(0).applied_count; }

  /// @name States of the algorithm. Replicas that make their own steps have a set each
  /// @{
  int64_t state_set_count() const { return optimizer_->parts_.settings.replicas.part() ? optimizer_->parts_.settings.replicas.count : 1; }
  /// The set of this rank's replica.
  int64_t state_set() const { return state_set_count() > 1 ? replica() : 0; }
  static bool is_of_set(int32_t slot);
  /// The kind of a section that has a further set, from 1 on.
  static constexpr const char *kSetKind = "replica";
  static std::string set_prefix(const std::string &prefix, int64_t set) { return prefix + "replica" + std::to_string(set) + "."; }
  void describe_set(const std::string &prefix, int64_t set, checkpoint::Section *out) const;
  /// After a load, stores the step counts of each set's replica.
  void store_counts(const std::vector<SavedScalars> &sets) const;
  /// @}

  /// @name Values that strategies of gradients carry from step to step
  /// @{
  /// nullptr: none of the kind.
  CarriedState *carried(Carried kind) const { return optimizer_->parts_.gradients.reductions().carried(kind); }
  /// The part of this rank.
  CarriedPart carried_of(Carried kind, int64_t id) const {
    return optimizer_->parts_.gradients.reductions().carried_of(kind, id, replica());
  }
  /// Columns of factors; 0: gradients have none.
  int64_t low_rank() const { return optimizer_->parts_.settings.replicas.low_rank; }
  int64_t replica_count() const { return optimizer_->parts_.settings.replicas.count; }
  int64_t replica() const { return optimizer_->parts_.group->rank() / optimizer_->parts_.ranks(); }
  /// @}
  /// Reduced gradients that wait for their step are saved, unless unfilled parameters stay
  /// untouched: no rank knows yet which of them others filled.
  bool saves_gradients() const { return takes_gradients() && optimizer_->parts_.gradients.holds(); }
  bool takes_gradients() const { return optimizer_->parts_.gradients.delays() && !optimizer_->parts_.settings.leaves_unfilled; }
  const Plan &plan() const { return optimizer_->parts_.state.plan; }
  Range own(int64_t id) const { return optimizer_->parts_.state.tensors.own(id); }

  /// State of a run's saves that lasts from one save to the next.
  std::shared_ptr<void> &run() const { return optimizer_->parts_.saved_run; }

  /// While it exists, calls that are not tasks fail because the optimizer is busy.
  class Busy {
   public:
    explicit Busy(Optimizer &optimizer) : counted_(optimizer.parts_.guard.count()) {}

   private:
    CallGuard::Counted counted_;
  };
  /// Ends operations that must not overlap with a save: deferred gathers of the last step, and
  /// update counts that are not yet written to memory. Waits for devices.
  Task settle() const;
  /// Orders `work` after earlier work in `stream`, and before later work in it.
  Task in_order(Task work, void *stream) const { return optimizer_->parts_.in_order(std::move(work), stream); }
  /// The save reads the optimizer's memory until the gate is open.
  void set_gate(std::shared_ptr<ReadGate> gate) const { optimizer_->parts_.gate = std::move(gate); }
  bool on_device() const { return optimizer_->parts_.settings.on_device; }
  Status check_save(const char *call) const;
  Status check_load(const char *call) const;

  /// @name Saving
  /// @{
  /// Describes all but prefix and files. `whole_params`: parameters are in model files.
  void describe(bool whole_params, checkpoint::Section *out) const;
  /// True if this rank holds the whole slot.
  bool holds_whole(int64_t id, int32_t slot) const;
  /// Copies entries of a slot from `first` on. This rank must hold them.
  Status copy(int64_t id, int32_t slot, int64_t first, std::span<std::byte> out) const;
  /// @}

  /// @name Loading
  /// @{
  /// Writes entries of a slot of this rank's own cut, from `first` on.
  Status store(int64_t id, int32_t slot, int64_t first, std::span<const std::byte> data) const;
  /// Sets the parameter and its master from values of this rank's own cut, from `first` on. `first`
  /// is the beginning of the cut or of a line. Whole lines must be given, up to the end of the cut.
  Status store_values(int64_t id, int64_t first, std::span<const float> values) const;
  /// The same for a slot: its elements become the rounded values, and its scales are updated.
  Status store_state(int64_t id, int32_t slot, int64_t first, std::span<const float> values) const;
  /// Reads a run's scalars from the facts of a section.
  static Status read_scalars(const checkpoint::Facts &facts, SavedScalars *out);
  /// Stores each hyper-parameter of a set that the facts contain.
  Status store_hyper(int64_t set, const checkpoint::Facts &facts) const;
  /// Stores rate and momentum of the outer step, if the optimizer has one.
  Status store_outer(const checkpoint::Facts &facts) const;
  /// Called before a load writes its first byte. The optimizer has no valid values until
  /// finish_load() ends; carried values begin anew.
  void begin_load() const;
  /// Copies loaded data from the ranks that own it to all ranks that hold it, and sets the
  /// optimizer running. `scalars` nullptr: scalars stay unchanged. `counts_set`: update counts were
  /// loaded; otherwise they are set to the step count. A collective.
  Task finish_load(const SavedScalars *scalars, bool counts_set) const;
  /// @}

 private:
  Status find_place(int64_t id, int32_t slot, const Slot **out_slot) const;
  std::byte *entry(int64_t id, const Slot &slot, int64_t first) const;
  Task take_loaded(const SavedScalars *scalars, bool counts_set) const;
  Task take_gradients(const SavedScalars &scalars) const;
  kernels::StepState run_of(int64_t set) const;
  void describe_cuts(checkpoint::Section *out) const;
  void describe_tensors(bool whole_params, bool of_set, checkpoint::Section *out) const;
  void describe_counts(int64_t set, checkpoint::Facts *out) const;
  void describe_facts(checkpoint::Facts *out) const;

  std::shared_ptr<Optimizer> optimizer_;
};

}  // namespace zero
