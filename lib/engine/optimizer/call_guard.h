/// @file CallGuard: the order of an optimizer's calls, which of them are under way, and what becomes of the optimizer after an error. After
/// ranks were lost it still lets this rank read the data that lies on it, unless a step had begun to change that. Knows no parameters.
#pragma once

#include "core/task.h"
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
  enum class Uses { parameters, gradients };  ///< parameters: gathers that run ahead must end first
  static constexpr const char *kStep = "the step";

  /// One more while it lives. A task takes it from the frame, which may outlive the task, to a variable of its own.
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

  /// What is given must outlive it. `alone`: no other rank has a part in steps.
  CallGuard(std::shared_ptr<Group> group, OptimizerGroups &groups, ParamGatherer &gathers, bool alone)
      : group_(std::move(group)), groups_(groups), gathers_(gathers), alone_(alone) {}

  /// @name Phases
  /// @{
  Phase phase() const { return phase_; }
  void enter(Phase phase);
  /// True from seal on, for any thread: what does not change after seal may then be read.
  bool sealed() const { return sealed_.load(std::memory_order_acquire); }
  Status check_phase(const char *call, Phase first, Phase last) const;
  /// For functions that are not tasks.
  Status check_call(const char *call, Phase first, Phase last) const;
  /// @}

  /// @name Calls under way: tasks that were made and have not ended
  /// @{
  Counted count() { return Counted(under_way_); }
  Counted count_acquire() { return Counted(acquiring_); }
  /// A call other than a param_acquire is under way.
  bool busy() const { return under_way_.load(std::memory_order_acquire) > 0; }
  bool acquiring() const { return acquiring_.load(std::memory_order_acquire) > 0; }
  Status check_idle(const char *call) const;
  /// The task of a collective: under way from now on, though it may wait for others in the queue. An error that other ranks cannot share
  /// makes the optimizer unusable on all of them.
  Task run(Task body, Caller caller, Uses uses = Uses::parameters) { return run_counted(std::move(body), caller, uses, count()); }
  /// @}

  /// @name Loss
  /// @{
  /// Whether the optimizer may go on. Ranks that wait inside it for one whose group has failed are told.
  Status usable();
  void lose(const Status &cause);
  /// Passes an error on; one of those that last loses the optimizer.
  Status lasting(Status status);
  /// @}

  /// @name What a rank reads after others were lost
  /// @{
  bool salvages() const;
  Status half_applied(const char *what) const;
  /// Of calls that read what lies on this rank.
  Status check_reads(const char *call, Phase first, Phase last) const;
  /// What is kept changes from here on. `enters`: on other ranks too.
  Status begin_change(bool enters);
  /// The call that changes it.
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
  const bool alone_;
  Phase phase_ = Phase::building;
  std::atomic<bool> sealed_{false};
  std::atomic<int64_t> under_way_{0};
  std::atomic<int64_t> acquiring_{0};
  Status failure_;                   ///< why the optimizer is lost
  const char *half_done_ = nullptr;  ///< what has changed a part of what is kept: a step, or a call; nullptr: nothing
  uint64_t entries_ = 0;             ///< of peers into this rank's memory, when the last step ended
};

}  // namespace zero
