/// @file Conversions, SIMD: fp32 from and to 16-bit floats. reference/convert.cpp states the
/// rounding. 6 bytes per element must move.
#include "kernels/cpu/format-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

template <class Format>
void widen_steps(float *out, const void *values, int64_t count) {
  const typename Format::D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += kStep<uint16_t>) {
    prefetch(static_cast<const uint16_t *>(values) + i);
    for (int64_t lane = i; lane < i + kStep<uint16_t>; lane += lanes) {
      hn::StoreU(canonical(d, Format::load(values, lane)), d, out + lane);
    }
  }
}

template <class Format>
void narrow_steps(void *out, const float *values, int64_t count) {
  const typename Format::D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += kStep<uint16_t>) {
    prefetch_beside<uint16_t>(values + i);
    prefetch_beside<uint16_t>(values + i + kStep<float>);
    for (int64_t lane = i; lane < i + kStep<uint16_t>; lane += lanes) {
      Format::put(canonical(d, hn::LoadU(d, values + lane)), out, lane, false);
    }
  }
}

}  // namespace

void widen(float *out, const void *values, DType dtype, int64_t count) {
  const int64_t whole = whole_steps<uint16_t>(count);
  (dtype == DType::f16 ? widen_steps<F16> : widen_steps<Bf16>)(out, values, whole);
  reference::widen(out + whole, static_cast<const uint16_t *>(values) + whole, dtype, count - whole);
}

void narrow(void *out, DType dtype, const float *values, int64_t count) {
  const int64_t whole = whole_steps<uint16_t>(count);
  (dtype == DType::f16 ? narrow_steps<F16> : narrow_steps<Bf16>)(out, values, whole);
  reference::narrow(static_cast<uint16_t *>(out) + whole, dtype, values + whole, count - whole);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
