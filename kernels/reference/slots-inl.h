/// @file The loop of all algorithms over fp32 slots. An algorithm is a struct (adam-inl.h is one) with its constants, the number of its
/// states and the function of one element.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels::reference {

template <class Algorithm>
void update_elements(const Slots &slots, const typename Algorithm::Constants &constants) {
  const bool has_states = Algorithm::uses_states(constants);
  for (int64_t i = 0; i < slots.count; ++i) {
    float state[Algorithm::kStates] = {};
    for (int s = 0; s < Algorithm::kStates && has_states; ++s) state[s] = slots.state[s][i];
    Algorithm::update(slots.param[i], slots.grad[i], state, constants);
    for (int s = 0; s < Algorithm::kStates && has_states; ++s) slots.state[s][i] = state[s];
  }
}

}  // namespace zero::kernels::reference
