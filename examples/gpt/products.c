/// @file products: CBLAS where the build found OpenBLAS, and loops in plain C.
/// Knows nothing of layers or ranks.
#include "products.h"

#include <stdio.h>
#ifdef GPT_BLAS
#include <cblas.h>
#endif

static enum products chosen = kProductsPlain;

int products_choose(enum products who) {
#ifdef GPT_BLAS
  openblas_set_num_threads(1);
#else
  if (who == kProductsBlas) {
    fprintf(stderr,
            "train_gpt: this build has no BLAS: install one (Debian: libopenblas-dev), configure and build again, or give --products plain, "
            "which is slow\n");
    return -1;
  }
#endif
  chosen = who;
  return 0;
}

const char *products_name(void) {
#ifdef GPT_BLAS
  static char name[64];
  snprintf(name, sizeof name, "OpenBLAS %s", openblas_get_corename());
  if (chosen == kProductsBlas) return name;
#endif
  return "plain C";
}

/// One row of c: sums of rows of b, which compilers turn into vector instructions.
static void add_rows(int64_t n, int64_t k, real scale, const real *a, int64_t a_step, const real *b, int64_t ldb, real *c) {
  for (int64_t p = 0; p < k; p++) {
    const real factor = scale * a[p * a_step];
    const real *row = b + p * ldb;
    for (int64_t j = 0; j < n; j++) c[j] += factor * row[j];
  }
}

/// One row of c: products of a row of a with the rows of b, each in eight sums.
static void add_dots(int64_t n, int64_t k, real scale, const real *a, int64_t a_step, const real *b, int64_t ldb, real *c) {
  enum { kLanes = 8 };
  for (int64_t j = 0; j < n; j++) {
    real sums[kLanes] = {0};
    const real *row = b + j * ldb;
    int64_t p = 0;
    for (; p + kLanes <= k; p += kLanes) {
      for (int lane = 0; lane < kLanes; lane++) sums[lane] += a[(p + lane) * a_step] * row[p + lane];
    }
    for (; p < k; p++) sums[0] += a[p * a_step] * row[p];
    c[j] += scale * (((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])));
  }
}

static void plain_product(int a_form, int b_form, int64_t m, int64_t n, int64_t k, real scale, const real *a, int64_t lda, const real *b,
                          int64_t ldb, real keep, real *c, int64_t ldc) {
  for (int64_t i = 0; i < m; i++) {
    real *row = c + i * ldc;
    const real *from = a_form == kTransposed ? a + i : a + i * lda;
    const int64_t step = a_form == kTransposed ? lda : 1;
    for (int64_t j = 0; j < n; j++) row[j] = keep == 0 ? 0 : keep * row[j];
    if (b_form == kTransposed) {
      add_dots(n, k, scale, from, step, b, ldb, row);
    } else {
      add_rows(n, k, scale, from, step, b, ldb, row);
    }
  }
}

void product(int a_form, int b_form, int64_t m, int64_t n, int64_t k, real scale, const real *a, int64_t lda, const real *b, int64_t ldb,
             real keep, real *c, int64_t ldc) {
#ifdef GPT_BLAS
  if (chosen == kProductsBlas) {
    cblas_sgemm(CblasRowMajor, a_form == kTransposed ? CblasTrans : CblasNoTrans, b_form == kTransposed ? CblasTrans : CblasNoTrans, (int)m,
                (int)n, (int)k, scale, a, (int)lda, b, (int)ldb, keep, c, (int)ldc);
    return;
  }
#endif
  plain_product(a_form, b_form, m, n, k, scale, a, lda, b, ldb, keep, c, ldc);
}
