/// @file Exact sum: a sum of doubles that does not depend on their order. A fixed-point accumulator
/// is wide enough for every finite double, as in Kulisch's long accumulator. Adding and merging are
/// exact, so any cut of the terms over ranks and threads gives the same bits.
#pragma once

#include <array>
#include <cstdint>

namespace zero::kernels {

class ExactSum {
 public:
  /// 32-bit digits held in 64-bit limbs, so that 2^30 terms can be added before carries must be
  /// propagated. Covers 2^-1074 .. 2^1024 and 2^40 terms above.
  static constexpr int kLimbs = 68;

  /// Adds a value that is not negative. NaN and infinity are counted apart and make the total NaN
  /// or infinity.
  void add(double value);

  /// Adds another sum.
  void merge(const ExactSum &other);

  /// The total rounded to the nearest double, ties to even.
  double total() const;

  /// The accumulator as integers: sums over ranks of the exported limbs, added as int64, import as
  /// the sum of the sums. Limbs are normalised (below 2^32) first, so up to 2^30 exports can be
  /// added.
  static constexpr int kExported = kLimbs + 2;
  void export_limbs(int64_t *out) const;
  static ExactSum import_limbs(const int64_t *limbs);

 private:
  void propagate();

  std::array<int64_t, kLimbs> limbs_{};
  int64_t pending_ = 0;  ///< terms added since the last propagation
  int64_t nan_count_ = 0;
  int64_t infinity_count_ = 0;
};

}  // namespace zero::kernels
