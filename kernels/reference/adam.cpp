/// @file Adam and AdamW, plain: adam.h states the formula.
#include "kernels/reference/adam-inl.h"
#include "kernels/reference/slots-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void adam_elements(const Slots &slots, const AdamConstants &constants) { update_elements<Adam>(slots, constants); }
void adam(const Slots &slots, const HyperParameters &hyper) { adam_elements(slots, adam_constants(hyper)); }
void adamw(const Slots &slots, const HyperParameters &hyper) { adam_elements(slots, adamw_constants(hyper)); }

}  // namespace zero::kernels::reference
