/// @file Exact sum: Kulisch's long accumulator ("An axiomatic approach to rounded computations",
/// 1971) in 32-bit digits with deferred carries.
#include "kernels/exact_sum.h"

#include "kernels/reference/exact_sum-inl.h"

#include <iterator>

namespace zero::kernels {
namespace {

/// Each term adds less than 2^32 to a limb, so two sums with this many terms can be added without
/// passing 2^63.
constexpr int64_t kMaxPending = int64_t{1} << 29;

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
  reference::propagate(limbs_.data());
  pending_ = 1;  // a propagated limb is below 2^32, as one term is
}

double ExactSum::total() const {
  int64_t limbs[kExported];
  export_limbs(limbs);
  return reference::total_of(limbs);
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
