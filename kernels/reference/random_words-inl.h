/// @file Random numbers of elements: random.h defines them.
#pragma once

#include "kernels/random.h"
#include "kernels/reference/element.h"

namespace zero::kernels::reference {

struct Words {
  uint32_t word[4];
};

/// Philox4x32-10 (Salmon et al., 2011, section 5.1). Random123 has it too, but its header includes
/// C++ streams.
ZERO_ELEMENT Words philox(Words x, uint32_t key0, uint32_t key1) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * x.word[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * x.word[2];
    x = {{static_cast<uint32_t>(product1 >> 32) ^ x.word[1] ^ key0, static_cast<uint32_t>(product1),
          static_cast<uint32_t>(product0 >> 32) ^ x.word[3] ^ key1, static_cast<uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

/// The random numbers of the elements at [first, first + 4). `first` is a multiple of 4.
ZERO_ELEMENT Words random_words_at(uint64_t first, const RandomKey &key) {
  const uint64_t place = first / 4;
  const Words counter = {{static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32), counter_word2(key), counter_word3(key)}};
  return philox(counter, static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32));
}

/// The 16 bits for element `index` of a bf16 slot.
ZERO_ELEMENT uint32_t random_half(const uint32_t *words, int64_t index) { return (words[index / 2] >> (index % 2 * 16)) & 0xffff; }

/// The 16 bits each for the elements of a bf16 slot at [first, first + 4). `first` is a multiple of
/// 4.
ZERO_ELEMENT Words random_halves_at(uint64_t first, const RandomKey &key) {
  const Words words = random_words_at(first / 8 * 4, key);
  const bool behind = first % 8 != 0;
  const uint32_t pairs[2] = {behind ? words.word[2] : words.word[0], behind ? words.word[3] : words.word[1]};
  return {{random_half(pairs, 0), random_half(pairs, 1), random_half(pairs, 2), random_half(pairs, 3)}};
}

}  // namespace zero::kernels::reference
