/// @file LAMB, plain: lamb.h states the formula.
#include "kernels/reference/lamb-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {
namespace {

struct Moments {
  float state[2];
};

Moments moments_at(const Slots &slots, int64_t i) { return {{slots.state[0][i], slots.state[1][i]}}; }

}  // namespace

void lamb_moment_elements(const Slots &slots, const AdamConstants &constants) {
  for (int64_t i = 0; i < slots.count; ++i) {
    Moments moments = moments_at(slots, i);
    float none = 0;
    LambMoments::update(none, slots.grad[i], moments.state, constants);
    for (int s = 0; s < 2; ++s) slots.state[s][i] = moments.state[s];
  }
}

void lamb_direction_elements(float *out, const Slots &slots, const LambConstants &constants) {
  for (int64_t i = 0; i < slots.count; ++i) {
    out[i] = canonical(LambParam::direction(slots.param[i], moments_at(slots, i).state, constants));
  }
}

void lamb_elements(const Slots &slots, const LambConstants &constants) {
  for (int64_t i = 0; i < slots.count; ++i) LambParam::update(slots.param[i], 0, moments_at(slots, i).state, constants);
}

void lamb_moments(const Slots &slots, const HyperParameters &hyper) { lamb_moment_elements(slots, adamw_constants(hyper)); }

void lamb_direction(float *out, const Slots &slots, const HyperParameters &hyper) {
  lamb_direction_elements(out, slots, lamb_constants(hyper));
}

void lamb(const Slots &slots, const HyperParameters &hyper) { lamb_elements(slots, lamb_constants(hyper)); }

}  // namespace zero::kernels::reference
