/// @file Adam and AdamW, plain: adam.h states the formula.
#include "kernels/reference/adam-inl.h"
#include "kernels/reference/slots-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void adam_elements(const Slots &slots, const AdamConstants &constants) { update_elements<Adam>(slots, constants); }
void adam(const Slots &slots, const Constants &constants) { adam_elements(slots, constants_in<AdamConstants>(constants)); }

}  // namespace zero::kernels::reference
