/// @file Constants of Adam and AdamW.
#include "kernels/adam.h"

#include "kernels/reference/adam-inl.h"

namespace zero::kernels {

AdamConstants adam_constants(const HyperParameters &hyper) { return reference::Adam::constants(hyper); }
AdamConstants adamw_constants(const HyperParameters &hyper) { return reference::AdamW::constants(hyper); }

}  // namespace zero::kernels
