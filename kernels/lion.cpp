/// @file Constants of Lion.
#include "kernels/lion.h"

#include "kernels/reference/lion-inl.h"

namespace zero::kernels {

LionConstants lion_constants(const HyperParameters &hyper) { return reference::Lion::constants(hyper); }

}  // namespace zero::kernels
