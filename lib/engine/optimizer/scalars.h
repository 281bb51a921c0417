/// @file OptimizerScalars: hyper-parameters, the loss scale and the counts of a run, by key. Knows
/// no steps.
#pragma once

#include "engine/optimizer/parts.h"

#include <cstdint>

namespace zero {

/// Returns the address of the count with this key in `run`; nullptr if the key is not a count.
int64_t *count_of(kernels::StepState &run, int32_t key);

class OptimizerScalars {
 public:
  explicit OptimizerScalars(OptimizerParts &parts) : parts_(parts) {}

  Status set_f64(int64_t set, int32_t key, double value);
  Status get_f64(int64_t set, int32_t key, double *out) const;
  Status set_i64(int32_t key, int64_t value);
  Status get_i64(int32_t key, int64_t *out) const;

 private:
  bool lacks_momentum(int64_t set) const;

  OptimizerParts &parts_;
};

}  // namespace zero
