/// @file adamw_states: what torch::optim::AdamW keeps beside parameters and gradients.
/// Knows nothing of libzero.
#pragma once

#include <torch/optim/adamw.h>

#include <cstdint>

namespace embedding {

/// Bytes; none before the first step.
inline int64_t state_nbytes(const torch::optim::Optimizer &optimizer) {
  size_t nbytes = 0;
  for (const auto &[key, state] : optimizer.state()) {
    const auto &moments = static_cast<const torch::optim::AdamWParamState &>(*state);
    nbytes += moments.exp_avg().nbytes() + moments.exp_avg_sq().nbytes();
  }
  return static_cast<int64_t>(nbytes);
}

}  // namespace embedding
