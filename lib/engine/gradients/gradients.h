/// @file Gradients: the sequence of a step's micro-steps, and the parts that gradients pass
/// through. Knows nothing of flags and updates.
#pragma once

#include "engine/gradients/bucket_schedule.h"
#include "engine/gradients/gradient_accumulator.h"
#include "engine/gradients/micro_step_state.h"
#include "engine/gradients/reductions.h"
#include "engine/layout/params.h"
#include "kernels/exact_sum.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace zero {

/// Calls go down only: accumulator, schedule, reductions.
class Gradients {
 public:
  /// `rows` get marks of the rows that a step gives, as far as this rank learns them.
  Gradients(const Plan &plan, const Settings &settings, const SlotMemory &slots, const Kernels &kernels, const Params &params,
            GivenRows &rows, Trace &trace)
      : plan_(plan),
        settings_(settings),
        slots_(slots),
        kernels_(kernels),
        reductions_(plan, settings, slots, kernels, rows, trace),
        schedule_(plan, settings, slots, kernels, state_, reductions_),
        accumulator_(plan, settings, slots, kernels, params, rows, state_, schedule_) {}

  /// `across` as in ReduceStrategies, `alone` as in MicroStepState, `counted` as in Reductions.
  Status open(const std::shared_ptr<Group> &group, std::shared_ptr<Group> across, bool alone, const MemorySource &source,
              std::vector<bool> counted);
  /// Ends reductions and gives memory back.
  void close();

  GradientAccumulator &accumulator() { return accumulator_; }
  const BucketSchedule &schedule() const { return schedule_; }
  Reductions &reductions() { return reductions_; }
  const Reductions &reductions() const { return reductions_; }

  /// As MicroStepState::fuses: finish() then reduces nothing.
  void fuse_reduction(bool fuses) { state_.fuses = fuses; }
  bool fuses_reduction() const { return state_.fuses; }

  /// @name From one micro-step to the next: may it end, end it, begin one of the given kind
  /// @{
  Status check_micro_step();
  /// Nothing was set for a step or a micro-step that has not begun.
  Status check_between_steps(const char *call) const;
  Task end_micro_step();
  Status begin_micro_step(MicroStep kind);
  /// True when the end of the micro-step under way waits for other ranks.
  bool reduces_micro_step() const { return state_.started && !state_.alone && state_.kind == MicroStep::reduce; }
  /// Equal on ranks that have come equally far in the REDUCE micro-steps of a step. `ends`: in the
  /// call that ends the step.
  uint64_t progress(bool ends) const {
    return static_cast<uint64_t>(4 * state_.reduced_count + (reduces_micro_step() ? 2 : 0) + (ends ? 1 : 0));
  }
  /// @}
  /// Counts what is missing as zero, reduces everything and waits for it, unless late() is true.
  Task finish();
  /// Reduces contributions that waited.
  Task reduce_late();
  /// Ends the step; `applied` as in ReduceStrategy.
  void end_step(bool applied);

  /// @name Delays: the gradients in the slots were given before the step before
  /// @{
  bool delays() const { return state_.delays; }
  /// There are such gradients.
  bool holds() const { return !state_.delays || held_.any; }
  /// After end_step(): what was given since then comes into the slots, and its reductions begin.
  /// They have ended on return where nothing else would advance them, and settle() returns their
  /// errors: the step before is complete. `loss_scale`: as they were given with it.
  Task hold(double loss_scale);
  /// Waits for these reductions. All ranks have begun theirs, or have failed.
  Task settle() { return schedule_.wait_for_submitted(); }
  /// The same for a thread that gives the memory back next.
  void settle_before_close() {
    if (state_.delays) reductions_.wait_to_the_end();
  }
  /// Forgets such gradients. Only once they are reduced.
  void drop();
  /// They were loaded into the slots, with this loss scale and sum of weights.
  void take_loaded(double loss_scale, double weight);
  /// The loss scale that they were given with; 0 without delays.
  double loss_scale() const { return state_.delays ? held_.loss_scale : 0; }
  /// @}

  /// @name As in GradientAccumulator, of the gradients of the step under way
  /// @{
  bool filled(int64_t id) const { return state_.delays ? held_.filled[static_cast<size_t>(id)] != 0 : accumulator_.filled(id); }
  int64_t unfilled_count() const { return state_.delays ? held_.unfilled_count : accumulator_.unfilled_count(); }
  /// @}

  /// True while a tensor is acquired and not yet all ready.
  bool any_acquired() const { return state_.acquired_count > 0; }
  /// True when gradients of this step were given.
  bool started() const { return state_.started; }
  /// True when the contributions of this step wait to be summed.
  bool late() const { return state_.late(); }
  /// Contributions that wait are so small that no sum of all ranks' can overflow.
  bool bounded() const { return accumulator_.finite() && kernels_.passed(); }

  /// @name Findings of finish() or reduce_late()
  /// @{
  bool finite() const { return (state_.alone ? finite_alone() : reductions_.finite()) && kernels_.passed(); }
  double weight_sum() const { return state_.alone ? weight_alone() : reductions_.weight_sum(); }
  kernels::ExactSum squares();
  /// In a world of one: lets the kernels add up the squares, and does not wait for them.
  void add_squares(kernels::ExactSum &sum) const;
  /// @}

  /// Bytes that micro-steps made necessary so far. Any thread.
  int64_t accumulated_nbytes() const { return accumulator_.local_nbytes() + reductions_.sums_nbytes(); }

 private:
  /// With delays: findings about the gradients in the slots, from when they came there.
  struct Held {
    bool any = false;
    double loss_scale = 1;
    int64_t unfilled_count = 0;
    std::vector<uint8_t> filled;  ///< by parameter
    bool finite = true;           ///< in a world of one
    double weight = 0;            ///< in a world of one
  };

  Task reduce_rest();
  void open_micro_step(MicroStep kind);
  void close_local_sums();
  void begin_step();
  void note_held(double loss_scale);
  void forget_held();
  bool finite_alone() const { return state_.delays ? held_.finite : accumulator_.finite(); }
  double weight_alone() const { return state_.delays ? held_.weight : state_.contribution_weight(); }

  const Plan &plan_;
  const Settings &settings_;
  const SlotMemory &slots_;
  const Kernels &kernels_;
  MicroStepState state_;
  Held held_;
  Reductions reductions_;
  BucketSchedule schedule_;
  GradientAccumulator accumulator_;
};

}  // namespace zero
