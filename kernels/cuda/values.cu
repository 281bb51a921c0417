/// @file Element-wise operations over whole ranges: checks, copies, conversions, products, sums of
/// two, and masters that follow values. Each element is read and written once.
#include "kernels/cuda/entries.h"
#include "kernels/cuda/over_quads.h"

namespace zero::kernels::cuda {
namespace {

ZERO_DEVICE bool same_bits(uint16_t a, uint16_t b) { return a == b; }
ZERO_DEVICE bool same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

struct Checking {
  const void *values;
  DType dtype;
  float limit;
  int32_t *flag;

  ZERO_DEVICE void operator()(int64_t index, int count) const { check(load_wide(values, dtype, index, count), count, limit, flag); }
};

template <class Element>
struct Copying {
  void *out;
  const void *values;
  DType dtype;
  float limit;
  int32_t *flag;

  ZERO_DEVICE void operator()(int64_t index, int count) const {
    const Quad<Element> quad = load<Element>(values, index, count);
    store(out, index, count, quad);
    if (flag != nullptr) check(widened(quad, dtype), count, limit, flag);
  }
};

struct Converting {
  void *out;
  DType out_dtype;
  const void *values;
  DType dtype;

  ZERO_DEVICE void operator()(int64_t index, int count) const {
    store_narrow(out, out_dtype, index, count, load_wide(values, dtype, index, count));
  }
};

struct Scaling {
  float *out;
  const float *values;
  float factor;

  ZERO_DEVICE void operator()(int64_t index, int count) const {
    Quad<float> quad = load<float>(values, index, count);
    for (int i = 0; i < kQuad; ++i) quad.element[i] = reference::scaled(quad.element[i], factor);
    store(out, index, count, quad);
  }
};

struct Adding {
  void *sum;
  DType sum_dtype;
  const void *values;
  DType dtype;
  float factor;

  ZERO_DEVICE void operator()(int64_t index, int count) const {
    Quad<float> addend = load_wide(values, dtype, index, count);
    for (int i = 0; i < kQuad && factor != 1; ++i) addend.element[i] = reference::scaled(addend.element[i], factor);
    Quad<float> total = load_wide(sum, sum_dtype, index, count);
    for (int i = 0; i < kQuad; ++i) total.element[i] = reference::added(total.element[i], addend.element[i]);
    store_narrow(sum, sum_dtype, index, count, total);
  }
};

template <class Element>
struct Following {
  float *masters;
  const void *values;
  DType dtype;

  ZERO_DEVICE void operator()(int64_t index, int count) const {
    Quad<float> master = load<float>(masters, index, count);
    const Quad<Element> given = load<Element>(values, index, count);
    const Quad<Element> rounded = narrowed<Element>(master, dtype);
    const Quad<float> wanted = widened(given, dtype);
    for (int i = 0; i < kQuad; ++i) {
      if (!same_bits(rounded.element[i], given.element[i])) master.element[i] = wanted.element[i];
    }
    store(masters, index, count, master);
  }
};

}  // namespace

int32_t all_within(int64_t device, const void *values, int64_t dtype, int64_t count, float limit, int32_t *flag, void *stream) {
  if (flag == nullptr) return 0;
  return over_quads(device, stream, count, Checking{values, DType(dtype), limit, flag});
}

int32_t copy_within(int64_t device, void *out, const void *values, int64_t dtype, int64_t count, float limit, int32_t *flag, void *stream) {
  const auto type = DType(dtype);
  if (type == DType::f32) return over_quads(device, stream, count, Copying<float>{out, values, type, limit, flag});
  return over_quads(device, stream, count, Copying<uint16_t>{out, values, type, limit, flag});
}

int32_t convert(int64_t device, void *out, int64_t out_dtype, const void *values, int64_t dtype, int64_t count, void *stream) {
  if (out_dtype == dtype) return copy_within(device, out, values, dtype, count, 0, nullptr, stream);
  return over_quads(device, stream, count, Converting{out, DType(out_dtype), values, DType(dtype)});
}

int32_t scale(int64_t device, float *out, const float *values, int64_t count, float factor, void *stream) {
  return over_quads(device, stream, count, Scaling{out, values, factor});
}

int32_t add(int64_t device, void *sum, int64_t sum_dtype, const void *values, int64_t dtype, int64_t count, float factor, void *stream) {
  return over_quads(device, stream, count, Adding{sum, DType(sum_dtype), values, DType(dtype), factor});
}

int32_t follow(int64_t device, float *masters, const void *values, int64_t dtype, int64_t count, void *stream) {
  const auto type = DType(dtype);
  if (type == DType::f32) return over_quads(device, stream, count, Following<float>{masters, values, type});
  return over_quads(device, stream, count, Following<uint16_t>{masters, values, type});
}

}  // namespace zero::kernels::cuda
