/// @file Elementwise update kernels: one row each. Tables, targets and devices are generated from
/// this list.
#pragma once

/// ROW(kernel, Algorithm): the name of the kernel's field in Table, and the struct in
/// reference/<kernel>-inl.h that computes one element. Algorithms may share a kernel: adamw uses
/// adam's with other constants.
#define ZERO_UPDATE_KERNELS(ROW) \
  ROW(sgd, Sgd)                  \
  ROW(adam, Adam)                \
  ROW(adagrad, Adagrad)          \
  ROW(lion, Lion)
