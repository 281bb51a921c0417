/// @file product: register-blocked kernel on vectors of four floats, which every 64-bit CPU has; so all CPUs add in the same order.
/// Knows nothing of layers, samples or ranks.
#include "product.h"

enum { kLanes = 4, kRows = 4, kVectors = 2 };

/// GCC's and Clang's portable vector type; element-aligned, because rows of a convolution's input overlap.
typedef float lanes __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float)), may_alias));

/// The right-hand factor, from some column on.
struct right {
  const float *data;
  int segment_count;
  int term_count;
  int segment_stride;
  int row_stride;
};

/// One tile of c: `rows` x `vectors` are constants of the caller, so that the sums live in registers.
static inline __attribute__((always_inline)) void tile(const int rows, const int vectors, struct strided a, struct right b, float *c,
                                                       int c_stride) {
  lanes sum[kRows][kVectors];
  for (int m = 0; m < rows; m++) {
    for (int v = 0; v < vectors; v++) sum[m][v] = *(const lanes *)(c + m * c_stride + v * kLanes);
  }
  for (int s = 0; s < b.segment_count; s++) {
    const float *left = a.data + s * a.segment_stride;
    const float *row = b.data + s * b.segment_stride;
    for (int k = 0; k < b.term_count; k++, left += a.term_stride, row += b.row_stride) {
      for (int v = 0; v < vectors; v++) {
        const lanes factor = *(const lanes *)(row + v * kLanes);
        for (int m = 0; m < rows; m++) sum[m][v] += left[m * a.row_stride] * factor;
      }
    }
  }
  for (int m = 0; m < rows; m++) {
    for (int v = 0; v < vectors; v++) *(lanes *)(c + m * c_stride + v * kLanes) = sum[m][v];
  }
}

/// All rows of a panel of `vectors` vectors.
static inline __attribute__((always_inline)) void panel(const int vectors, int row_count, struct strided a, struct right b, float *c,
                                                        int c_stride) {
  int m = 0;
  for (; m + kRows <= row_count; m += kRows, a.data += kRows * a.row_stride) tile(kRows, vectors, a, b, c + m * c_stride, c_stride);
  for (; m + 2 <= row_count; m += 2, a.data += 2 * a.row_stride) tile(2, vectors, a, b, c + m * c_stride, c_stride);
  for (; m < row_count; m++, a.data += a.row_stride) tile(1, vectors, a, b, c + m * c_stride, c_stride);
}

/// A column that is left over where the width is no multiple of four.
static void column(int row_count, struct strided a, struct right b, float *c, int c_stride) {
  for (int m = 0; m < row_count; m++) {
    float sum = c[m * c_stride];
    for (int s = 0; s < b.segment_count; s++) {
      const float *left = a.data + m * a.row_stride + s * a.segment_stride;
      const float *row = b.data + s * b.segment_stride;
      for (int k = 0; k < b.term_count; k++) sum += left[k * a.term_stride] * row[k * b.row_stride];
    }
    c[m * c_stride] = sum;
  }
}

void product_add(int row_count, int column_count, int segment_count, int term_count, struct strided a, const float *b, int b_segment_stride,
                 int b_stride, float *c, int c_stride) {
  struct right right = {b, segment_count, term_count, b_segment_stride, b_stride};
  int n = 0;
  for (; n + kVectors * kLanes <= column_count; n += kVectors * kLanes, right.data = b + n) {
    panel(kVectors, row_count, a, right, c + n, c_stride);
  }
  for (; n + kLanes <= column_count; n += kLanes, right.data = b + n) panel(1, row_count, a, right, c + n, c_stride);
  for (; n < column_count; n++, right.data = b + n) column(row_count, a, right, c + n, c_stride);
}
