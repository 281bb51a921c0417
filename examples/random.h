/// @file random: splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014), for first values and shuffles.
/// Integers only, so that a reference in another language draws the same numbers.
#ifndef EXAMPLES_RANDOM_H
#define EXAMPLES_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/// Start of the stream number `stream` of a seed.
static inline uint64_t random_stream(uint64_t seed, uint64_t stream) {
  uint64_t state = seed;
  state = random_next(&state) + stream;
  return random_next(&state);
}

#endif
