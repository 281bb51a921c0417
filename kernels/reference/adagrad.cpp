/// @file Adagrad, plain: adagrad.h states the formula.
#include "kernels/reference/adagrad-inl.h"
#include "kernels/reference/slots-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void adagrad_elements(const Slots &slots, const AdagradConstants &constants) { update_elements<Adagrad>(slots, constants); }
void adagrad(const Slots &slots, const HyperParameters &hyper) { adagrad_elements(slots, adagrad_constants(hyper)); }

}  // namespace zero::kernels::reference
