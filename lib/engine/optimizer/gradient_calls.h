/// @file GradientCalls: the calls that bring gradients, with the checks that GradientAccumulator
/// does not make: phases, frozen parameters, memory of devices, graphs.
#pragma once

#include "core/task.h"
#include "engine/optimizer/parts.h"

#include <cstdint>

namespace zero {

class GradientCalls {
 public:
  explicit GradientCalls(OptimizerParts &parts) : parts_(parts) {}

  Status acquire(int64_t id, void **out_data, int64_t *out_accumulate, void *stream);
  Status ready(int64_t id, const void *grad, int64_t offset, int64_t count, void *stream);
  Status ready_rows(int64_t id, const int64_t *rows, const void *values, int64_t count);
  /// Whole gradients, one after the other, until one fails. `grads` may be nullptr: all were
  /// acquired.
  Status all_ready(const int64_t *ids, int64_t count, const void *const *grads, void *stream);
  Status set_weight(double weight);
  /// The body of a task.
  Task micro_step(int32_t kind);

 private:
  Status check_trains(int64_t id) const;

  OptimizerParts &parts_;
};

}  // namespace zero
