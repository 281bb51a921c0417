/// @file HeldPart: the parameters and states that a server holds, and their update by a push. Knows
/// kernels and memory; never workers.
#pragma once

#include "core/partition.h"
#include "engine/compute/host_kernels.h"
#include "engine/server/server_settings.h"
#include "memory/accounting.h"
#include "memory/arena.h"

#include <cstdint>

namespace zero {

class HeldPart {
 public:
  explicit HeldPart(const ServerSettings &settings) : settings_(settings), kernels_(settings.threads) {}

  /// All values are zero.
  Status allocate(Range range);
  const Range &range() const { return range_; }
  float *params() const { return reinterpret_cast<float *>(params_.data()); }
  /// The buffer that receives the next push.
  float *pushed() const { return reinterpret_cast<float *>(pushed_.data()); }

  /// Sets the states to their values before the first push.
  void begin();
  /// Applies the push that was received.
  void apply();

 private:
  kernels::UpdateSegment piece() const;
  kernels::UpdateScalars scalars() const;

  const ServerSettings &settings_;
  HostKernels kernels_;
  Accounting accounting_;
  Range range_;
  Arena params_;
  Arena pushed_;
  Arena states_;         ///< the states of the algorithm one after another, or the sums of a mean
  int state_count_ = 0;  ///< number of states of the algorithm
  int64_t applied_ = 0;  ///< number of pushes
};

}  // namespace zero
