/// @file model: convolution, pooling and dense layers on channels-last activations, built on product_add.
/// Knows nothing of ranks or of libzero. Sums run over samples and pixels in a fixed order, so equal inputs give equal bits.
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "product.h"
#include "../random.h"
#include "shape.h"

const struct tensor model_tensors[kTensorCount] = {
    {"conv1.weight", {kKernel, kKernel, 1, kChannels1}, 4, kKernel *kKernel *kChannels1},
    {"conv1.bias", {kChannels1}, 1, kChannels1},
    {"conv2.weight", {kKernel, kKernel, kChannels1, kChannels2}, 4, kKernel *kKernel *kChannels1 *kChannels2},
    {"conv2.bias", {kChannels2}, 1, kChannels2},
    {"dense1.weight", {kPooled2, kHidden}, 2, kPooled2 *kHidden},
    {"dense1.bias", {kHidden}, 1, kHidden},
    {"dense2.weight", {kHidden, kClassCount}, 2, kHidden *kClassCount},
    {"dense2.bias", {kClassCount}, 1, kClassCount},
};

int64_t model_offset(int tensor) {
  int64_t offset = 0;
  for (int i = 0; i < tensor; i++) offset += model_tensors[i].count;
  return offset;
}

/// A convolution of kernel 3 that keeps the image's size, then the maximum over 2 x 2 pixels, then max(0, x).
struct conv {
  int side;   /* of the input, in pixels */
  int inputs; /* channels */
  int outputs;
};

static const struct conv kConv1 = {kImageSide, 1, kChannels1};
static const struct conv kConv2 = {kImageSide / 2, kChannels1, kChannels2};

/// Elements of an image with a border of one zero pixel around it.
static int64_t padded_count(int side, int channels) { return (int64_t)(side + 2) * (side + 2) * channels; }

static int64_t pooled_count(struct conv c) { return (int64_t)(c.side / 2) * (c.side / 2) * c.outputs; }

struct model {
  int64_t capacity;
  int64_t count;
  double divisor;   /* of the gradient of the sum of losses */
  float *memory;    /* holds everything below but picks and labels */
  float *input;     /* [sample] padded image */
  float *pooled1;   /* [sample] padded, the input of conv2 */
  float *pooled2;   /* [sample][kPooled2] */
  float *hidden;    /* [sample][kHidden] */
  float *logits;    /* [sample][kClassCount] */
  float *gradient1; /* [sample] of pooled1, not padded */
  float *gradient2; /* of pooled2 */
  float *gradient3; /* of hidden */
  float *gradient4; /* of logits */
  float *full;      /* one sample: output of a convolution before pooling, or its gradient, padded */
  float *turned;    /* weights transposed for the gradient of a layer's input */
  uint8_t *picks;   /* which of four pixels was the maximum: [sample] of conv1, then of conv2 */
  uint8_t *labels;
};

void model_first_values(int tensor, uint64_t seed, float *out) {
  const struct tensor *t = &model_tensors[tensor];
  memset(out, 0, (size_t)t->count * sizeof(float));
  if (t->ndim == 1) return;
  int64_t inputs = t->count / t->shape[t->ndim - 1];
  float bound = (float)sqrt(6.0 / (double)inputs);
  uint64_t state = random_stream(seed, (uint64_t)tensor);
  for (int64_t i = 0; i < t->count; i++) out[i] = ((float)(random_next(&state) >> 40) / 8388608.0f - 1.0f) * bound;
}

/// The next `count` elements of the arena; with a NULL arena only counts them.
static float *carve(float *arena, int64_t *used, int64_t count) {
  float *at = arena ? arena + *used : NULL;
  *used += (count + 15) / 16 * 16;
  return at;
}

static int64_t carve_all(struct model *m) {
  int64_t used = 0;
  const int64_t n = m->capacity;
  m->input = carve(m->memory, &used, n * padded_count(kImageSide, 1));
  m->pooled1 = carve(m->memory, &used, n * padded_count(kConv2.side, kChannels1));
  m->pooled2 = carve(m->memory, &used, n * kPooled2);
  m->hidden = carve(m->memory, &used, n * kHidden);
  m->logits = carve(m->memory, &used, n * kClassCount);
  m->gradient1 = carve(m->memory, &used, n * pooled_count(kConv1));
  m->gradient2 = carve(m->memory, &used, n * kPooled2);
  m->gradient3 = carve(m->memory, &used, n * kHidden);
  m->gradient4 = carve(m->memory, &used, n * kClassCount);
  m->full = carve(m->memory, &used, padded_count(kImageSide, kChannels1) + padded_count(kConv2.side, kChannels2));
  m->turned = carve(m->memory, &used, (int64_t)kPooled2 * kHidden + kKernel * kKernel * kChannels1 * kChannels2);
  return used;
}

struct model *model_create(int64_t capacity) {
  struct model *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->capacity = capacity > 0 ? capacity : 1;
  m->memory = calloc((size_t)carve_all(m), sizeof(float));
  m->picks = calloc((size_t)(m->capacity * (pooled_count(kConv1) + pooled_count(kConv2))), 1);
  m->labels = calloc((size_t)m->capacity, 1);
  if (!m->memory || !m->picks || !m->labels) {
    model_release(m);
    return NULL;
  }
  carve_all(m);
  return m;
}

void model_release(struct model *m) {
  if (!m) return;
  free(m->memory);
  free(m->picks);
  free(m->labels);
  free(m);
}

void model_begin(struct model *m, int64_t count, const uint8_t *const *images, const uint8_t *labels) {
  m->count = count;
  m->divisor = (double)count;
  if (count > 0) memcpy(m->labels, labels, (size_t)count);
  for (int64_t s = 0; s < count; s++) {
    float *to = m->input + s * padded_count(kImageSide, 1);
    for (int y = 0; y < kImageSide; y++) {
      for (int x = 0; x < kImageSide; x++) {
        to[(y + 1) * (kImageSide + 2) + x + 1] = (float)images[s][y * kImageSide + x] / 256.0f;
      }
    }
  }
}

void model_set_divisor(struct model *m, double divisor) { m->divisor = divisor; }

/// out (side x side pixels, rows out_row apart) += the convolution of a padded image with kernels [3][3][inputs][outputs].
static void convolve(int side, int inputs, int outputs, const float *padded, const float *kernels, float *out, int out_row) {
  const int row = (side + 2) * inputs;
  for (int y = 0; y < side; y++) {
    struct strided window = {padded + y * row, inputs, row, 1};
    product_add(side, outputs, kKernel, kKernel * inputs, window, kernels, kKernel * inputs * outputs, outputs, out + y * out_row, outputs);
  }
}

/// Maximum over 2 x 2 pixels, of equal ones the first, then max(0, x), for `count` channels of one output pixel.
static void pool_pixel(int count, const float *restrict from, int row, float *restrict to, uint8_t *restrict picks) {
  for (int i = 0; i < count; i++) {
    const float a = from[i], b = from[i + count], c = from[i + row], d = from[i + row + count];
    const float top = b > a ? b : a;
    const float low = d > c ? d : c;
    const float best = low > top ? low : top;
    to[i] = best > 0 ? best : 0;
    picks[i] = (uint8_t)(low > top ? 2 + (d > c) : b > a);
  }
}

/// Undoes pool_pixel for a gradient: it goes to the pixel that was picked, unless its output was cut at 0.
static void unpool_pixel(int count, const float *restrict gradient, const float *restrict out, const uint8_t *restrict picks,
                         float *restrict to, int row) {
  for (int i = 0; i < count; i++) {
    const float g = out[i] > 0 ? gradient[i] : 0;
    to[i] = picks[i] == 0 ? g : 0;
    to[i + count] = picks[i] == 1 ? g : 0;
    to[i + row] = picks[i] == 2 ? g : 0;
    to[i + row + count] = picks[i] == 3 ? g : 0;
  }
}

/// Pools one sample. `out` points at the first pixel, its rows are out_row apart.
static void pool(struct conv c, const float *full, float *out, int out_row, uint8_t *picks) {
  const int row = c.side * c.outputs;
  for (int y = 0; y < c.side / 2; y++) {
    for (int x = 0; x < c.side / 2; x++, picks += c.outputs) {
      pool_pixel(c.outputs, full + 2 * y * row + 2 * x * c.outputs, row, out + y * out_row + x * c.outputs, picks);
    }
  }
}

/// Undoes pool. `full` is padded; `out` is what pool wrote.
static void unpool(struct conv c, const float *gradient, const float *out, int out_row, const uint8_t *picks, float *full) {
  const int row = (c.side + 2) * c.outputs;
  for (int y = 0; y < c.side / 2; y++) {
    for (int x = 0; x < c.side / 2; x++, gradient += c.outputs, picks += c.outputs) {
      float *to = full + (2 * y + 1) * row + (2 * x + 1) * c.outputs;
      unpool_pixel(c.outputs, gradient, out + y * out_row + x * c.outputs, picks, to, row);
    }
  }
}

/// One sample: convolution, bias, pooling.
static void conv_forward(struct model *m, struct conv c, const float *padded, const float *weight, const float *bias, float *out,
                         int out_row, uint8_t *picks) {
  const int pixels = c.side * c.side;
  for (int i = 0; i < pixels; i++) memcpy(m->full + i * c.outputs, bias, (size_t)c.outputs * sizeof(float));
  convolve(c.side, c.inputs, c.outputs, padded, weight, m->full, c.side * c.outputs);
  pool(c, m->full, out, out_row, picks);
}

/// One sample, after unpool: gradients of weight and bias from the padded gradient in `full`.
static void conv_weight_grad(struct conv c, const float *padded, const float *full, float *weight_grad, float *bias_grad) {
  const int in_row = (c.side + 2) * c.inputs;
  const int full_row = (c.side + 2) * c.outputs;
  const float *first = full + full_row + c.outputs;
  for (int ky = 0; ky < kKernel; ky++) {
    struct strided turned = {padded + ky * in_row, 1, in_row, c.inputs};
    product_add(kKernel * c.inputs, c.outputs, c.side, c.side, turned, first, full_row, c.outputs,
                weight_grad + ky * kKernel * c.inputs * c.outputs, c.outputs);
  }
  for (int y = 0; y < c.side; y++) {
    for (int x = 0; x < c.side; x++) {
      for (int i = 0; i < c.outputs; i++) bias_grad[i] += first[y * full_row + x * c.outputs + i];
    }
  }
}

/// Kernels for the gradient of a convolution's input: rotated by half a turn, inputs and outputs swapped.
static void turn_kernels(struct conv c, const float *weight, float *turned) {
  for (int k = 0; k < kKernel * kKernel; k++) {
    const float *from = weight + (kKernel * kKernel - 1 - k) * c.inputs * c.outputs;
    for (int i = 0; i < c.inputs; i++) {
      for (int o = 0; o < c.outputs; o++) turned[(k * c.outputs + o) * c.inputs + i] = from[i * c.outputs + o];
    }
  }
}

/// out[sample][outputs] = in[sample][inputs] * weight + bias
static void dense_forward(int64_t count, int inputs, int outputs, const float *in, const float *weight, const float *bias, float *out) {
  for (int64_t s = 0; s < count; s++) memcpy(out + s * outputs, bias, (size_t)outputs * sizeof(float));
  struct strided rows = {in, inputs, 0, 1};
  product_add((int)count, outputs, 1, inputs, rows, weight, 0, outputs, out, outputs);
}

/// Gradients of a dense layer; in_grad is overwritten.
static void dense_backward(struct model *m, int inputs, int outputs, const float *in, const float *out_grad, const float *weight,
                           float *in_grad, float *weight_grad, float *bias_grad) {
  for (int64_t s = 0; s < m->count; s++) {
    for (int o = 0; o < outputs; o++) bias_grad[o] += out_grad[s * outputs + o];
  }
  struct strided columns = {in, 1, 0, inputs};
  product_add(inputs, outputs, 1, (int)m->count, columns, out_grad, 0, outputs, weight_grad, outputs);
  for (int i = 0; i < inputs; i++) {
    for (int o = 0; o < outputs; o++) m->turned[o * inputs + i] = weight[i * outputs + o];
  }
  memset(in_grad, 0, (size_t)m->count * (size_t)inputs * sizeof(float));
  struct strided rows = {out_grad, outputs, 0, 1};
  product_add((int)m->count, inputs, 1, outputs, rows, m->turned, 0, inputs, in_grad, inputs);
}

/// Rows of pooled1 with their border, and its first pixel in sample `s`.
enum { kPooled1Row = (kImageSide / 2 + 2) * kChannels1, kPooled2Row = kImageSide / 4 * kChannels2 };

static float *pooled1_first(const struct model *m, int64_t s) {
  return m->pooled1 + s * padded_count(kConv2.side, kChannels1) + kPooled1Row + kChannels1;
}

void model_forward(struct model *m, int layer, const float *weight, const float *bias) {
  uint8_t *picks2 = m->picks + m->capacity * pooled_count(kConv1);
  if (layer == 0) {
    for (int64_t s = 0; s < m->count; s++) {
      conv_forward(m, kConv1, m->input + s * padded_count(kImageSide, 1), weight, bias, pooled1_first(m, s), kPooled1Row,
                   m->picks + s * pooled_count(kConv1));
    }
  } else if (layer == 1) {
    for (int64_t s = 0; s < m->count; s++) {
      conv_forward(m, kConv2, m->pooled1 + s * padded_count(kConv2.side, kChannels1), weight, bias, m->pooled2 + s * kPooled2, kPooled2Row,
                   picks2 + s * pooled_count(kConv2));
    }
  } else if (layer == 2) {
    dense_forward(m->count, kPooled2, kHidden, m->pooled2, weight, bias, m->hidden);
    for (int64_t i = 0; i < m->count * kHidden; i++) m->hidden[i] = m->hidden[i] > 0 ? m->hidden[i] : 0;
  } else {
    dense_forward(m->count, kHidden, kClassCount, m->hidden, weight, bias, m->logits);
  }
}

double model_loss(const struct model *m, int64_t *out_correct) {
  double total = 0;
  *out_correct = 0;
  for (int64_t s = 0; s < m->count; s++) {
    const float *z = m->logits + s * kClassCount;
    int best = 0;
    for (int i = 1; i < kClassCount; i++) best = z[i] > z[best] ? i : best;
    double sum = 0;
    for (int i = 0; i < kClassCount; i++) sum += exp((double)z[i] - z[best]);
    total += log(sum) + z[best] - z[m->labels[s]];
    *out_correct += best == m->labels[s];
  }
  return total;
}

/// Gradient of the sum of cross-entropies over the divisor: (softmax - one at the label) / divisor.
static void loss_backward(struct model *m) {
  for (int64_t s = 0; s < m->count; s++) {
    const float *z = m->logits + s * kClassCount;
    float *g = m->gradient4 + s * kClassCount;
    double top = z[0];
    for (int i = 1; i < kClassCount; i++) top = z[i] > top ? z[i] : top;
    double sum = 0;
    for (int i = 0; i < kClassCount; i++) sum += exp(z[i] - top);
    for (int i = 0; i < kClassCount; i++) g[i] = (float)((exp(z[i] - top) / sum - (i == m->labels[s])) / m->divisor);
  }
}

static void conv2_backward(struct model *m, const float *weight, float *weight_grad, float *bias_grad) {
  const uint8_t *picks = m->picks + m->capacity * pooled_count(kConv1);
  memset(m->full, 0, (size_t)padded_count(kConv2.side, kChannels2) * sizeof(float));
  turn_kernels(kConv2, weight, m->turned);
  for (int64_t s = 0; s < m->count; s++) {
    const int64_t at = s * kPooled2;
    float *in_grad = m->gradient1 + s * pooled_count(kConv1);
    unpool(kConv2, m->gradient2 + at, m->pooled2 + at, kPooled2Row, picks + at, m->full);
    conv_weight_grad(kConv2, m->pooled1 + s * padded_count(kConv2.side, kChannels1), m->full, weight_grad, bias_grad);
    memset(in_grad, 0, (size_t)pooled_count(kConv1) * sizeof(float));
    convolve(kConv2.side, kChannels2, kChannels1, m->full, m->turned, in_grad, kConv2.side * kChannels1);
  }
}

static void conv1_backward(struct model *m, float *weight_grad, float *bias_grad) {
  memset(m->full, 0, (size_t)padded_count(kImageSide, kChannels1) * sizeof(float));
  for (int64_t s = 0; s < m->count; s++) {
    const int64_t at = s * pooled_count(kConv1);
    unpool(kConv1, m->gradient1 + at, pooled1_first(m, s), kPooled1Row, m->picks + at, m->full);
    conv_weight_grad(kConv1, m->input + s * padded_count(kImageSide, 1), m->full, weight_grad, bias_grad);
  }
}

void model_backward(struct model *m, int layer, const float *weight, float *weight_grad, float *bias_grad) {
  if (m->count == 0) return;
  if (layer == 3) {
    loss_backward(m);
    dense_backward(m, kHidden, kClassCount, m->hidden, m->gradient4, weight, m->gradient3, weight_grad, bias_grad);
  } else if (layer == 2) {
    for (int64_t i = 0; i < m->count * kHidden; i++) m->gradient3[i] = m->hidden[i] > 0 ? m->gradient3[i] : 0;
    dense_backward(m, kPooled2, kHidden, m->pooled2, m->gradient3, weight, m->gradient2, weight_grad, bias_grad);
  } else if (layer == 1) {
    conv2_backward(m, weight, weight_grad, bias_grad);
  } else {
    conv1_backward(m, weight_grad, bias_grad);
  }
}
