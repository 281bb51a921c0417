/// @file sampler: which samples a rank trains on in a step. Every rank computes the same permutation, so nothing is communicated.
/// Knows nothing of images or parameters.
#ifndef FASHION_SAMPLER_H
#define FASHION_SAMPLER_H

#include <stdint.h>

struct sampler {
  int64_t count; /* samples in an epoch */
  int64_t batch; /* samples of all ranks in a step; the last step of an epoch takes what is left */
  uint64_t seed;
  int64_t epoch; /* that `order` belongs to; -1 at first */
  int64_t *order;
};

/// Returns 0, or -1 when memory is short.
int sampler_create(struct sampler *sampler, int64_t count, int64_t batch, uint64_t seed);
void sampler_release(struct sampler *sampler);

int64_t sampler_steps_per_epoch(const struct sampler *sampler);

/// The samples of step `step` (from 0, over all epochs): an address of *out_count sample numbers, valid until the next call.
const int64_t *sampler_batch(struct sampler *sampler, int64_t step, int64_t *out_count);

#endif
