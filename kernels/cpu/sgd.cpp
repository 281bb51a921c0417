/// @file Stochastic gradient descent, SIMD: sgd.h states the formula.
#include "kernels/sgd.h"

#include "kernels/cpu/simd_slots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// The constants in vectors.
struct Vectors {
  HWY_INLINE explicit Vectors(const SgdConstants &constants)
      : negative_lr(hn::Set(D(), constants.negative_lr)),
        weight_decay(hn::Set(D(), constants.weight_decay)),
        momentum(hn::Set(D(), constants.momentum)),
        gradient_weight(hn::Set(D(), constants.gradient_weight)),
        adds_decay(hn::FirstN(D(), constants.adds_decay ? hn::Lanes(D()) : 0)) {}
  V negative_lr, weight_decay, momentum, gradient_weight;
  /// All lanes or none: a choice per element costs less than a second copy of every loop.
  hn::Mask<D> adds_decay;
};

template <MomentumForm kForm, class Form>
HWY_INLINE void update(const Ends<Form> &ends, int64_t i, const Vectors &c) {
  const V param = ends.param(i);
  V gradient = ends.gradient(i);
  gradient = hn::IfThenElse(c.adds_decay, hn::MulAdd(c.weight_decay, param, gradient), gradient);
  constexpr bool kReads = kForm == MomentumForm::classic || kForm == MomentumForm::nesterov;
  constexpr bool kNesterov = kForm == MomentumForm::nesterov || kForm == MomentumForm::first_nesterov;
  V buffer = gradient;
  if constexpr (kReads) buffer = hn::MulAdd(c.gradient_weight, gradient, hn::Mul(ends.state(0, i), c.momentum));
  gradient = kNesterov ? hn::MulAdd(c.momentum, buffer, gradient) : buffer;
  // Storing the parameter before the buffer is 5 % faster on AMD's Zen 4.
  ends.store_param(hn::MulAdd(c.negative_lr, gradient, param), i);
  if constexpr (kForm != MomentumForm::none) {
    ends.store_state(0, buffer, i);
  } else if constexpr (Form::kHalfStates) {
    ends.store_state(0, ends.state(0, i), i);  // NaN gets its one form, as in blocks
  }
}

template <MomentumForm kForm, class Form>
void update_all(const Slots &given, const SgdConstants &constants) {
  const Slots slots = given;
  const Ends<Form> ends(slots);
  const Vectors vectors(constants);
  constexpr int kStates = kForm == MomentumForm::none && !Form::kHalfStates ? 0 : 1;
  update_lines(slots, ends, kStates, [&](int64_t i) { update<kForm>(ends, i, vectors); });
  reference::sgd_elements(rest_of_lines(slots, kStates), constants);
}

template <MomentumForm kForm>
void run(const Slots &slots, const SgdConstants &constants) {
  with_form(slots, [&]<class Form>(Form) { update_all<kForm, Form>(slots, constants); });
}

}  // namespace

void sgd(const Slots &slots, const Constants &given) {
  const auto constants = constants_in<SgdConstants>(given);
  switch (constants.form) {
    case MomentumForm::none:
      return run<MomentumForm::none>(slots, constants);
    case MomentumForm::first:
      return run<MomentumForm::first>(slots, constants);
    case MomentumForm::classic:
      return run<MomentumForm::classic>(slots, constants);
    case MomentumForm::first_nesterov:
      return run<MomentumForm::first_nesterov>(slots, constants);
    case MomentumForm::nesterov:
      return run<MomentumForm::nesterov>(slots, constants);
  }
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
