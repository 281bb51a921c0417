/// @file Low rank: a matrix as the product of two factors with few columns, found by one step of
/// power iteration (PowerSGD: Vogels et al., 2019, algorithm 1). Knows no ranks.
///
/// M has n rows and m columns, row-major. The factors P (n x R) and Q (m x R) are kept column by
/// column: R columns of n or m elements, end to end.
///
/// @verbatim
///   left:   P = M Q                  2 R n m operations each, all in fp32
///   right:  Q = M^T P
///   both:   P Q^T
/// @endverbatim
///
/// The order of every sum is fixed, and no product is fused with a sum, so the bits depend on
/// nothing but the operands. A non-finite element of M makes P non-finite, whatever Q is.
#pragma once

#include <cstdint>

namespace zero::kernels {

/// The sizes of a matrix and of its factors.
struct LowRank {
  int64_t rows;
  int64_t columns;
  int64_t rank;

  int64_t count() const { return rows * columns; }
  int64_t left_count() const { return rank * rows; }      ///< elements of P
  int64_t right_count() const { return rank * columns; }  ///< elements of Q
  /// The factors are less than half as large as the matrix.
  bool shortens() const { return count() > 2 * (left_count() + right_count()); }
};

/// p = M Q.
void low_rank_left(const LowRank &sizes, float *p, const float *matrix, const float *q);
/// q = M^T P.
void low_rank_right(const LowRank &sizes, float *q, const float *matrix, const float *p);
/// out = P Q^T.
void low_rank_product(const LowRank &sizes, float *out, const float *p, const float *q);
/// out = M - P Q^T. An element that is not finite becomes 0.
void low_rank_loss(const LowRank &sizes, float *out, const float *matrix, const float *p, const float *q);

/// Makes finite columns orthogonal and of length 1, from the first on, by modified Gram-Schmidt in
/// fp64, twice per column. One that depends on those before it, to 2^-20 of its length, is rounding
/// error and becomes zero.
/// `workspace`: `count` elements, the length of a column.
void orthonormalise(float *columns, int64_t count, int64_t rank, double *workspace);

/// The columns that the next step begins with: those of `newest`, each times the power of two that
/// brings its length into [1/2, 1). A column that is zero or not finite would stay so, and leaves
/// the one in `columns`.
void keep_columns(float *columns, const float *newest, int64_t count, int64_t rank);

}  // namespace zero::kernels
