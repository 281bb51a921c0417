/// @file Stochastic gradient descent, plain: sgd.h states the formula.
#include "kernels/reference/sgd-inl.h"
#include "kernels/reference/slots-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void sgd_elements(const Slots &slots, const SgdConstants &constants) { update_elements<Sgd>(slots, constants); }
void sgd(const Slots &slots, const Constants &constants) { sgd_elements(slots, constants_in<SgdConstants>(constants)); }

}  // namespace zero::kernels::reference
