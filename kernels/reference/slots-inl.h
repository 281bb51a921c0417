/// @file Slots, plain: the loop of all algorithms over slots. An algorithm is a struct, such as
/// Adam in adam-inl.h, with its constants, the number of its states and the function of one
/// element. Only for files that are compiled once.
#pragma once

#include "kernels/kernels.h"
#include "kernels/reference/elementwise-inl.h"
#include "kernels/reference/random_words-inl.h"
#include "kernels/reference/reduce-inl.h"
#include "kernels/reference/remainder-inl.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace zero::kernels::reference {

template <class T>
T constants_in(const Constants &constants) {
  T result;
  std::memcpy(&result, constants.bytes, sizeof result);
  return result;
}

/// Loads gradients, parameters and states, and stores the new values. Format (reduce-inl.h) is the
/// gradient's.
template <class Format>
struct Ends {
  using Element = typename Format::Element;
  using Rounded = std::conditional_t<std::is_same_v<Format, F32>, Bf16, Format>;
  const Slots &slots;

  float sum(int64_t i, int64_t lo, int64_t hi) const {
    if (hi - lo == 1) return Format::load(static_cast<const Element *>(slots.sources[lo])[slots.peers_offset + i]);
    const auto mid = lo + static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(hi - lo - 1)));
    return sum(i, lo, mid) + sum(i, mid, hi);
  }

  /// The gradient as stored, or the sum with the bits that a reduction would store.
  Element stored_gradient(int64_t i) const {
    if (slots.source_count == 0) return static_cast<const Element *>(slots.grad)[i];
    return Format::store(sum(i, 0, slots.source_count) / static_cast<float>(slots.divisor));
  }

  /// Returns the scaled gradient.
  float gradient(int64_t i) const { return Format::load(stored_gradient(i)) * slots.grad_factor; }

  float param(int64_t i) const {
    if (slots.lower != nullptr) return joined(halves()[i], slots.lower[i]);
    return slots.param != nullptr ? slots.param[i] : Bf16::load(halves()[i]);
  }

  void store_param(float value, int64_t i) const {
    if (slots.lower != nullptr) {
      const Halves split = halves_of(value);
      halves()[i] = split.upper;
      slots.lower[i] = split.lower;
    } else if (slots.param != nullptr) {
      slots.param[i] = value;
    } else {
      halves()[i] = half(value, slots.random_param, i);
    }
  }

  float state(int number, int64_t i) const {
    return slots.half_state[number] == nullptr ? slots.state[number][i] : Bf16::load(slots.half_state[number][i]);
  }

  void store_state(int number, float value, int64_t i) const {
    if (slots.half_state[number] == nullptr) {
      slots.state[number][i] = value;
    } else {
      slots.half_state[number][i] = half(value, slots.random_state[number], i);
    }
  }

  void hand_on(int64_t i) const {
    if (slots.average != nullptr) slots.average[i] = averaged(slots.average[i], param(i), slots.average_weight);
    hand_on_param(i);
    for (int64_t h = 0; h < slots.handed_count; ++h) {
      slots.handed[h].to[slots.peers_offset + i] = slots.handed[h].from[slots.handed_offset + i];
    }
  }

 private:
  uint16_t *halves() const { return static_cast<uint16_t *>(slots.rounded); }

  static uint16_t half(float value, const uint32_t *random, int64_t i) {
    return random != nullptr ? to_bf16_stochastic(canonical(value), random_half(random, i)) : Bf16::store(value);
  }

  void hand_on_param(int64_t i) const {
    if (slots.param == nullptr) return give(halves()[i], i);
    if (slots.rounded == nullptr) return give(slots.param[i], i);
    const uint16_t rounded = Rounded::store(slots.param[i]);
    halves()[i] = rounded;
    give(rounded, i);
  }

  template <typename T>
  void give(T value, int64_t i) const {
    for (int64_t c = 0; c < slots.copy_count; ++c) static_cast<T *>(slots.copies[c])[slots.peers_offset + i] = value;
  }
};

/// Calls work(ends) for the ends of the slots.
template <class Work>
void with_ends(const Slots &slots, const Work &work) {
  switch (slots.grad_dtype) {
    case DType::f16:
      return work(Ends<F16>{slots});
    case DType::bf16:
      return work(Ends<Bf16>{slots});
    default:
      return work(Ends<F32>{slots});
  }
}

template <class Algorithm>
void update_elements(const Slots &slots, const typename Algorithm::Constants &constants) {
  // bf16 states are stored anew in any case, as slots that pass through blocks: NaN gets its one
  // form.
  const bool has_states = Algorithm::uses_states(constants) || slots.half_state[0] != nullptr;
  with_ends(slots, [&](const auto &ends) {
    for (int64_t i = 0; i < slots.count; ++i) {
      float state[Algorithm::kStates] = {};
      for (int s = 0; s < Algorithm::kStates && has_states; ++s) state[s] = ends.state(s, i);
      float param = ends.param(i);
      Algorithm::update(param, ends.gradient(i), state, constants);
      ends.store_param(param, i);
      for (int s = 0; s < Algorithm::kStates && has_states; ++s) ends.store_state(s, state[s], i);
      ends.hand_on(i);
    }
  });
}

}  // namespace zero::kernels::reference
