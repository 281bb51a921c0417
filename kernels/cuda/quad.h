/// @file Quads: four adjacent elements, which one thread moves at once. Loads, stores and
/// conversions by dtype.
#pragma once

#include "core/dtype.h"
#include "kernels/cuda/launch.h"
#include "kernels/reference/float_bits.h"
#include "kernels/reference/random_words-inl.h"

namespace zero::kernels::cuda {

inline constexpr int kQuad = 4;

template <class Element>
struct alignas(kQuad * sizeof(Element)) Quad {
  Element element[kQuad];
};

/// True if `data` is aligned such that quads begin at multiples of kQuad.
template <class Element>
ZERO_DEVICE bool has_whole_quads(const void *data) {
  return reinterpret_cast<uintptr_t>(data) % alignof(Quad<Element>) == 0;
}

/// The quad at `index` of data for which has_whole_quads() is true.
template <class Element>
ZERO_DEVICE Quad<Element> &whole_quad(void *data, int64_t index) {
  return *reinterpret_cast<Quad<Element> *>(static_cast<Element *>(data) + index);
}
template <class Element>
ZERO_DEVICE const Quad<Element> &whole_quad(const void *data, int64_t index) {
  return *reinterpret_cast<const Quad<Element> *>(static_cast<const Element *>(data) + index);
}

/// Loads the elements from `index` on; those from `count` on are 0.
template <class Element>
ZERO_DEVICE Quad<Element> load(const void *data, int64_t index, int count) {
  const Element *from = static_cast<const Element *>(data) + index;
  if (count == kQuad && has_whole_quads<Element>(from)) return whole_quad<Element>(data, index);
  Quad<Element> quad = {};
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) {
    if (i < count) quad.element[i] = from[i];
  }
  return quad;
}

template <class Element>
ZERO_DEVICE void store(void *data, int64_t index, int count, const Quad<Element> &quad) {
  Element *to = static_cast<Element *>(data) + index;
  if (count == kQuad && has_whole_quads<Element>(to)) {
    whole_quad<Element>(data, index) = quad;
    return;
  }
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) {
    if (i < count) to[i] = quad.element[i];
  }
}

#ifdef __CUDACC__
template <int kNbytes>
struct Words;
template <>
struct Words<4> {
  using Type = uint32_t;
};
template <>
struct Words<8> {
  using Type = uint2;
};
template <>
struct Words<16> {
  using Type = uint4;
};

/// Accesses device memory by one load or one store. For references to quads the compiler may emit
/// one access per element.
template <class Element>
ZERO_DEVICE Quad<Element> get_quad(const void *data, int64_t index) {
  __builtin_assume(__isGlobal(data));
  using Type = typename Words<sizeof(Quad<Element>)>::Type;
  return std::bit_cast<Quad<Element>>(*reinterpret_cast<const Type *>(static_cast<const Element *>(data) + index));
}
template <class Element>
ZERO_DEVICE void put_quad(void *data, int64_t index, const Quad<Element> &quad) {
  __builtin_assume(__isGlobal(data));
  using Type = typename Words<sizeof(Quad<Element>)>::Type;
  *reinterpret_cast<Type *>(static_cast<Element *>(data) + index) = std::bit_cast<Type>(quad);
}

/// The device's own conversions, which round as float_bits.h does. They have no branches, so that
/// loads of several elements overlap.
ZERO_DEVICE float from_f16(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
ZERO_DEVICE uint16_t to_f16(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return std::isnan(value) ? 0x7e00 : bits;
}
ZERO_DEVICE uint16_t to_bf16(float value) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return std::isnan(value) ? 0x7fc0 : bits;
}
#else
template <class Element>
ZERO_DEVICE Quad<Element> get_quad(const void *data, int64_t index) {
  return whole_quad<Element>(data, index);
}
template <class Element>
ZERO_DEVICE void put_quad(void *data, int64_t index, const Quad<Element> &quad) {
  whole_quad<Element>(data, index) = quad;
}
using reference::from_f16;
ZERO_DEVICE uint16_t to_f16(float value) { return reference::to_f16(reference::canonical(value)); }
ZERO_DEVICE uint16_t to_bf16(float value) { return reference::to_bf16(reference::canonical(value)); }
#endif

/// Widens f16 and bf16 as convert.h does.
ZERO_DEVICE Quad<float> widened(const Quad<uint16_t> &quad, DType dtype) {
  Quad<float> wide;
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) {
    wide.element[i] = reference::canonical(dtype == DType::f16 ? from_f16(quad.element[i]) : reference::from_bf16(quad.element[i]));
  }
  return wide;
}
ZERO_DEVICE Quad<float> widened(const Quad<float> &quad, DType) { return quad; }

/// Rounds to nearest even.
template <class Element>
ZERO_DEVICE Quad<Element> narrowed(const Quad<float> &quad, DType dtype);

template <>
ZERO_DEVICE Quad<float> narrowed<float>(const Quad<float> &quad, DType) {
  Quad<float> result;
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) result.element[i] = reference::canonical(quad.element[i]);
  return result;
}

template <>
ZERO_DEVICE Quad<uint16_t> narrowed<uint16_t>(const Quad<float> &quad, DType dtype) {
  Quad<uint16_t> result;
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) {
    result.element[i] = dtype == DType::f16 ? to_f16(quad.element[i]) : to_bf16(quad.element[i]);
  }
  return result;
}

ZERO_DEVICE Quad<uint16_t> narrowed_stochastic(const Quad<float> &quad, DType dtype, const reference::Words &random) {
  Quad<uint16_t> result;
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) {
    const float value = reference::canonical(quad.element[i]);
    result.element[i] =
        dtype == DType::f16 ? reference::to_f16_stochastic(value, random.word[i]) : reference::to_bf16_stochastic(value, random.word[i]);
  }
  return result;
}

/// Loads f32, f16 or bf16 as fp32; store_narrow is the reverse.
ZERO_DEVICE Quad<float> load_wide(const void *data, DType dtype, int64_t index, int count) {
  if (dtype == DType::f32) return load<float>(data, index, count);
  return widened(load<uint16_t>(data, index, count), dtype);
}

ZERO_DEVICE void store_narrow(void *data, DType dtype, int64_t index, int count, const Quad<float> &quad) {
  if (dtype == DType::f32) return store(data, index, count, narrowed<float>(quad, dtype));
  store(data, index, count, narrowed<uint16_t>(quad, dtype));
}

/// Rounds values to a dtype and returns them in fp32.
ZERO_DEVICE Quad<float> rounded(const Quad<float> &quad, DType dtype) {
  if (dtype == DType::f32) return narrowed<float>(quad, dtype);
  return widened(narrowed<uint16_t>(quad, dtype), dtype);
}

}  // namespace zero::kernels::cuda
