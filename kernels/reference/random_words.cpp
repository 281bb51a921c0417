/// @file Random numbers of elements, plain: random.h says which. 4 bytes per element must move.
#include "kernels/philox.h"
#include "kernels/random.h"
#include "kernels/target.h"

#include <algorithm>

namespace zero::kernels::reference {

void random_words(uint32_t *out, int64_t count, const RandomKey &key, uint64_t first) {
  const uint32_t seed[2] = {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)};
  for (int64_t i = 0; i < count; i += 4) {
    const uint64_t place = first / 4 + static_cast<uint64_t>(i / 4);
    const uint32_t counter[4] = {static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32), counter_word2(key), counter_word3(key)};
    uint32_t words[4];
    zero_philox4x32(words, counter, seed);
    std::copy_n(words, std::min<int64_t>(4, count - i), out + i);
  }
}

}  // namespace zero::kernels::reference
