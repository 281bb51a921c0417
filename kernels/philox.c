/* @file Philox: Random123 behind C functions. */
#include "kernels/philox.h"

#include <Random123/philox.h>
#include <string.h>

void zero_philox4x64(uint64_t out[4], const uint64_t counter[4], const uint64_t key[2]) {
  philox4x64_ctr_t words;
  philox4x64_key_t seed;
  memcpy(words.v, counter, sizeof words.v);
  memcpy(seed.v, key, sizeof seed.v);
  words = philox4x64(words, seed);
  memcpy(out, words.v, sizeof words.v);
}
