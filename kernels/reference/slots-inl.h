/// @file The loop of all algorithms over slots. An algorithm is a struct (adam-inl.h is one) with its constants, the number of its
/// states and the function of one element. Of files that are compiled once only.
#pragma once

#include "kernels/kernels.h"
#include "kernels/reference/float_bits.h"

#include <cstring>

namespace zero::kernels::reference {

template <class T>
T constants_in(const Constants &constants) {
  T result;
  std::memcpy(&result, constants.bytes, sizeof result);
  return result;
}

/// Element i of the gradient, as the algorithm sees it.
inline float gradient_at(const Slots &slots, int64_t i) {
  const auto *bits = static_cast<const uint16_t *>(slots.grad);
  switch (slots.grad_dtype) {
    case DType::f16:
      return from_f16(bits[i]) * slots.grad_factor;
    case DType::bf16:
      return from_bf16(bits[i]) * slots.grad_factor;
    default:
      return static_cast<const float *>(slots.grad)[i] * slots.grad_factor;
  }
}

template <class Algorithm>
void update_elements(const Slots &slots, const typename Algorithm::Constants &constants) {
  const bool has_states = Algorithm::uses_states(constants);
  auto *rounded = static_cast<uint16_t *>(slots.rounded);
  for (int64_t i = 0; i < slots.count; ++i) {
    float state[Algorithm::kStates] = {};
    for (int s = 0; s < Algorithm::kStates && has_states; ++s) state[s] = slots.state[s][i];
    Algorithm::update(slots.param[i], gradient_at(slots, i), state, constants);
    for (int s = 0; s < Algorithm::kStates && has_states; ++s) slots.state[s][i] = state[s];
    if (rounded != nullptr) rounded[i] = slots.grad_dtype == DType::f16 ? to_f16(slots.param[i]) : to_bf16(slots.param[i]);
  }
}

}  // namespace zero::kernels::reference
