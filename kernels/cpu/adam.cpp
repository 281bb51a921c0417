/// @file Adam and AdamW, SIMD: adam.h states the formula.
#include "kernels/adam.h"

#include "kernels/cpu/simd_slots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// The constants in vectors.
struct Vectors {
  HWY_INLINE explicit Vectors(const AdamConstants &constants)
      : decay_factor(hn::Set(D(), constants.decay_factor)),
        weight_decay(hn::Set(D(), constants.weight_decay)),
        moment_weight(hn::Set(D(), constants.moment_weight)),
        beta2(hn::Set(D(), constants.beta2)),
        square_weight(hn::Set(D(), constants.square_weight)),
        negative_step(hn::Set(D(), constants.negative_step)),
        root_correction(hn::Set(D(), constants.root_correction)),
        epsilon(hn::Set(D(), constants.epsilon)) {}
  V decay_factor, weight_decay, moment_weight, beta2, square_weight, negative_step, root_correction, epsilon;
};

template <bool kAddsDecay, bool kFromMoment, class Form>
HWY_INLINE void update(const Ends<Form> &ends, int64_t i, const Vectors &c) {
  V param = hn::Mul(ends.param(i), c.decay_factor);
  V gradient = ends.gradient(i);
  if constexpr (kAddsDecay) gradient = hn::MulAdd(c.weight_decay, param, gradient);
  V moment = ends.state(0, i);
  moment = hn::MulAdd(c.moment_weight, hn::Sub(gradient, moment), kFromMoment ? moment : gradient);
  const V decayed = hn::Mul(ends.state(1, i), c.beta2);
  const V square = hn::MulAdd(hn::Mul(c.square_weight, gradient), gradient, decayed);
  const V divisor = hn::Add(hn::Div(hn::Sqrt(square), c.root_correction), c.epsilon);
  param = hn::Add(param, hn::Div(hn::Mul(c.negative_step, moment), divisor));
  ends.store_param(param, i);
  ends.store_state(0, moment, i);
  ends.store_state(1, square, i);
}

template <bool kAddsDecay, bool kFromMoment, class Form>
void update_all(const Slots &given, const AdamConstants &constants) {
  const Slots slots = given;
  const Ends<Form> ends(slots);
  const Vectors vectors(constants);
  update_lines(slots, ends, 2, [&](int64_t i) { update<kAddsDecay, kFromMoment>(ends, i, vectors); });
  reference::adam_elements(rest_of_lines(slots, 2), constants);
}

}  // namespace

void adam(const Slots &slots, const Constants &given) {
  const auto constants = constants_in<AdamConstants>(given);
  with_form(slots, [&]<class Form>(Form) {
    if (constants.adds_decay) {
      (constants.from_moment ? update_all<true, true, Form> : update_all<true, false, Form>)(slots, constants);
    } else {
      (constants.from_moment ? update_all<false, true, Form> : update_all<false, false, Form>)(slots, constants);
    }
  });
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
