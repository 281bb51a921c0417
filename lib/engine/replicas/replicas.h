/// @file Replicas: the parameters that the replicas of a model last had in common, and the
/// synchronisation of replicas that make steps of their own. A synchronisation takes the mean of
/// all changes followed by an outer step, or the mean of a replica and its neighbours. Knows slots
/// and the ranks with the same shard; never votes or gradients.
#pragma once

#include "core/task.h"
#include "engine/compute/coded_mean.h"
#include "engine/compute/step_kernels.h"
#include "engine/config/settings.h"
#include "engine/layout/layout.h"
#include "engine/layout/params.h"
#include "engine/parameters/quantized_params.h"
#include "engine/replicas/neighbour_mean.h"
#include "engine/storage/tensor_slots.h"
#include "group/group.h"
#include "kernels/exact_sum.h"
#include "memory/arena.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero {

/// Used by one thread at a time.
class Replicas {
 public:
  /// The hyper-parameters of the outer step.
  struct Outer {
    double lr;
    double momentum;
  };

  /// The replicas that a synchronisation averages.
  enum class Meeting : uint8_t { all, neighbours };

  /// `all`: this rank updates everything, not only its cuts. All arguments must outlive the object.
  Replicas(const Params &params, const Layout &layout, const TensorSlots &tensors, const QuantizedParams &quantized_params,
           const Kernels &kernels, const Settings &settings, bool all)
      : params_(params),
        layout_(layout),
        tensors_(tensors),
        quantized_params_(quantized_params),
        kernels_(kernels),
        settings_(settings.replicas),
        all_(all),
        outer_{settings_.outer_lr, settings_.outer_momentum} {}

  /// Checks that the outer step has fp32 values of all trained parameters.
  Status check_formats() const;
  /// Once slots have memory. `within`: the ranks of this replica; `across`: those with the same
  /// shard in all replicas, or nullptr.
  Status open(std::shared_ptr<Group> within, std::shared_ptr<Group> across, const MemorySource &source);
  void close();
  /// Bytes that open() takes at most.
  int64_t workspace_nbytes() const;

  /// @name The clock, in steps that were made before
  /// @{
  /// Whether all replicas make the next step together.
  bool together(int64_t calls) const { return settings_.any() && (!settings_.part() || calls < settings_.after); }
  /// True if the next step ends with a synchronisation.
  bool due(int64_t calls) const { return settings_.any() && !together(calls) && (calls + 1 - settings_.after) % settings_.period == 0; }
  /// At the end of a period.
  Meeting meeting() const { return settings_.ring ? Meeting::neighbours : Meeting::all; }
  /// @}

  bool first() const { return across_ == nullptr || across_->rank() == 0; }
  /// Parameters may differ between replicas.
  bool differ() const { return differ_; }
  /// Before an update that a replica makes by itself.
  void part();
  /// All replicas were given the same parameters.
  void meet() {
    differ_ = false;
    anchored_ = false;
  }

  /// @name Collectives over all replicas
  /// @{
  /// Parameters, masters and averages become what the outer step makes of them, or means over
  /// neighbours. *out_spread: the mean of the norms of all replicas' changes once they have been
  /// averaged, divided by that before; 1 where nothing changed. `codes`: changes are coded, if any
  /// are.
  Task bring_together(Meeting meeting, bool codes, double *out_spread);
  /// The elements that this rank updates become those of the first replica.
  Task take_first();
  /// *value becomes the largest.
  Task largest(int64_t *value) const;
  /// @}

  /// Bytes that this rank sends in a meeting with neighbours. Not a collective.
  int64_t sent_to_neighbours_nbytes() const;

  /// @name Rate and momentum of the outer step
  /// @{
  const Outer &outer() const { return outer_; }
  Status set(int32_t key, double value);
  Status get(int32_t key, double *out) const;
  /// A line for each, where there is an outer step.
  std::string outer_text() const;
  /// @}

 private:
  /// The part of a bucket that is worked on.
  struct Part {
    int64_t bucket;
    Range range;  ///< within the bucket
  };

  int64_t largest_part() const;
  const Plan &plan() const { return layout_.plan(); }
  const SlotMemory &slots() const { return tensors_.memory(); }
  Range updated(int64_t bucket) const;
  /// nullptr: the bucket has no such slot.
  float *floats(int32_t slot, const Part &part) const;
  void read_values(const Part &part, float *out) const;
  void write_values(const Part &part, const float *values) const;
  /// Squares of the changes of this replica.
  struct Squares {
    kernels::ExactSum before;  ///< they were averaged
    kernels::ExactSum after;
  };

  void read_changes(const Part &part, kernels::ExactSum &squares) const;
  Task bring_bucket(Meeting meeting, int64_t bucket, Squares &squares);
  Task bring_part(const Part &part, Squares &squares);
  Task average_with_neighbours(const Part &part, Squares &squares);
  Task average_changes(const Part &part);
  void make_outer_step(const Part &part) const;
  Task measure(Meeting meeting, const Squares &squares, double *out_spread) const;

  const Params &params_;
  const Layout &layout_;
  const TensorSlots &tensors_;
  const QuantizedParams &quantized_params_;
  const Kernels &kernels_;
  const ReplicaSettings &settings_;
  const bool all_;
  std::shared_ptr<Group> within_;
  std::shared_ptr<Group> across_;
  Arena memory_;
  float *changes_ = nullptr;  ///< one part
  CodedMean coded_;
  NeighbourMean neighbours_;
  std::vector<std::vector<uint8_t>> full_lines_;  ///< by bucket: those that are not coded
  Outer outer_;
  bool codes_ = true;  ///< in the synchronisation under way
  bool differ_ = false;
  bool anchored_ = false;  ///< anchors are the values that replicas last had in common
};

}  // namespace zero
