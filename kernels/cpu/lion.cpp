/// @file Lion, SIMD: lion.h states the formula.
#include "kernels/lion.h"

#include "kernels/cpu/simd_slots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// The constants in vectors.
struct Vectors {
  HWY_INLINE explicit Vectors(const LionConstants &constants)
      : decay_factor(hn::Set(D(), constants.decay_factor)),
        beta1(hn::Set(D(), constants.beta1)),
        gradient_weight(hn::Set(D(), constants.gradient_weight)),
        negative_lr(hn::Set(D(), constants.negative_lr)),
        beta2(hn::Set(D(), constants.beta2)),
        moment_weight(hn::Set(D(), constants.moment_weight)) {}
  V decay_factor, beta1, gradient_weight, negative_lr, beta2, moment_weight;
};

HWY_INLINE V sign(V value) {
  const D d;
  const V one = hn::CopySign(hn::Set(d, 1.0F), value);
  const V zero = hn::Zero(d);
  return hn::IfThenElse(hn::IsNaN(value), value, hn::IfThenElse(hn::Eq(value, zero), zero, one));
}

template <class Form>
HWY_INLINE void update(const Ends<Form> &ends, int64_t i, const Vectors &c) {
  const V gradient = ends.gradient(i);
  const V moment = ends.state(0, i);
  const V direction = hn::Add(hn::Mul(moment, c.beta1), hn::Mul(gradient, c.gradient_weight));
  const V param = hn::MulAdd(c.negative_lr, sign(direction), hn::Mul(ends.param(i), c.decay_factor));
  ends.store_param(param, i);
  ends.store_state(0, hn::MulAdd(c.moment_weight, gradient, hn::Mul(moment, c.beta2)), i);
}

template <class Form>
void update_all(const Slots &given, const LionConstants &constants) {
  const Slots slots = given;
  const Ends<Form> ends(slots);
  const Vectors vectors(constants);
  update_lines(slots, ends, 1, [&](int64_t i) { update(ends, i, vectors); });
  reference::lion_elements(rest_of_lines(slots, 1), constants);
}

}  // namespace

void lion(const Slots &slots, const Constants &given) {
  const auto constants = constants_in<LionConstants>(given);
  with_form(slots, [&]<class Form>(Form) { update_all<Form>(slots, constants); });
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
