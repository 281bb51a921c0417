/// @file Random elements of the dtypes that arrays have, as bits.
#pragma once

#include "core/dtype.h"

#include "random.h"

namespace zero::kernels::test {

inline constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};
inline constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::prod};

/// Explicit bits of the fraction; 0 for integers.
inline int fraction_nbits(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 23;
    case DType::f64:
      return 52;
    case DType::f16:
      return 10;
    case DType::bf16:
      return 7;
    default:
      return 0;
  }
}

/// With `tame` the exponents lie in the middle of their range, so that most results are finite.
inline uint64_t random_element(Random &random, DType dtype, bool tame) {
  const int nbits = static_cast<int>(dtype_nbytes(dtype)) * 8;
  const int fraction = fraction_nbits(dtype);
  if (fraction == 0) return random.next();
  if (!tame) return random.special_bits(nbits, fraction);
  const uint64_t sign = (random.next() & 1) << (nbits - 1);
  const uint64_t middle = (uint64_t{1} << (nbits - fraction - 2)) - 5 + random.next() % 8;
  return sign | (middle << fraction) | (random.next() & ((uint64_t{1} << fraction) - 1));
}

}  // namespace zero::kernels::test
