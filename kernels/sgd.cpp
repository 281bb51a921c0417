/// @file Constants of stochastic gradient descent.
#include "kernels/sgd.h"

#include "kernels/reference/sgd-inl.h"

namespace zero::kernels {

SgdConstants sgd_constants(const HyperParameters &hyper) { return reference::Sgd::constants(hyper); }

}  // namespace zero::kernels
