/// @file CallGuard: the order of an optimizer's calls, the calls in progress, and the state after
/// an error. After ranks were lost, this rank may still read its own data, unless a step had begun
/// to change it. Knows no parameters.
#pragma once

#include "core/task.h"
#include "engine/gradients/gradients.h"
#include "engine/parameters/param_gatherer.h"
#include "engine/ranks/optimizer_groups.h"
#include "group/group.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace zero {

class CallGuard {
 public:
  enum class Phase { building, sealed, running, reduced };
  /// `parameters`: gathers that run ahead must end before the call, and delayed reductions.
  enum class Uses { parameters, gradients };
  static constexpr const char *kStep = "the step";

  /// Adds 1 to a counter during its lifetime. A task moves it from the coroutine frame, which may
  /// outlive the task, to a local variable.
  class Counted {
   public:
    explicit Counted(std::atomic<int64_t> &number) : number_(&number) { number_->fetch_add(1, std::memory_order_release); }
    Counted(Counted &&other) noexcept : number_(std::exchange(other.number_, nullptr)) {}
    Counted &operator=(Counted &&) = delete;
    ~Counted() {
      if (number_ != nullptr) number_->fetch_sub(1, std::memory_order_release);
    }

   private:
    std::atomic<int64_t> *number_;
  };

  /// All arguments must outlive this object. `alone`: no other rank takes part in steps.
  CallGuard(std::shared_ptr<Group> group, OptimizerGroups &groups, ParamGatherer &gathers, Gradients &gradients, bool alone)
      : group_(std::move(group)), groups_(groups), gathers_(gathers), gradients_(gradients), alone_(alone) {}

  /// @name Phases
  /// @{
  Phase phase() const { return phase_; }
  void enter(Phase phase);
  /// True from seal on. Any thread may then read data that does not change after seal.
  bool sealed() const { return sealed_.load(std::memory_order_acquire); }
  Status check_phase(const char *call, Phase first, Phase last) const;
  /// Also returns ZERO_E_STATE if a call is in progress. For functions that are not tasks.
  Status check_call(const char *call, Phase first, Phase last) const;
  /// @}

  /// @name Calls in progress: tasks that were created and have not ended
  /// @{
  Counted count() { return Counted(under_way_); }
  Counted count_acquire() { return Counted(acquiring_); }
  /// True if a call other than param_acquire is in progress.
  bool busy() const { return under_way_.load(std::memory_order_acquire) > 0; }
  bool acquiring() const { return acquiring_.load(std::memory_order_acquire) > 0; }
  Status check_idle(const char *call) const;
  /// Makes the task of a collective, which counts as in progress from now on, even while it waits
  /// in the queue. An error that other ranks may not have makes the optimizer unusable on all
  /// ranks.
  Task run(Task body, Caller caller, Uses uses = Uses::parameters) { return run_counted(std::move(body), caller, uses, count()); }
  /// @}

  /// @name Loss
  /// @{
  /// Returns ZERO_OK if the optimizer can be used. If its group has failed, reports the failure to
  /// ranks that wait inside the optimizer.
  Status usable();
  void lose(const Status &cause);
  /// Returns the error unchanged. An error that cannot be retried makes the optimizer unusable.
  Status lasting(Status status);
  /// @}

  /// @name Reads after other ranks were lost
  /// @{
  bool salvages() const;
  Status half_applied(const char *what) const;
  /// Checks a call that reads this rank's own data.
  Status check_reads(const char *call, Phase first, Phase last) const;
  /// Called before data changes. `enters`: the change also writes to the memory of other ranks.
  Status begin_change(bool enters);
  /// Names the call that changes the data.
  void changes_in(const char *call) { half_done_ = call; }
  void end_change();
  /// @}

 private:
  Status standing() const;
  Task run_counted(Task body, Caller caller, Uses uses, Counted queued);
  void close_memory();

  const std::shared_ptr<Group> group_;
  OptimizerGroups &groups_;
  ParamGatherer &gathers_;
  Gradients &gradients_;
  const bool alone_;
  Phase phase_ = Phase::building;
  std::atomic<bool> sealed_{false};
  std::atomic<int64_t> under_way_{0};
  std::atomic<int64_t> acquiring_{0};
  Status failure_;  ///< the reason why the optimizer is unusable
  /// The step or call that has changed a part of the data; nullptr: none.
  const char *half_done_ = nullptr;
  /// Entries of peers into this rank's memory, counted at the end of the last step.
  uint64_t entries_ = 0;
};

}  // namespace zero
