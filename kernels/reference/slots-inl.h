/// @file The loop of all algorithms over fp32 slots. An algorithm is a struct (adam-inl.h is one) with its constants, the number of its
/// states and the function of one element. Of files that are compiled once only.
#pragma once

#include "kernels/kernels.h"

#include <cstring>

namespace zero::kernels::reference {

template <class T>
T constants_in(const Constants &constants) {
  T result;
  std::memcpy(&result, constants.bytes, sizeof result);
  return result;
}

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
