/// @file The kernels that update elements one by one: a row each. Tables, targets and devices take what they have of them from here.
#pragma once

/// ROW(kernel, Algorithm): what Table calls it, and the struct in reference/<kernel>-inl.h that computes one element. Several algorithms
/// may share a kernel, as adamw does adam's, whose constants differ.
#define ZERO_UPDATE_KERNELS(ROW) \
  ROW(sgd, Sgd)                  \
  ROW(adam, Adam)                \
  ROW(adagrad, Adagrad)          \
  ROW(lion, Lion)
