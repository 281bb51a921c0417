/// @file compute_none: what takes the place of compute_cuda in builds without CUDA.
/// Knows only what to say.
#include <inttypes.h>
#include <stdio.h>

#include "compute.h"

int compute_create_cuda(int64_t device, int64_t capacity, struct compute **out) {
  (void)capacity;
  (void)out;
  fprintf(stderr, "train_fashion: --device cuda:%" PRId64 ": this build has no CUDA; build it where a CUDA Toolkit of 12.8 or newer is\n",
          device);
  return -1;
}
