/// @file Steps: reduce, apply, gather, whole steps, the synchronisation of replicas, and steps that
/// become part of CUDA graphs.
#pragma once

#include "core/task.h"
#include "engine/optimizer/parts.h"
#include "engine/optimizer/step_flags_exchange.h"
#include "engine/stats/results.h"

#include <zero/optimizer.h>

#include <atomic>
#include <cstdint>

namespace zero {

class Steps {
 public:
  Steps(OptimizerParts &parts, StepFlagsExchange &vote) : parts_(parts), vote_(vote) {}

  /// @name Bodies of tasks. `out` may be nullptr; its struct_size is the caller's.
  /// @{
  Task step(zero_step_result *out);
  /// `splits`: apply and gather are calls of their own.
  Task reduce(const char *call, zero_step_result *out, bool splits);
  Task apply();
  Task gather();
  /// Brings replicas together, unless they are.
  Task sync(zero_step_result *out);
  /// @}

  Status result(zero_step_result *out, void *stream) const;
  Status refresh(void *stream);
  Status loss_scale_address(void *stream, void **out);
  /// Any thread.
  StepTimes times() const;

 private:
  struct Times {
    std::atomic<int64_t> steps{0};
    std::atomic<int64_t> reduce_ns{0};
    std::atomic<int64_t> apply_ns{0};
    std::atomic<int64_t> gather_ns{0};
  };

  Task finish_gradients();
  Task pick_path();
  void count_direct() const;
  void count_replicas(int32_t slot, int64_t bucket) const;
  Status check_capture(const zero_step_result *out) const;
  Task update();
  Status forget_masters_after_device();
  /// `applied` as in ReduceStrategy.
  void end_step(bool applied);
  /// With delays, once the step has ended.
  Task hold_gradients();
  Status write_result(zero_step_result *out) const;

  /// @name Several replicas (replica_steps.cpp)
  /// @{
  Task compare_runs_of_replicas();
  Task sync_replicas(Replicas::Meeting meeting);
  /// @}

  OptimizerParts &parts_;
  StepFlagsExchange &vote_;
  Times times_;
};

}  // namespace zero
