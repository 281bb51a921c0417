/// @file Replicas: the parameters that the replicas of a model last had in common, and the
/// synchronisation of replicas that make steps of their own. A synchronisation takes the mean of
/// all changes followed by an outer step, or the mean of a replica and its neighbours. It is of the
/// whole model or of a fragment, whose exchange may go on behind steps. Knows slots and the ranks
/// with the same shard; never votes or gradients.
#pragma once

#include "core/task.h"
#include "engine/compute/coded_mean.h"
#include "engine/compute/step_kernels.h"
#include "engine/config/settings.h"
#include "engine/layout/layout.h"
#include "engine/layout/params.h"
#include "engine/parameters/quantized_params.h"
#include "engine/ranks/optimizer_groups.h"
#include "engine/replicas/delayed_exchange.h"
#include "engine/replicas/fragments.h"
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
    double mix;  ///< weight of own values beside the result
  };

  /// A synchronisation: of everything over all replicas, or that which is due at the end of a step.
  enum class Meeting : uint8_t { all, turn };

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
        outer_{settings_.outer_lr, settings_.outer_momentum, settings_.mix} {}

  /// Once there is a plan: cuts fragments, and checks that the outer step has fp32 values of all
  /// trained parameters.
  Status lay_out();
  /// Once slots have memory.
  Status open(const OptimizerGroups &groups, const MemorySource &source);
  void close();
  /// Bytes that open() takes at most.
  int64_t workspace_nbytes() const;

  /// @name The clock, in steps that were made before
  /// @{
  /// Whether all replicas make the next step together.
  bool together(int64_t calls) const { return settings_.any() && (!settings_.part() || calls < settings_.after); }
  /// True if the next step ends with values that replicas have exchanged. An exchange under way
  /// ends before the next begins, also where the caller has set the clock.
  bool due(int64_t calls) const {
    if (settings_.delay == 0) return is_turn(calls);
    return exchange_.due() || (exchange_.under_way() && is_turn(calls));
  }
  /// @}

  /// Elements of the largest fragment, on all ranks of a replica together.
  int64_t largest_fragment() const;
  /// Exchanges go on behind steps.
  bool overlaps() const { return exchange_.overlaps(); }

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
  /// neighbours. Comes after await_exchange(), whose values it uses first. *out_spread: the mean of
  /// the norms of all replicas' changes once they have been averaged, divided by that before; 1
  /// where nothing changed.
  Task bring_together(Meeting meeting, int64_t calls, double *out_spread);
  /// With a delay, at the end of each step: counts it, or begins the exchange of its values.
  Task end_step(int64_t calls);
  /// Waits for the values of the exchange under way, if there is one.
  Task await_exchange() { return exchange_.wait(); }
  /// Leaves these values unused: parameters were given others.
  Task drop_exchange();
  /// The elements that this rank updates become those of the first replica.
  Task take_first();
  /// *value becomes the largest.
  Task largest(int64_t *value) const;
  /// @}

  /// Bytes that this rank sends in a meeting with neighbours. Not a collective.
  int64_t sent_to_neighbours_nbytes() const;

  /// @name Rate, momentum and mix of the outer step
  /// @{
  const Outer &outer() const { return outer_; }
  Status set(int32_t key, double value);
  Status get(int32_t key, double *out) const;
  /// A line for each, where there is an outer step.
  std::string outer_text() const;
  /// @}

 private:
  using Part = FragmentPart;

  bool is_turn(int64_t calls) const {
    return settings_.any() && !together(calls) && (calls + 1 - settings_.after) % (settings_.period / settings_.fragments) == 0;
  }
  /// The fragment whose turn it is at the end of the next step.
  size_t turn(int64_t calls) const {
    return static_cast<size_t>((calls + 1 - settings_.after) / (settings_.period / settings_.fragments) % settings_.fragments);
  }

  int64_t largest_part() const;
  int64_t most_exchanged() const;
  const Plan &plan() const { return layout_.plan(); }
  const SlotMemory &slots() const { return tensors_.memory(); }
  bool averages(int64_t bucket) const;
  /// nullptr: the bucket has no such slot.
  float *floats(int32_t slot, const Part &part) const;
  void read_values(const Part &part, float *out) const;
  void write_values(const Part &part, const float *values) const;
  /// Squares of the changes of this replica.
  struct Squares {
    kernels::ExactSum before;  ///< they were averaged
    kernels::ExactSum after;
  };

  void read_changes(const Part &part, float *out, kernels::ExactSum &squares) const;
  Task bring_part(const Part &part, double mix, Squares &squares);
  Task average_with_neighbours(const Part &part, Squares &squares);
  Task average_changes(Group &across, const Part &part, float *changes);
  Task exchange(const Fragment &fragment);
  void use_exchange(Squares &squares);
  void make_outer_step(const Part &part, const float *changes, double mix) const;
  void mix_into(float *values, const float *results, int64_t count, double mix) const;
  void agree_codes(const Fragment &fragment) const;
  Task measure(const Squares &squares, bool alike, double *out_spread) const;
  static double Outer::*field_of(int32_t key);

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
  Fragment whole_;
  std::vector<Fragment> fragments_;
  DelayedExchange exchange_;
  Squares exchanged_;  ///< squares of the changes whose exchange is under way
  CodedMean coded_;
  NeighbourMean neighbours_;
  std::vector<std::vector<uint8_t>> full_lines_;  ///< by bucket: those that are not coded
  Outer outer_;
  bool codes_ = true;  ///< changes are coded in the synchronisation or exchange under way
  bool differ_ = false;
  bool anchored_ = false;  ///< anchors are the values that replicas last had in common
};

}  // namespace zero
