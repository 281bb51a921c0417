/// @file Constants of Adagrad.
#include "kernels/adagrad.h"

#include "kernels/reference/adagrad-inl.h"

namespace zero::kernels {

AdagradConstants adagrad_constants(const HyperParameters &hyper) { return reference::Adagrad::constants(hyper); }

}  // namespace zero::kernels
