/// @file fp32 to 16-bit floats with stochastic rounding, SIMD: random.h states the rule. 10 bytes
/// per element must move, 8 to bf16.
#include "kernels/cpu/format-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Bits = hn::RebindToUnsigned<D>;
using U = hn::Vec<Bits>;

/// `magnitude` is below 2^-14.
HWY_INLINE U to_subnormal_f16(U magnitude, U random) {
  const Bits d;
  const D df;
  const hn::RebindToSigned<D> di;
  const V units = hn::Mul(hn::BitCast(df, magnitude), hn::Set(df, 0x1p24F));
  const auto whole = hn::ConvertTo(di, units);  // truncates
  const V part = hn::Sub(units, hn::ConvertTo(df, whole));
  const V chance = hn::Mul(hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRight<8>(random))), hn::Set(df, 0x1p-24F));
  const auto up = hn::IfThenElseZero(hn::RebindMask(d, hn::Lt(chance, part)), hn::Set(d, 1));
  return hn::Add(hn::BitCast(d, whole), up);
}

HWY_INLINE U to_f16(U bits, U random) {
  const Bits d;
  const U magnitude = hn::And(bits, hn::Set(d, 0x7fffffff));
  const U normal = hn::Sub(hn::ShiftRight<13>(hn::Add(magnitude, hn::ShiftRight<19>(random))), hn::Set(d, 112 << 10));
  const auto is_normal = hn::Gt(magnitude, hn::Set(d, 0x387fffff));
  const U small = to_subnormal_f16(hn::IfThenZeroElse(is_normal, magnitude), random);
  const U finite = hn::IfThenElse(is_normal, normal, small);
  const U limited = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x477fffff)), hn::Set(d, 0x7c00), finite);
  const U result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7f800000)), hn::Set(d, 0x7e00), limited);
  return hn::Or(result, hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000)));
}

void narrow_to_f16(uint16_t *out, const float *values, int64_t count, const uint32_t *random) {
  const D d;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const U bits = hn::BitCast(Bits(), canonical(d, hn::LoadU(d, values + i)));
    const U result = to_f16(bits, hn::LoadU(Bits(), random + i));
    hn::StoreU(hn::TruncateTo(F16::Bits16(), result), F16::Bits16(), out + i);
  }
}

void narrow_to_bf16(uint16_t *out, const float *values, int64_t count, const uint32_t *random) {
  const D d;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const V value = canonical(d, hn::LoadU(d, values + i));
    hn::StoreU(Bf16::rounded_stochastic(value, random, i), Bf16::Bits16(), out + i);
  }
}

}  // namespace

void narrow_stochastic(void *out, DType dtype, const float *values, int64_t count, const uint32_t *random) {
  auto *bits = static_cast<uint16_t *>(out);
  const int64_t whole = whole_steps<uint16_t>(count);
  (dtype == DType::f16 ? narrow_to_f16 : narrow_to_bf16)(bits, values, whole, random);
  reference::narrow_stochastic(bits + whole, dtype, values + whole, count - whole, random + (dtype == DType::f16 ? whole : whole / 2));
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
