/// @file Range hashes: one block of threads per range of bytes, multilinear over a prime field
/// (Carter and Wegman, "Universal classes of hash functions", 1979; Lemire and Kaser, "Strongly
/// universal string hashing is fast", 2014). The order of the additions does not matter.
///
/// @verbatim
///   h = sum of a(i) * w(i) mod p,  p = 2^61 - 1
///   w(i) = the i-th 32-bit word, little endian; bytes after the end count as 0
///   a(i) = the upper 61 bits of number i of splitmix64 (Steele, Lea and Flood, 2014),
///          but 1 for 0 and p
/// @endverbatim
///
/// A change within one word always changes h, because 0 < a(i) < p and the difference of the words
/// is neither 0 nor a multiple of p. Changes in several words cancel for about one in 2^61 values
/// of one of their coefficients. Accidental changes of memory do not depend on the coefficients.
/// Each byte is read once.
#include "kernels/cuda/entries.h"
#include "kernels/cuda/launch.h"

namespace zero::kernels::cuda {
namespace {

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

/// Number `index` of splitmix64 with seed 0.
ZERO_DEVICE uint64_t random_at(uint64_t index) {
  uint64_t bits = (index + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

ZERO_DEVICE uint64_t coefficient(uint64_t index) {
  const uint64_t bits = random_at(index) >> 3;
  return bits == 0 || bits == kPrime ? 1 : bits;
}

/// Returns a number below 2^61 + 8 that is the same mod p, because 2^61 is 1 mod p.
ZERO_DEVICE uint64_t folded(uint64_t value) { return (value & kPrime) + (value >> 61); }

/// a * w mod p, below 2^62 + 2^33, for a below 2^61. The upper 29 and lower 32 bits of a are
/// multiplied separately.
ZERO_DEVICE uint64_t product(uint64_t a, uint32_t w) {
  const uint64_t upper = (a >> 32) * w;  // weighs 2^32: its bits from 29 on are multiples of 2^61
  const uint64_t lower = (a & 0xffffffff) * w;
  return ((upper & 0x1fffffff) << 32) + (upper >> 29) + folded(lower);
}

ZERO_DEVICE uint32_t word_at(const Bytes &bytes, int64_t index) {
  const auto *at = static_cast<const uint8_t *>(bytes.data) + 4 * index;
  const int64_t left = bytes.nbytes - 4 * index;
  if (left >= 4 && reinterpret_cast<uintptr_t>(at) % 4 == 0) return *reinterpret_cast<const uint32_t *>(at);
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    if (i < left) word |= static_cast<uint32_t>(at[i]) << (8 * i);
  }
  return word;
}

struct Hashing {
  static constexpr int kParts = 16;
  struct Registers {};
  struct Shared {
    uint64_t sum[kThreads];
    uint64_t part[kParts];
  };
  static constexpr int kPhases = 3;

  const Bytes *ranges;
  uint64_t *out;

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &shared) const {
    constexpr int kPerPart = kThreads / kParts;
    if constexpr (phase == 0) {
      shared.sum[place.thread] = sum_of(ranges[place.block], place.thread);
    } else if constexpr (phase == 1) {
      if (place.thread < kParts) shared.part[place.thread] = added(shared.sum + place.thread * kPerPart, kPerPart);
    } else if (place.thread == 0) {
      const uint64_t sum = added(shared.part, kParts);
      out[place.block] = sum >= kPrime ? sum - kPrime : sum;
    }
  }

  /// The sum over every kThreads-th word, from word `thread` on.
  ZERO_DEVICE uint64_t sum_of(const Bytes &bytes, int thread) const {
    const int64_t words = (bytes.nbytes + 3) / 4;
    uint64_t sum = 0;
    for (int64_t i = thread; i < words; i += kThreads)
      sum = folded(sum + product(coefficient(static_cast<uint64_t>(i)), word_at(bytes, i)));
    return sum;
  }

  ZERO_DEVICE uint64_t added(const uint64_t *values, int count) const {
    uint64_t sum = 0;
    for (int i = 0; i < count; ++i) sum = folded(sum + values[i]);
    return sum;
  }
};

}  // namespace

int32_t hash(int64_t device, const Bytes *ranges, int64_t count, uint64_t *out, void *stream) {
  return launch(device, stream, count, Hashing{ranges, out});
}

}  // namespace zero::kernels::cuda
