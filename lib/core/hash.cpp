/// @file Hashes through xxHash.
#include "core/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <new>

namespace zero {
namespace {

XXH3_state_t *state_in(std::byte *memory) { return std::launder(reinterpret_cast<XXH3_state_t *>(memory)); }
const XXH3_state_t *state_in(const std::byte *memory) { return std::launder(reinterpret_cast<const XXH3_state_t *>(memory)); }

}  // namespace

uint64_t hash_of(const void *data, size_t nbytes, uint64_t seed) { return XXH3_64bits_withSeed(data, nbytes, seed); }

Hash128 hash128_of(const void *data, size_t nbytes, uint64_t seed) {
  const XXH128_hash_t value = XXH3_128bits_withSeed(data, nbytes, seed);
  return {value.low64, value.high64};
}

Hash::Hash() {
  static_assert(sizeof(XXH3_state_t) <= sizeof state_ && alignof(XXH3_state_t) <= 64);
  XXH3_64bits_reset(new (state_) XXH3_state_t);
}

void Hash::add(const void *data, size_t nbytes) { XXH3_64bits_update(state_in(state_), data, nbytes); }

uint64_t Hash::value() const { return XXH3_64bits_digest(state_in(state_)); }

}  // namespace zero
