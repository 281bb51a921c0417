/// @file Random inputs of the kernel tests: a generator with a fixed algorithm, so that vectors
/// made elsewhere can be repeated.
#pragma once

#include "tests/sizes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

namespace zero::kernels::test {

/// splitmix64 (Steele, Lea and Flood, 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  int64_t below(int64_t bound) { return static_cast<int64_t>(next() % static_cast<uint64_t>(bound)); }

  /// A multiple of 2^-23 in [-1, 1), divided by 2^k, k in 0 .. largest_shift.
  float value(int largest_shift) {
    const uint64_t bits = next();
    const auto mantissa = static_cast<float>(static_cast<int64_t>(bits >> 40) - (1 << 23));
    return std::ldexp(mantissa, -23 - static_cast<int>((bits & 0xff) % static_cast<uint64_t>(largest_shift + 1)));
  }

  std::vector<float> values(int64_t count, int largest_shift) {
    std::vector<float> result(static_cast<size_t>(count));
    for (float &element : result) element = value(largest_shift);
    return result;
  }

  /// Any bits: one in eight is NaN, infinite, subnormal, zero or largest, with either sign.
  uint64_t special_bits(int nbits, int fraction_nbits) {
    const uint64_t all = nbits == 64 ? ~uint64_t{0} : (uint64_t{1} << nbits) - 1;
    const uint64_t sign = uint64_t{1} << (nbits - 1);
    const uint64_t fraction = (uint64_t{1} << fraction_nbits) - 1;
    const uint64_t infinity = all & ~sign & ~fraction;
    const uint64_t random = next() & all;
    switch (below(48)) {
      case 0:
        return random | infinity | 1;  // a NaN with any payload and sign
      case 1:
        return (random & sign) | infinity;
      case 2:
        return random & (sign | fraction);  // subnormal
      case 3:
        return random & sign;
      case 4:
        return (random & sign) | 1;
      case 5:
        return (random & sign) | (infinity - 1);
      default:
        return random;
    }
  }

 private:
  uint64_t state_;
};

/// The number of random cases: all only in a full run, and few if every access is checked.
inline int64_t cases(int64_t full) {
  if (zero::test::full_tests()) return full;
  return std::max<int64_t>(1, full / (zero::test::few_tests() ? 200 : 10));
}

/// The number of elements of case `index`: every number up to `every`, then random ones below
/// `most`. In runs with few cases, numbers at which loops change between vectors, lines and the
/// rest.
inline int64_t length_of_case(Random &random, int64_t index, int64_t every, int64_t most) {
  constexpr int64_t kSeams[] = {145, 33, 257, 17, 0, 129, 15, 1, 513, 65};
  if (zero::test::few_tests()) return kSeams[static_cast<size_t>(index) % std::size(kSeams)];
  return index <= every ? index : random.below(most);
}

}  // namespace zero::kernels::test
