/// @file Initial values of parameters.
#include "kernels/initialise.h"

#include "kernels/philox.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace zero::kernels {
namespace {

constexpr int64_t kGroup = 4;  ///< elements per Philox output
using Words = std::array<uint64_t, kGroup>;
using Values = std::array<float, kGroup>;

double unit(uint64_t word) { return static_cast<double>(word >> 11) * 0x1p-53; }

Values uniform(const Words &words, float low, float high) {
  Values values;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(low + (double{high} - low) * unit(words[i]));
    if (values[i] >= high && low < high) values[i] = std::nextafter(high, low);
  }
  return values;
}

Values normal(const Words &words, double mean, double deviation) {
  Values values;
  for (size_t i = 0; i < values.size(); i += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - unit(words[i])));
    const double angle = 2 * std::numbers::pi * unit(words[i + 1]);
    values[i] = static_cast<float>(mean + deviation * (radius * std::cos(angle)));
    values[i + 1] = static_cast<float>(mean + deviation * (radius * std::sin(angle)));
  }
  return values;
}

}  // namespace

void initialise(float *out, int64_t count, Initialiser kind, double a, double b, uint64_t seed, uint64_t tensor, int64_t first_index) {
  if (kind == Initialiser::constant) {
    std::fill_n(out, count, static_cast<float>(a));
    return;
  }
  const uint64_t key[2] = {seed, tensor};
  for (int64_t at = 0; at < count;) {
    const int64_t index = first_index + at;
    const uint64_t counter[4] = {static_cast<uint64_t>(index / kGroup), 0, 0, 0};
    Words words;
    zero_philox4x64(words.data(), counter, key);
    const Values values = kind == Initialiser::uniform ? uniform(words, static_cast<float>(a), static_cast<float>(b)) : normal(words, a, b);
    const int64_t begin = index % kGroup;
    const int64_t taken = std::min(kGroup - begin, count - at);
    std::copy_n(values.begin() + begin, taken, out + at);
    at += taken;
  }
}

}  // namespace zero::kernels
