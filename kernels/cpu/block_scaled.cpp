/// @file Block-scaled floats, SIMD: block_scaled.h states format and rounding. 5 bytes per element
/// must move, 9 with random numbers.
#include "kernels/block_scaled.h"

#include "kernels/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Bits = hn::RebindToUnsigned<D>;
using Signed = hn::RebindToSigned<D>;
using U = hn::Vec<Bits>;
using Codes = hn::Rebind<uint8_t, D>;

constexpr int kCut = 20;  ///< mantissa bits of fp32 that the formats do not have

struct E4m3 {
  static constexpr bool kHasSign = true;
  static constexpr uint32_t kBias = 7;
  static constexpr uint32_t kNan = 0x7f;
  static constexpr float kLargest = 448;
};

struct Ue5m3 {
  static constexpr bool kHasSign = false;
  static constexpr uint32_t kBias = 15;
  static constexpr uint32_t kNan = 0xff;
  static constexpr float kLargest = 114688;
};

HWY_INLINE U set(uint32_t value) { return hn::Set(Bits(), value); }
HWY_INLINE V power_of_two(uint32_t biased_exponent) { return hn::BitCast(D(), set(biased_exponent << 23)); }
/// Returns the magnitude, or 0 if the value is not finite.
HWY_INLINE V finite_magnitude(V value) {
  const V magnitude = hn::Abs(value);
  return hn::IfThenElseZero(hn::Lt(magnitude, power_of_two(255)), magnitude);
}

/// The properties of a line that determine its codes.
struct LineOf {
  float absmax;
  bool all_valid;  ///< no element is NaN, infinite or of a sign that the format lacks
};

template <class Format>
HWY_INLINE LineOf look_at(const float *values) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  // As integers, the bits of invalid values are above those of all valid ones.
  const U kept = set(Format::kHasSign ? 0x7fffffff : 0xffffffff);
  U most = hn::Zero(Bits());
  for (int64_t i = 0; i < kLine; i += lanes) most = hn::Max(most, hn::And(hn::BitCast(Bits(), hn::LoadU(D(), values + i)), kept));
  const U largest = hn::MaxOfLanes(Bits(), most);
  if (hn::GetLane(largest) < 0x7f800000) return {hn::GetLane(hn::BitCast(D(), largest)), true};
  V absmax = hn::Zero(D());
  for (int64_t i = 0; i < kLine; i += lanes) absmax = hn::Max(absmax, finite_magnitude(hn::LoadU(D(), values + i)));
  return {hn::GetLane(hn::MaxOfLanes(D(), absmax)), false};
}

template <class Format>
HWY_INLINE float scale_of(float absmax) {
  if (absmax == 0) return 0;
  const float scale = absmax / Format::kLargest;
  return scale < 0x1p-126F ? 0x1p-126F : scale;
}

/// Rounds `units`, which is below 8, to whole numbers.
template <bool kStochastic>
HWY_INLINE U round_units(V units, U random) {
  if constexpr (!kStochastic) return hn::BitCast(Bits(), hn::NearestInt(units));
  const auto whole = hn::ConvertTo(Signed(), units);  // cut
  const V part = hn::Sub(units, hn::ConvertTo(D(), whole));
  const V chance = hn::Mul(hn::ConvertTo(D(), hn::BitCast(Signed(), hn::ShiftRight<8>(random))), hn::Set(D(), 0x1p-24F));
  return hn::Add(hn::BitCast(Bits(), whole), hn::IfThenElseZero(hn::RebindMask(Bits(), hn::Lt(chance, part)), set(1)));
}

/// `value` is in [0, largest]. When rounding to nearest it may be a few units in the last place
/// above.
template <class Format, bool kStochastic>
HWY_INLINE U round(V value, U random) {
  const U bits = hn::BitCast(Bits(), value);
  // Rounding carries into the code. The same addition adjusts for the difference of the formats'
  // biases.
  constexpr uint32_t kRebias = (127 - Format::kBias) << 23;
  const U added = kStochastic ? hn::Sub(hn::ShiftRight<32 - kCut>(random), set(kRebias))
                              : hn::Add(hn::And(hn::ShiftRight<kCut>(bits), set(1)), set((1U << (kCut - 1)) - 1 - kRebias));
  const U normal = hn::ShiftRight<kCut>(hn::Add(bits, added));
  const auto is_normal = hn::Ge(value, power_of_two(128 - Format::kBias));
  if (HWY_LIKELY(hn::AllTrue(D(), is_normal))) return normal;
  const V units = hn::Mul(hn::IfThenZeroElse(is_normal, value), power_of_two(127 + Format::kBias + 2));
  return hn::IfThenElse(hn::RebindMask(Bits(), is_normal), normal, round_units<kStochastic>(units, random));
}

/// `kAllValid`: LineOf::all_valid.
template <class Format, bool kStochastic, bool kAllValid>
HWY_INLINE U encoded(V value, V inverse, U random) {
  const V kept = kAllValid ? hn::Abs(value) : finite_magnitude(value);
  // Rounding of scale and inverse may take this slightly above the largest; rounding to nearest
  // then gives the largest.
  const V scaled = hn::Mul(kept, inverse);
  U code = round<Format, kStochastic>(kStochastic ? hn::Min(scaled, hn::Set(D(), Format::kLargest)) : scaled, random);
  if constexpr (Format::kHasSign) {
    code = hn::Or(code, hn::And(hn::ShiftRight<24>(hn::BitCast(Bits(), value)), set(0x80)));
  } else {
    code = hn::Max(code, hn::Min(hn::BitCast(Bits(), kept), set(1)));
  }
  if constexpr (kAllValid) return code;
  auto valid = hn::Lt(hn::Abs(value), power_of_two(255));
  if constexpr (!Format::kHasSign) valid = hn::And(valid, hn::Ge(value, hn::Zero(D())));
  return hn::IfThenElse(hn::RebindMask(Bits(), valid), code, set(Format::kNan));
}

template <class Format, bool kStochastic, bool kAllValid>
HWY_INLINE void encode_line(uint8_t *codes, V inverse, const float *values, const uint32_t *random) {
  for (int64_t i = 0; i < kLine; i += static_cast<int64_t>(hn::Lanes(D()))) {
    const U words = kStochastic ? hn::LoadU(Bits(), random + i) : hn::Zero(Bits());
    const U code = encoded<Format, kStochastic, kAllValid>(hn::LoadU(D(), values + i), inverse, words);
    hn::StoreU(hn::TruncateTo(Codes(), code), Codes(), codes + i);
  }
}

/// Lines that are examined together: each examination ends in a chain of shuffles and divisions,
/// for which the next line need not wait.
constexpr int64_t kTogether = 4;

template <class Format, bool kStochastic>
void encode_lines(uint8_t *codes, float *scales, const float *values, int64_t count, const uint32_t *random) {
  for (int64_t first = 0; first < count; first += kTogether * kLine) {
    const int64_t end = first + kTogether * kLine < count ? first + kTogether * kLine : count;
    LineOf lines[kTogether];
    float inverses[kTogether];
    for (int64_t begin = first; begin < end; begin += kLine) {
      const int64_t line = (begin - first) / kLine;
      lines[line] = look_at<Format>(values + begin);
      const float scale = scale_of<Format>(lines[line].absmax);
      scales[begin / kLine] = scale;
      inverses[line] = scale == 0 ? 0 : 1 / scale;
    }
    for (int64_t begin = first; begin < end; begin += kLine) {
      const int64_t line = (begin - first) / kLine;
      const uint32_t *words = kStochastic ? random + begin : nullptr;
      const auto encode_this = lines[line].all_valid ? encode_line<Format, kStochastic, true> : encode_line<Format, kStochastic, false>;
      encode_this(codes + begin, hn::Set(D(), inverses[line]), values + begin, words);
    }
  }
}

/// Shifts codes to the place of sign, exponent and mantissa of fp32, without adjusting for the
/// difference of biases.
template <class Format>
HWY_INLINE U lifted(const uint8_t *codes) {
  if constexpr (!Format::kHasSign) return hn::ShiftLeft<kCut>(hn::PromoteTo(Bits(), hn::LoadU(Codes(), codes)));
  const auto *with_sign = reinterpret_cast<const int8_t *>(codes);
  const auto number = hn::PromoteTo(Signed(), hn::LoadU(hn::Rebind<int8_t, D>(), with_sign));
  return hn::And(hn::BitCast(Bits(), hn::ShiftLeft<kCut>(number)), set(0x87f00000));
}

/// The value of a normal code, without its scale. The code is at least 8 and not NaN.
template <class Format>
HWY_INLINE V normal_value(U lifted) {
  return hn::BitCast(D(), hn::Add(lifted, set((127 - Format::kBias) << 23)));
}

/// The value of any code, without its scale and sign.
template <class Format>
HWY_INLINE V any_magnitude(U lifted) {
  const U code = hn::ShiftRight<kCut>(lifted);
  const V small = hn::Mul(hn::ConvertTo(D(), hn::BitCast(Signed(), code)), power_of_two(127 - Format::kBias - 2));
  const V value = hn::IfThenElse(hn::RebindMask(D(), hn::Gt(code, set(7))), normal_value<Format>(lifted), small);
  return hn::IfThenElse(hn::RebindMask(D(), hn::Eq(code, set(Format::kNan))), hn::BitCast(D(), set(0x7fc00000)), value);
}

template <class Format>
void decode_lines(float *out, const uint8_t *codes, const float *scales, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  constexpr uint32_t kLeast = 8U << kCut;
  constexpr uint32_t kBeyond = Format::kNan << kCut;
  const U sign = set(Format::kHasSign ? 0x80000000 : 0);
  for (int64_t begin = 0; begin < count; begin += kLine) {
    const V scale = hn::Set(D(), scales[begin / kLine]);
    const bool is_finite = hn::AllTrue(D(), hn::Lt(hn::Abs(scale), power_of_two(255)));
    prefetch(codes + begin);
    for (int64_t i = begin; i < begin + kLine; i += lanes) {
      const U bits = lifted<Format>(codes + i);
      const U magnitude = hn::AndNot(sign, bits);
      if (HWY_LIKELY(is_finite && hn::AllTrue(Bits(), hn::Lt(hn::Sub(magnitude, set(kLeast)), set(kBeyond - kLeast))))) {
        hn::StoreU(hn::Mul(normal_value<Format>(bits), scale), D(), out + i);
      } else {
        const V value = hn::Or(any_magnitude<Format>(magnitude), hn::BitCast(D(), hn::And(bits, sign)));
        hn::StoreU(canonical(D(), hn::Mul(value, scale)), D(), out + i);
      }
    }
  }
}

template <class Format>
void encode_as(uint8_t *codes, float *scales, const float *values, int64_t count, const uint32_t *random) {
  (random != nullptr ? encode_lines<Format, true> : encode_lines<Format, false>)(codes, scales, values, count, random);
}

}  // namespace

void encode(uint8_t *codes, float *scales, DType dtype, const float *values, int64_t count, const uint32_t *random) {
  const int64_t whole = count / kLine * kLine;
  (dtype == DType::f8e4m3 ? encode_as<E4m3> : encode_as<Ue5m3>)(codes, scales, values, whole, random);
  const uint32_t *words = random != nullptr ? random + whole : nullptr;
  reference::encode(codes + whole, scales + whole / kLine, dtype, values + whole, count - whole, words);
}

void decode(float *out, const uint8_t *codes, const float *scales, DType dtype, int64_t count) {
  const int64_t whole = count / kLine * kLine;
  (dtype == DType::f8e4m3 ? decode_lines<E4m3> : decode_lines<Ue5m3>)(out, codes, scales, whole);
  reference::decode(out + whole, codes + whole, scales + whole / kLine, dtype, count - whole);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
