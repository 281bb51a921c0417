/// @file LAMB, SIMD: lamb.h states the formula.
#include "kernels/lamb.h"

#include "kernels/cpu/simd_slots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// The constants in vectors.
struct Vectors {
  HWY_INLINE explicit Vectors(const LambConstants &constants)
      : correction1(hn::Set(D(), constants.correction1)),
        root_correction(hn::Set(D(), constants.root_correction)),
        epsilon(hn::Set(D(), constants.epsilon)),
        weight_decay(hn::Set(D(), constants.weight_decay)),
        negative_step(hn::Set(D(), constants.negative_step)) {}
  V correction1, root_correction, epsilon, weight_decay, negative_step;
};

HWY_INLINE V direction(const Slots &slots, int64_t i, V param, const Vectors &c) {
  const D d;
  const V divisor = hn::Add(hn::Div(hn::Sqrt(hn::LoadU(d, slots.state[1] + i)), c.root_correction), c.epsilon);
  const V step = hn::Div(hn::Div(hn::LoadU(d, slots.state[0] + i), c.correction1), divisor);
  return hn::MulAdd(c.weight_decay, param, step);
}

HWY_INLINE void prefetch_moments(const Slots &slots, int64_t i) {
  prefetch(slots.param + i);
  prefetch(slots.state[0] + i);
  prefetch(slots.state[1] + i);
}

template <class Form>
void update_moments(const Slots &given, const AdamConstants &constants) {
  const Slots slots = given;
  const Ends<Form> ends(slots);
  const D d;
  const V moment_weight = hn::Set(d, constants.moment_weight);
  const V beta2 = hn::Set(d, constants.beta2);
  const V square_weight = hn::Set(d, constants.square_weight);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = whole_steps<float>(slots.count);
  for (int64_t i = 0; i < whole; i += lanes) {
    ends.prefetch_gradient(i);
    for (int state = 0; state < 2; ++state) ends.prefetch_state(state, i);
    const V gradient = ends.gradient(i);
    const V before = ends.state(0, i);
    const V base = constants.from_moment ? before : gradient;
    const V moment = hn::MulAdd(moment_weight, hn::Sub(gradient, before), base);
    const V decayed = hn::Mul(ends.state(1, i), beta2);
    const V square = hn::MulAdd(hn::Mul(square_weight, gradient), gradient, decayed);
    ends.store_state(0, moment, i);
    ends.store_state(1, square, i);
  }
  reference::lamb_moment_elements(rest_of_lines(slots, 2), constants);
}

}  // namespace

void lamb_moments(const Slots &slots, const Constants &given) {
  const auto constants = constants_in<AdamConstants>(given);
  with_form(slots, [&]<class Form>(Form) { update_moments<Form>(slots, constants); });
}

void lamb_direction(float *out, const Slots &given, const Constants &given_constants) {
  const Slots slots = given;
  const auto constants = constants_in<LambConstants>(given_constants);
  const Vectors vectors(constants);
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t whole = whole_steps<float>(slots.count);
  for (int64_t i = 0; i < whole; i += lanes) {
    prefetch_moments(slots, i);
    const V result = direction(slots, i, hn::LoadU(D(), slots.param + i), vectors);
    hn::StoreU(canonical(D(), result), D(), out + i);
  }
  reference::lamb_direction_elements(out + whole, rest_of_lines(slots, 2), constants);
}

void lamb(const Slots &given, const Constants &given_constants) {
  const Slots slots = given;
  const auto constants = constants_in<LambConstants>(given_constants);
  const Vectors vectors(constants);
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t whole = whole_steps<float>(slots.count);
  for (int64_t i = 0; i < whole; i += lanes) {
    prefetch_moments(slots, i);
    const V param = hn::LoadU(D(), slots.param + i);
    hn::StoreU(canonical(D(), hn::MulAdd(vectors.negative_step, direction(slots, i, param, vectors), param)), D(), slots.param + i);
  }
  reference::lamb_elements(rest_of_lines(slots, 2), constants);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
