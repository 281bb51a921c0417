/// @file Kulisch's long accumulator ("An axiomatic approach to rounded computations", 1971) in 32-bit digits with deferred carries.
#include "kernels/exact_sum.h"

#include "kernels/reference/exact_sum-inl.h"

#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

namespace zero::kernels {
namespace {

constexpr int kDigitBits = 32;
constexpr int64_t kDigitMask = (int64_t{1} << kDigitBits) - 1;
/// The weight of bit 0 of limb 0 is 2^kLowestExponent, that of the smallest subnormal.
constexpr int kLowestExponent = -1074;
constexpr int kMantissaBits = 52;
/// Each term adds less than 2^32 to a limb, so two sums with this many terms can be added without passing 2^63.
constexpr int64_t kMaxPending = int64_t{1} << 29;

/// 64 bits of the accumulator from bit `position` upwards; bits below bit 0 are zero. Limbs must be normalised.
uint64_t window(const std::array<int64_t, ExactSum::kLimbs> &limbs, int position) {
  uint64_t bits = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const int at = position + bit;
    if (at < 0 || at >= ExactSum::kLimbs * kDigitBits) continue;
    const auto limb = static_cast<uint64_t>(limbs[static_cast<size_t>(at / kDigitBits)]);
    bits |= ((limb >> (at % kDigitBits)) & 1) << bit;
  }
  return bits;
}

bool any_below(const std::array<int64_t, ExactSum::kLimbs> &limbs, int position) {
  if (position <= 0) return false;
  const int whole = position / kDigitBits;
  for (int i = 0; i < whole; ++i) {
    if (limbs[static_cast<size_t>(i)] != 0) return true;
  }
  return (limbs[static_cast<size_t>(whole)] & ((int64_t{1} << (position % kDigitBits)) - 1)) != 0;
}

}  // namespace

void ExactSum::add(double value) {
  const reference::Digits digits = reference::digits_of(value);
  if (digits.is_nan) ++nan_count_;
  if (digits.is_infinite) ++infinity_count_;
  if (digits.is_nan || digits.is_infinite) return;
  for (size_t i = 0; i < std::size(digits.digit); ++i) limbs_[static_cast<size_t>(digits.limb) + i] += digits.digit[i];
  if (++pending_ >= kMaxPending) propagate();
}

void ExactSum::merge(const ExactSum &other) {
  for (size_t i = 0; i < limbs_.size(); ++i) limbs_[i] += other.limbs_[i];
  nan_count_ += other.nan_count_;
  infinity_count_ += other.infinity_count_;
  pending_ += other.pending_;
  if (pending_ >= kMaxPending) propagate();
}

void ExactSum::propagate() {
  int64_t carry = 0;
  for (int64_t &limb : limbs_) {
    limb += carry;
    carry = limb >> kDigitBits;
    limb &= kDigitMask;
  }
  pending_ = 1;  // what is left in a limb is as large as one term
}

double ExactSum::total() const {
  if (nan_count_ > 0) return std::numeric_limits<double>::quiet_NaN();
  if (infinity_count_ > 0) return std::numeric_limits<double>::infinity();
  ExactSum normal = *this;
  normal.propagate();
  int top = kLimbs - 1;
  while (top >= 0 && normal.limbs_[static_cast<size_t>(top)] == 0) --top;
  if (top < 0) return 0.0;
  const auto digit = static_cast<uint64_t>(normal.limbs_[static_cast<size_t>(top)]);
  const int highest = top * kDigitBits + static_cast<int>(std::bit_width(digit)) - 1;
  if (highest <= kMantissaBits) return std::ldexp(static_cast<double>(window(normal.limbs_, 0)), kLowestExponent);

  const int lowest = highest - kMantissaBits;
  uint64_t mantissa = window(normal.limbs_, lowest) & ((uint64_t{2} << kMantissaBits) - 1);
  const bool half = (window(normal.limbs_, lowest - 1) & 1) != 0;
  const bool more = any_below(normal.limbs_, lowest - 1);
  if (half && (more || (mantissa & 1) != 0)) ++mantissa;
  return std::ldexp(static_cast<double>(mantissa), lowest + kLowestExponent);
}

void ExactSum::export_limbs(int64_t *out) const {
  ExactSum normal = *this;
  normal.propagate();
  for (size_t i = 0; i < normal.limbs_.size(); ++i) out[i] = normal.limbs_[i];
  out[kLimbs] = nan_count_;
  out[kLimbs + 1] = infinity_count_;
}

ExactSum ExactSum::import_limbs(const int64_t *limbs) {
  ExactSum sum;
  for (size_t i = 0; i < sum.limbs_.size(); ++i) sum.limbs_[i] = limbs[i];
  sum.nan_count_ = limbs[kLimbs];
  sum.infinity_count_ = limbs[kLimbs + 1];
  sum.propagate();
  return sum;
}

}  // namespace zero::kernels
