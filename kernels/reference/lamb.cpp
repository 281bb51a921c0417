/// @file LAMB, plain: lamb.h states the formula.
#include "kernels/reference/lamb-inl.h"
#include "kernels/reference/slots-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {
namespace {

struct Moments {
  float state[2];
};

Moments moments_at(const Slots &slots, int64_t i) { return {{slots.state[0][i], slots.state[1][i]}}; }

}  // namespace

void lamb_moment_elements(const Slots &slots, const AdamConstants &constants) {
  with_ends(slots, [&](const auto &ends) {
    for (int64_t i = 0; i < slots.count; ++i) {
      Moments moments = moments_at(slots, i);
      float none = 0;
      LambMoments::update(none, ends.gradient(i), moments.state, constants);
      for (int s = 0; s < 2; ++s) slots.state[s][i] = moments.state[s];
    }
  });
}

void lamb_direction_elements(float *out, const Slots &slots, const LambConstants &constants) {
  for (int64_t i = 0; i < slots.count; ++i) {
    out[i] = canonical(LambParam::direction(slots.param[i], moments_at(slots, i).state, constants));
  }
}

void lamb_elements(const Slots &slots, const LambConstants &constants) {
  for (int64_t i = 0; i < slots.count; ++i) LambParam::update(slots.param[i], 0, moments_at(slots, i).state, constants);
}

void lamb_moments(const Slots &slots, const Constants &constants) { lamb_moment_elements(slots, constants_in<AdamConstants>(constants)); }

void lamb_direction(float *out, const Slots &slots, const Constants &constants) {
  lamb_direction_elements(out, slots, constants_in<LambConstants>(constants));
}

void lamb(const Slots &slots, const Constants &constants) { lamb_elements(slots, constants_in<LambConstants>(constants)); }

}  // namespace zero::kernels::reference
