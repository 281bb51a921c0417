/// @file Adagrad, SIMD: adagrad.h states the formula.
#include "kernels/adagrad.h"

#include "kernels/cpu/simd_slots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// The constants in vectors.
struct Vectors {
  HWY_INLINE explicit Vectors(const AdagradConstants &constants)
      : weight_decay(hn::Set(D(), constants.weight_decay)),
        negative_step(hn::Set(D(), constants.negative_step)),
        epsilon(hn::Set(D(), constants.epsilon)) {}
  V weight_decay, negative_step, epsilon;
};

template <bool kAddsDecay, class Form>
HWY_INLINE void update(const Ends<Form> &ends, int64_t i, const Vectors &c) {
  const V param = ends.param(i);
  V gradient = ends.gradient(i);
  if constexpr (kAddsDecay) gradient = hn::MulAdd(c.weight_decay, param, gradient);
  const V sum = hn::MulAdd(gradient, gradient, ends.state(0, i));
  const V step = hn::Div(hn::Mul(c.negative_step, gradient), hn::Add(hn::Sqrt(sum), c.epsilon));
  ends.store_param(hn::Add(param, step), i);
  ends.store_state(0, sum, i);
}

template <bool kAddsDecay, class Form>
void update_all(const Slots &given, const AdagradConstants &constants) {
  const Slots slots = given;
  const Ends<Form> ends(slots);
  const Vectors vectors(constants);
  update_lines(slots, ends, 1, [&](int64_t i) { update<kAddsDecay>(ends, i, vectors); });
  reference::adagrad_elements(rest_of_lines(slots, 1), constants);
}

}  // namespace

void adagrad(const Slots &slots, const Constants &given) {
  const auto constants = constants_in<AdagradConstants>(given);
  with_form(slots, [&]<class Form>(Form) { (constants.adds_decay ? update_all<true, Form> : update_all<false, Form>)(slots, constants); });
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
