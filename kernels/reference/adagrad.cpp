/// @file Adagrad, plain: adagrad.h states the formula.
#include "kernels/reference/adagrad-inl.h"
#include "kernels/reference/slots-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void adagrad_elements(const Slots &slots, const AdagradConstants &constants) { update_elements<Adagrad>(slots, constants); }
void adagrad(const Slots &slots, const Constants &constants) { adagrad_elements(slots, constants_in<AdagradConstants>(constants)); }

}  // namespace zero::kernels::reference
