/// @file The loops of limits.h in Highway, for the one target that this file is compiled for. Nothing of the standard library may be
/// instantiated here: its code would be shared with files compiled for less.
#include "limits.h"

#define HWY_COMPILE_ONLY_STATIC
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace zero::bench {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

constexpr int64_t kStep = 16;  // floats of a cache line
constexpr int64_t kAhead = 1024 / sizeof(float);

template <int kModified>
void modify(const float *read, float *const *modified, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto little = hn::Set(d, 1e-30F);
  float *arrays[kModified];
  for (int k = 0; k < kModified; ++k) arrays[k] = modified[k];
  for (int64_t line = 0; line < count; line += kStep) {
    __builtin_prefetch(read + line + kAhead);
    for (float *array : arrays) __builtin_prefetch(array + line + kAhead);
    for (int64_t i = line; i < line + kStep; i += lanes) {
      const auto addend = hn::Mul(hn::Load(d, read + i), little);
      for (float *array : arrays) hn::Store(hn::Add(hn::Load(d, array + i), addend), d, array + i);
    }
  }
}

template <int kSources>
void write(float *out, const float *const *sources, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float *arrays[kSources];
  for (int k = 0; k < kSources; ++k) arrays[k] = sources[k];
  for (int64_t line = 0; line < count; line += kStep) {
    for (const float *array : arrays) __builtin_prefetch(array + line + kAhead);
    for (int64_t i = line; i < line + kStep; i += lanes) {
      auto value = hn::Load(d, arrays[0] + i);
      for (int k = 1; k < kSources; ++k) value = hn::Add(value, hn::Load(d, arrays[k] + i));
      hn::Stream(value, d, out + i);
    }
  }
  hwy::FlushStream();
}

}  // namespace

void move_modified(const float *read, float *const *modified, int64_t modified_count, int64_t count) {
  (modified_count == 1 ? modify<1> : modified_count == 2 ? modify<2> : modify<3>)(read, modified, count);
}

void move_written(float *out, const float *const *sources, int64_t source_count, int64_t count) {
  (source_count == 1 ? write<1> : source_count == 2 ? write<2> : write<4>)(out, sources, count);
}

float move_read(const float *values, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (int64_t line = 0; line < count; line += kStep) {
    __builtin_prefetch(values + line + kAhead);
    for (int64_t i = line; i < line + kStep; i += lanes) sum = hn::Add(sum, hn::Load(d, values + i));
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

float multiply_add(int64_t count) {
  const D d;
  constexpr int kChains = 12;  // as long as two units need for a sum, and few enough for 16 registers
  const auto factor = hn::Set(d, 0.999F);
  const auto addend = hn::Set(d, 1e-3F);
  hn::Vec<D> sums[kChains];
  for (auto &sum : sums) sum = hn::Iota(d, 1);
  const auto step = kChains * static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += step) {
    for (auto &sum : sums) sum = hn::MulAdd(sum, factor, addend);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  return hn::GetLane(sums[0]);
}

}  // namespace zero::bench
HWY_AFTER_NAMESPACE();
