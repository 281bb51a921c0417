/// @file product: the one hot loop of the classifier, a matrix product over strided matrices.
/// Knows nothing of layers, samples or ranks.
#ifndef FASHION_PRODUCT_H
#define FASHION_PRODUCT_H

/// The left-hand factor: element (row m, segment s, term k) is data[m * row_stride + s * segment_stride + k * term_stride]. Rows may
/// overlap: a convolution reads its input as such a matrix without copying it, one segment per kernel row.
struct strided {
  const float *data;
  int row_stride;
  int segment_stride;
  int term_stride;
};

/// c[m][n] += sum over segments s and terms k, in this order, of a(m, s, k) * b[s * b_segment_stride + k * b_stride + n]
/// for m < row_count, n < column_count; rows of c are c_stride apart. The order of additions depends on nothing but the arguments.
void product_add(int row_count, int column_count, int segment_count, int term_count, struct strided a, const float *b, int b_segment_stride,
                 int b_stride, float *c, int c_stride);

#endif
