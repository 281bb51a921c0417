/// @file Random numbers of elements, plain: random.h defines them. 4 bytes per element must move.
#include "kernels/reference/random_words-inl.h"
#include "kernels/target.h"

#include <algorithm>

namespace zero::kernels::reference {

void random_words(uint32_t *out, int64_t count, const RandomKey &key, uint64_t first) {
  for (int64_t i = 0; i < count; i += 4) {
    const Words words = random_words_at(first + static_cast<uint64_t>(i), key);
    std::copy_n(words.word, std::min<int64_t>(4, count - i), out + i);
  }
}

}  // namespace zero::kernels::reference
