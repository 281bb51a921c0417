/// @file products: the matrix product of all layers, by a BLAS or in plain C.
/// Knows nothing of layers or ranks.
#ifndef GPT_PRODUCTS_H
#define GPT_PRODUCTS_H

#include <stdint.h>

#include "real.h"

enum products { kProductsBlas, kProductsPlain };
enum { kAsIs, kTransposed };

/// Before ranks start, as state is of the process: who multiplies. A BLAS gets one thread, because
/// each rank brings its own. Returns 0, or -1 after a line on standard error.
int products_choose(enum products who);

/// The BLAS's name and that of the kernel it chose for this processor; "plain C". Static.
const char *products_name(void);

/// c = scale * a b + keep * c, row by row: c has m x n elements, a m x k and b k x n, or the
/// transposed of these. Rows are lda, ldb and ldc elements apart. With keep 0 c is not read.
void product(int a_form, int b_form, int64_t m, int64_t n, int64_t k, real scale, const real *a, int64_t lda, const real *b, int64_t ldb,
             real keep, real *c, int64_t ldc);

#endif
