/// @file Lion, plain: lion.h states the formula.
#include "kernels/reference/lion-inl.h"
#include "kernels/reference/slots-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void lion_elements(const Slots &slots, const LionConstants &constants) { update_elements<Lion>(slots, constants); }
void lion(const Slots &slots, const Constants &constants) { lion_elements(slots, constants_in<LionConstants>(constants)); }

}  // namespace zero::kernels::reference
