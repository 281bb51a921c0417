/// @file layers: loops and products; the formulas stand in the header.
/// Knows nothing of the model that they form, of ranks or of libzero.
#include "layers.h"

#include "products.h"

enum { kLanes = 8 };

static real total(const real *lanes) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/// Sums in eight lanes, which compilers keep in a vector register.
static real sum(const real *x, int64_t count) {
  real lanes[kLanes] = {0};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int l = 0; l < kLanes; l++) lanes[l] += x[i + l];
  }
  for (; i < count; i++) lanes[0] += x[i];
  return total(lanes);
}

/// Sum of (x - shift) (y - y_shift).
static real dot(const real *x, real shift, const real *y, real y_shift, int64_t count) {
  real lanes[kLanes] = {0};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int l = 0; l < kLanes; l++) lanes[l] += (x[i + l] - shift) * (y[i + l] - y_shift);
  }
  for (; i < count; i++) lanes[0] += (x[i] - shift) * (y[i] - y_shift);
  return total(lanes);
}

static void clear_unless(int add, real *x, int64_t count) {
  if (!add) memset(x, 0, (size_t)count * sizeof *x);
}

void embedding_forward(const int32_t *ids, const real *token_table, const real *place_table, int64_t rows, int64_t length, int64_t first,
                       int64_t width, real *out) {
  for (int64_t t = 0; t < rows; t++) {
    const real *token = token_table + ids[t] * width;
    const real *place = place_table + (first + t % length) * width;
    for (int64_t i = 0; i < width; i++) out[t * width + i] = token[i] + place[i];
  }
}

WIDEST void embedding_backward(const int32_t *ids, const real *out_grad, int64_t rows, int64_t length, int64_t width, int64_t tokens,
                        int64_t places, real *token_grad, int add_token, real *place_grad, int add_place) {
  clear_unless(add_token, token_grad, tokens * width);
  clear_unless(add_place, place_grad, places * width);
  for (int64_t t = 0; t < rows; t++) {
    real *token = token_grad + ids[t] * width;
    real *place = place_grad + t % length * width;
    for (int64_t i = 0; i < width; i++) {
      token[i] += out_grad[t * width + i];
      place[i] += out_grad[t * width + i];
    }
  }
}

void norm_forward(const real *in, const real *weight, const real *bias, int64_t rows, int64_t width, real *out, real *mean, real *scale) {
  for (int64_t t = 0; t < rows; t++, in += width, out += width) {
    const real m = sum(in, width) / (real)width;
    const real s = 1 / real_sqrt(dot(in, m, in, m, width) / (real)width + (real)1e-5);
    for (int64_t i = 0; i < width; i++) out[i] = (in[i] - m) * s * weight[i] + bias[i];
    mean[t] = m;
    scale[t] = s;
  }
}

/// With x = (in - mean) scale and d = out_grad weight: in_grad += scale (d - mean(d) - x mean(d x)).
static void norm_in_backward(const real *in, real mean, real scale, const real *weight, const real *out_grad, int64_t width, real *in_grad) {
  real d_sum[kLanes] = {0};
  real dx_sum[kLanes] = {0};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int l = 0; l < kLanes; l++) {
      const real d = out_grad[i + l] * weight[i + l];
      d_sum[l] += d;
      dx_sum[l] += d * ((in[i + l] - mean) * scale);
    }
  }
  for (; i < width; i++) {
    d_sum[0] += out_grad[i] * weight[i];
    dx_sum[0] += out_grad[i] * weight[i] * ((in[i] - mean) * scale);
  }
  const real d_mean = total(d_sum) / (real)width;
  const real dx_mean = total(dx_sum) / (real)width;
  for (i = 0; i < width; i++) in_grad[i] += scale * (out_grad[i] * weight[i] - d_mean - (in[i] - mean) * scale * dx_mean);
}

WIDEST void norm_backward(const real *in, const real *mean, const real *scale, const real *weight, const real *out_grad, int64_t rows,
                   int64_t width, real *in_grad, real *weight_grad, int add_weight, real *bias_grad, int add_bias) {
  clear_unless(add_weight, weight_grad, width);
  clear_unless(add_bias, bias_grad, width);
  for (int64_t t = 0; t < rows; t++, in += width, out_grad += width, in_grad += width) {
    for (int64_t i = 0; i < width; i++) {
      weight_grad[i] += out_grad[i] * ((in[i] - mean[t]) * scale[t]);
      bias_grad[i] += out_grad[i];
    }
    norm_in_backward(in, mean[t], scale[t], weight, out_grad, width, in_grad);
  }
}

WIDEST void linear_forward(const real *in, const real *weight, const real *bias, const real *residual, int64_t rows, int64_t inputs,
                    int64_t outputs, real *out) {
  for (int64_t t = 0; t < rows; t++) {
    for (int64_t i = 0; i < outputs; i++) out[t * outputs + i] = residual ? residual[t * outputs + i] + bias[i] : bias[i];
  }
  product(kAsIs, kAsIs, rows, outputs, inputs, 1, in, inputs, weight, outputs, 1, out, outputs);
}

WIDEST void linear_backward(const real *in, const real *weight, const real *out_grad, int64_t rows, int64_t inputs, int64_t outputs,
                     real *in_grad, real *weight_grad, int add_weight, real *bias_grad, int add_bias) {
  product(kTransposed, kAsIs, inputs, outputs, rows, 1, in, inputs, out_grad, outputs, add_weight ? 1 : 0, weight_grad, outputs);
  product(kAsIs, kTransposed, rows, inputs, outputs, 1, out_grad, outputs, weight, outputs, 0, in_grad, inputs);
  clear_unless(add_bias, bias_grad, outputs);
  for (int64_t t = 0; t < rows; t++) {
    for (int64_t i = 0; i < outputs; i++) bias_grad[i] += out_grad[t * outputs + i];
  }
}

void head_logits(const real *in, const real *table, int64_t rows, int64_t width, int64_t vocabulary, real *logits) {
  product(kAsIs, kTransposed, rows, vocabulary, width, 1, in, width, table, width, 0, logits, vocabulary);
}

void head_backward(const real *table, const real *logits_grad, int64_t rows, int64_t width, int64_t vocabulary, real *in_grad) {
  product(kAsIs, kAsIs, rows, width, vocabulary, 1, logits_grad, vocabulary, table, width, 0, in_grad, width);
}

void head_table_backward(const real *in, const real *logits_grad, int64_t rows, int64_t width, int64_t vocabulary, real *table_grad,
                         int add_table) {
  product(kTransposed, kAsIs, vocabulary, width, rows, 1, logits_grad, vocabulary, in, width, add_table ? 1 : 0, table_grad, width);
}

/// Softmax of the first `known` of `count` elements; the rest, which lies in the future, becomes 0.
WIDEST static void causal_softmax(real *x, int64_t known, int64_t count) {
  real largest = x[0];
  for (int64_t i = 1; i < known; i++) largest = x[i] > largest ? x[i] : largest;
  for (int64_t i = 0; i < known; i++) x[i] = real_exp(x[i] - largest);
  const real factor = 1 / sum(x, known);
  for (int64_t i = 0; i < known; i++) x[i] *= factor;
  for (int64_t i = known; i < count; i++) x[i] = 0;
}

/// Scores of `count` queries from place `first` on with the keys up to the last of them become
/// probabilities, and these times the values the output. q, p and out begin with the first query.
static void some_queries_forward(const struct attention *a, int64_t first, int64_t count, const real *q, const real *k, real *p,
                                 real *out) {
  const int64_t size = a->width / a->heads;
  const int64_t stride = 3 * a->width;
  const int64_t keys = first + count;
  product(kAsIs, kTransposed, count, keys, size, 1 / real_sqrt((real)size), q, stride, k, stride, 0, p, a->length);
  for (int64_t t = 0; t < count; t++) causal_softmax(p + t * a->length, first + t + 1, keys);
  product(kAsIs, kAsIs, count, size, keys, 1, p, a->length, k + a->width, stride, 0, out, a->width);
}

void attention_forward(const struct attention *a, const real *qkv, real *probabilities, real *out) {
  const int64_t size = a->width / a->heads;
  const int64_t stride = 3 * a->width;
  const int64_t end = a->first + a->count;
  for (int64_t s = 0; s < a->sequences; s++) {
    for (int64_t h = 0; h < a->heads; h++) {
      const real *q = qkv + s * a->length * stride + h * size;
      real *p = probabilities + (s * a->heads + h) * a->length * a->length;
      real *to = out + s * a->length * a->width + h * size;
      for (int64_t t = a->first; t < end; t += kQueries) {
        const int64_t count = end - t < kQueries ? end - t : kQueries;
        some_queries_forward(a, t, count, q + t * stride, q + a->width, p + t * a->length, to + t * a->width);
      }
    }
  }
}

/// Gradients of scores from those of probabilities, in place: S = P (D - sum of P D over the row).
WIDEST static void causal_softmax_backward(const real *probabilities, int64_t known, int64_t count, real *x) {
  const real mean = dot(x, 0, probabilities, 0, known);
  for (int64_t i = 0; i < known; i++) x[i] = probabilities[i] * (x[i] - mean);
  for (int64_t i = known; i < count; i++) x[i] = 0;
}

/// The gradient of `count` queries of a head. With P the probabilities and D = out_grad V': V gets
/// P' out_grad, and of the scores S query and key get scale S K, scale S' Q. q, p, out_grad and q_grad
/// begin with the first of these queries, k and k_grad with the head's first key. The last queries of
/// a head come first, and overwrite what the others add to.
static void some_queries_backward(const struct attention *a, int64_t first, int64_t count, const real *q, const real *k, const real *p,
                                  const real *out_grad, real *scores, real *q_grad, real *k_grad) {
  const int64_t w = a->width;
  const int64_t size = w / a->heads;
  const int64_t stride = 3 * w;
  const int64_t keys = first + count;
  const real scale = 1 / real_sqrt((real)size);
  const real keep = keys < a->length ? 1 : 0;
  product(kTransposed, kAsIs, keys, size, count, 1, p, a->length, out_grad, w, keep, k_grad + w, stride);
  product(kAsIs, kTransposed, count, keys, size, 1, out_grad, w, k + w, stride, 0, scores, keys);
  for (int64_t t = 0; t < count; t++) causal_softmax_backward(p + t * a->length, first + t + 1, keys, scores + t * keys);
  product(kAsIs, kAsIs, count, size, keys, scale, scores, keys, k, stride, 0, q_grad, stride);
  product(kTransposed, kAsIs, keys, size, count, scale, scores, keys, q, stride, keep, k_grad, stride);
}

void attention_backward(const struct attention *a, const real *qkv, const real *probabilities, const real *out_grad, real *scratch,
                        real *qkv_grad) {
  const int64_t n = a->length;
  const int64_t size = a->width / a->heads;
  const int64_t stride = 3 * a->width;
  const int64_t last = (n - 1) / kQueries * kQueries;
  for (int64_t s = 0; s < a->sequences; s++) {
    for (int64_t h = 0; h < a->heads; h++) {
      const int64_t at = s * n * stride + h * size;
      const real *p = probabilities + (s * a->heads + h) * n * n;
      const real *grad = out_grad + s * n * a->width + h * size;
      for (int64_t t = last; t >= 0; t -= kQueries) {
        const int64_t count = n - t < kQueries ? n - t : kQueries;
        some_queries_backward(a, t, count, qkv + at + t * stride, qkv + at + a->width, p + t * n, grad + t * a->width, scratch,
                              qkv_grad + at + t * stride, qkv_grad + at + a->width);
      }
    }
  }
}

static const real kRoot = (real)0.79788456080286535588; /* sqrt(2 / pi) */
static const real kCubic = (real)0.044715;

WIDEST void gelu_forward(const real *in, int64_t count, real *out) {
  for (int64_t i = 0; i < count; i++) {
    const real x = in[i];
    out[i] = x / (1 + real_exp(-2 * kRoot * (x + kCubic * x * x * x)));
  }
}

WIDEST void gelu_backward(const real *in, const real *out_grad, int64_t count, real *in_grad) {
  for (int64_t i = 0; i < count; i++) {
    const real x = in[i];
    const real s = 1 / (1 + real_exp(-2 * kRoot * (x + kCubic * x * x * x)));
    in_grad[i] = out_grad[i] * (s + x * s * (1 - s) * 2 * kRoot * (1 + 3 * kCubic * x * x));
  }
}

/// ln of the sum of e^logit, by way of the largest.
static double log_sum(const real *logits, int64_t vocabulary, real *out_largest, real *out_sum) {
  real largest = logits[0];
  real lanes[kLanes] = {0};
  int64_t i = 0;
  for (i = 1; i < vocabulary; i++) largest = logits[i] > largest ? logits[i] : largest;
  for (i = 0; i + kLanes <= vocabulary; i += kLanes) {
    for (int l = 0; l < kLanes; l++) lanes[l] += real_exp(logits[i + l] - largest);
  }
  for (; i < vocabulary; i++) lanes[0] += real_exp(logits[i] - largest);
  *out_largest = largest;
  *out_sum = total(lanes);
  return log((double)*out_sum) + (double)largest;
}

WIDEST double loss_forward(const real *logits, const int32_t *targets, int64_t rows, int64_t vocabulary) {
  double loss = 0;
  real largest, all;
  for (int64_t t = 0; t < rows; t++, logits += vocabulary) {
    loss += log_sum(logits, vocabulary, &largest, &all) - (double)logits[targets[t]];
  }
  return loss;
}

WIDEST double loss_backward(real *logits, const int32_t *targets, int64_t rows, int64_t vocabulary, real factor) {
  double loss = 0;
  real largest, all;
  for (int64_t t = 0; t < rows; t++, logits += vocabulary) {
    loss += log_sum(logits, vocabulary, &largest, &all) - (double)logits[targets[t]];
    const real scale = factor / all;
    for (int64_t i = 0; i < vocabulary; i++) logits[i] = real_exp(logits[i] - largest) * scale;
    logits[targets[t]] -= factor;
  }
  return loss;
}
