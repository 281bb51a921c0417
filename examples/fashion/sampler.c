/// @file sampler: a seeded Fisher-Yates shuffle per epoch.
/// Knows nothing of images or parameters.
#include "sampler.h"

#include <stdlib.h>

#include "../random.h"

int sampler_create(struct sampler *sampler, int64_t count, int64_t batch, uint64_t seed) {
  *sampler = (struct sampler){count, batch, seed, -1, malloc((size_t)count * sizeof(int64_t))};
  return sampler->order ? 0 : -1;
}

void sampler_release(struct sampler *sampler) { free(sampler->order); }

int64_t sampler_steps_per_epoch(const struct sampler *sampler) { return (sampler->count + sampler->batch - 1) / sampler->batch; }

static void shuffle(struct sampler *sampler, int64_t epoch) {
  /* Streams 0 .. 2^32 belong to first values. */
  uint64_t state = random_stream(sampler->seed, (UINT64_C(1) << 32) + (uint64_t)epoch);
  for (int64_t i = 0; i < sampler->count; i++) sampler->order[i] = i;
  for (int64_t i = sampler->count - 1; i > 0; i--) {
    const int64_t j = (int64_t)(random_next(&state) % (uint64_t)(i + 1));
    const int64_t kept = sampler->order[i];
    sampler->order[i] = sampler->order[j];
    sampler->order[j] = kept;
  }
  sampler->epoch = epoch;
}

const int64_t *sampler_batch(struct sampler *sampler, int64_t step, int64_t *out_count) {
  const int64_t steps = sampler_steps_per_epoch(sampler);
  const int64_t first = step % steps * sampler->batch;
  if (sampler->epoch != step / steps) shuffle(sampler, step / steps);
  *out_count = sampler->count - first < sampler->batch ? sampler->count - first : sampler->batch;
  return sampler->order + first;
}
