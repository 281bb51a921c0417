/// @file kernels: the classifier's layers as kernels, one thread per output. Each adds in the order of model.c and product.c, without fused
/// multiply-add, so that sums have the host's bits; only exp and log are the device's own.
/// Knows nothing of where memory comes from or when a kernel runs.
///
/// Activations lie as in model.c: [sample][row][column][channel]; `padded` ones have a border of one zero pixel. Gradients of activations
/// are those of the sums, before max(0, x): what writes one cuts it where the activation is 0.
#ifndef FASHION_KERNELS_H
#define FASHION_KERNELS_H

#include <math.h>

#include "device.h"
#include "../half.h"
#include "shape.h"

/// Strides of a convolution of kernel 3 that keeps the image's size and is then pooled over 2 x 2 pixels.
template <int side, int inputs, int outputs>
struct Convolution {
  static constexpr int kSide = side, kInputs = inputs, kOutputs = outputs, kPooledSide = side / 2;
  static constexpr int kInRow = (side + 2) * inputs, kIn = (side + 2) * kInRow;        /* padded input: row, sample */
  static constexpr int kFullRow = (side + 2) * outputs, kFull = (side + 2) * kFullRow; /* padded output before pooling */
  static constexpr int kPooled = kPooledSide * kPooledSide * outputs;                  /* sample */
  static constexpr int kTerms = kKernel * inputs;                                      /* of a kernel's row */
  static constexpr int kWeights = kKernel * kTerms * outputs;
};

using Convolution1 = Convolution<kImageSide, 1, kChannels1>;
using Convolution2 = Convolution<kImageSide / 2, kChannels1, kChannels2>;

/// A gradient of weights has one thread per weight, then one per bias, which begin with a warp of their own.
DEVICE_OR_HOST_FUNCTION constexpr int64_t first_bias(int64_t weights) { return (weights + 31) / 32 * 32; }

/// Thread = pixel of an image.
struct Unpack {
  const uint8_t *images;
  float *padded;

  DEVICE_FUNCTION void operator()(int64_t i) const {
    const int64_t sample = i / kImagePixels;
    const int pixel = (int)(i % kImagePixels);
    float *to = padded + sample * Convolution1::kIn;
    to[(pixel / kImageSide + 1) * Convolution1::kInRow + pixel % kImageSide + 1] = (float)images[i] / 256.0f;
  }
};

/// Thread = element of the pooled output: its four convolutions, the maximum, then max(0, x). Of equal maxima the first is picked.
template <class C>
struct ConvolutionForward {
  const float *padded;
  const float *weight;
  const float *bias;
  float *out; /* the first element; rows and samples are out_row and out_sample apart */
  int out_row;
  int out_sample;
  uint8_t *picks;

  DEVICE_FUNCTION float at(const float *window, int output) const {
    float sum = bias[output];
    for (int row = 0; row < kKernel; row++) {
      for (int k = 0; k < C::kTerms; k++) sum += window[row * C::kInRow + k] * weight[(row * C::kTerms + k) * C::kOutputs + output];
    }
    return sum;
  }

  DEVICE_FUNCTION void operator()(int64_t i) const {
    const int64_t sample = i / C::kPooled;
    const int element = (int)(i % C::kPooled);
    const int output = element % C::kOutputs;
    const int x = element / C::kOutputs % C::kPooledSide;
    const int y = element / C::kOutputs / C::kPooledSide;
    const float *window = padded + sample * C::kIn + 2 * y * C::kInRow + 2 * x * C::kInputs;
    const float a = at(window, output), b = at(window + C::kInputs, output);
    const float c = at(window + C::kInRow, output), d = at(window + C::kInRow + C::kInputs, output);
    const float top = b > a ? b : a;
    const float low = d > c ? d : c;
    const float best = low > top ? low : top;
    out[sample * out_sample + y * out_row + x * C::kOutputs + output] = best > 0 ? best : 0;
    picks[i] = (uint8_t)(low > top ? 2 + (d > c) : b > a);
  }
};

/// Thread = element of the output before pooling: the gradient goes to the pixel that was picked.
template <class C>
struct Unpool {
  const float *gradient;
  const uint8_t *picks;
  float *full; /* padded */

  DEVICE_FUNCTION void operator()(int64_t i) const {
    const int64_t sample = i / (C::kSide * C::kSide * C::kOutputs);
    const int element = (int)(i % (C::kSide * C::kSide * C::kOutputs));
    const int output = element % C::kOutputs;
    const int x = element / C::kOutputs % C::kSide;
    const int y = element / C::kOutputs / C::kSide;
    const int64_t pooled = sample * C::kPooled + (y / 2 * C::kPooledSide + x / 2) * C::kOutputs + output;
    float *to = full + sample * C::kFull + (y + 1) * C::kFullRow + (x + 1) * C::kOutputs + output;
    *to = picks[pooled] == y % 2 * 2 + x % 2 ? gradient[pooled] : 0;
  }
};

/// Thread = weight or bias; adds to its gradient, over samples and pixels one after another.
template <class C>
struct ConvolutionWeightGrad {
  const float *padded;
  const float *full; /* padded gradient of the output */
  int64_t samples;
  float *weight_grad;
  float *bias_grad;

  static constexpr int64_t kThreads = first_bias(C::kWeights) + C::kOutputs;

  DEVICE_FUNCTION void operator()(int64_t i) const {
    const int64_t bias = i - first_bias(C::kWeights);
    if (bias >= 0) return add_bias((int)bias);
    if (i >= C::kWeights) return;
    const int output = (int)(i % C::kOutputs);
    const int term = (int)(i / C::kOutputs % C::kTerms);
    const int row = (int)(i / C::kOutputs / C::kTerms);
    float sum = weight_grad[i];
    for (int64_t s = 0; s < samples; s++) {
      for (int y = 0; y < C::kSide; y++) {
        const float *left = padded + s * C::kIn + (row + y) * C::kInRow + term;
        const float *right = first_of(s, y) + output;
        DEVICE_UNROLLED for (int x = 0; x < C::kSide; x++) sum += left[x * C::kInputs] * right[x * C::kOutputs];
      }
    }
    weight_grad[i] = sum;
  }

  /// The first pixel of a row of `full`.
  DEVICE_FUNCTION const float *first_of(int64_t sample, int y) const {
    return full + sample * C::kFull + (y + 1) * C::kFullRow + C::kOutputs;
  }

  DEVICE_FUNCTION void add_bias(int output) const {
    float sum = bias_grad[output];
    for (int64_t s = 0; s < samples; s++) {
      for (int y = 0; y < C::kSide; y++) {
        const float *right = first_of(s, y) + output;
        DEVICE_UNROLLED for (int x = 0; x < C::kSide; x++) sum += right[x * C::kOutputs];
      }
    }
    bias_grad[output] = sum;
  }
};

/// Thread = element of the input, without border: a convolution of the output's gradient with the kernels turned by half a turn.
template <class C>
struct ConvolutionInputGrad {
  const float *full; /* padded gradient of the output */
  const float *weight;
  const float *padded; /* the input */
  float *gradient;

  DEVICE_FUNCTION void operator()(int64_t i) const {
    const int64_t sample = i / (C::kSide * C::kSide * C::kInputs);
    const int element = (int)(i % (C::kSide * C::kSide * C::kInputs));
    const int input = element % C::kInputs;
    const int x = element / C::kInputs % C::kSide;
    const int y = element / C::kInputs / C::kSide;
    float sum = 0;
    for (int k = 0; k < kKernel * kKernel; k++) {
      const float *left = full + sample * C::kFull + (y + k / kKernel) * C::kFullRow + (x + k % kKernel) * C::kOutputs;
      const float *right = weight + ((kKernel * kKernel - 1 - k) * C::kInputs + input) * C::kOutputs;
      for (int output = 0; output < C::kOutputs; output++) sum += left[output] * right[output];
    }
    gradient[i] = padded[sample * C::kIn + (y + 1) * C::kInRow + (x + 1) * C::kInputs + input] > 0 ? sum : 0;
  }
};

/// Thread = element of [sample][outputs]: in * weight + bias, then max(0, x) where it is `cut`.
template <bool cut>
struct DenseForward {
  int inputs;
  int outputs;
  const float *in;
  const float *weight;
  const float *bias;
  float *out;

  DEVICE_FUNCTION void operator()(int64_t i) const {
    const int64_t sample = i / outputs;
    const int output = (int)(i % outputs);
    float sum = bias[output];
    for (int k = 0; k < inputs; k++) sum += in[sample * inputs + k] * weight[(int64_t)k * outputs + output];
    out[i] = !cut || sum > 0 ? sum : 0;
  }
};

/// Thread = weight or bias; adds to its gradient, over samples one after another.
struct DenseWeightGrad {
  int inputs;
  int outputs;
  const float *in;
  const float *gradient; /* of the output */
  int64_t samples;
  float *weight_grad;
  float *bias_grad;

  DEVICE_FUNCTION void operator()(int64_t i) const {
    const int64_t weights = (int64_t)inputs * outputs;
    const int64_t bias = i - first_bias(weights);
    if (bias < 0 && i >= weights) return;
    const int64_t input = i / outputs;
    const int64_t output = bias < 0 ? i % outputs : bias;
    float *to = bias < 0 ? weight_grad + i : bias_grad + bias;
    float sum = *to;
    for (int64_t s = 0; s < samples; s++) {
      const float g = gradient[s * outputs + output];
      sum += bias < 0 ? in[s * inputs + input] * g : g;
    }
    *to = sum;
  }
};

/// Thread = element of [sample][inputs].
struct DenseInputGrad {
  int inputs;
  int outputs;
  const float *gradient; /* of the output */
  const float *weight;
  const float *in;
  float *in_grad;

  DEVICE_FUNCTION void operator()(int64_t i) const {
    const int64_t sample = i / inputs;
    const int64_t input = i % inputs;
    float sum = 0;
    for (int o = 0; o < outputs; o++) sum += gradient[sample * outputs + o] * weight[input * outputs + o];
    in_grad[i] = in[i] > 0 ? sum : 0;
  }
};

/// What the loss is of one sample.
struct SampleLoss {
  double loss; /* cross-entropy */
  int64_t correct;
};

/// Thread = sample.
struct Loss {
  const float *logits;
  const uint8_t *labels;
  SampleLoss *out;

  DEVICE_FUNCTION void operator()(int64_t i) const {
    const float *z = logits + i * kClassCount;
    int best = 0;
    for (int k = 1; k < kClassCount; k++) best = z[k] > z[best] ? k : best;
    double sum = 0;
    for (int k = 0; k < kClassCount; k++) sum += exp((double)z[k] - z[best]);
    out[i] = {log(sum) + z[best] - z[labels[i]], best == labels[i]};
  }
};

/// Thread = sample: (softmax - one at the label) / divisor.
struct LossGrad {
  const float *logits;
  const uint8_t *labels;
  double divisor;
  float *gradient;

  DEVICE_FUNCTION void operator()(int64_t i) const {
    const float *z = logits + i * kClassCount;
    double top = z[0];
    for (int k = 1; k < kClassCount; k++) top = z[k] > top ? z[k] : top;
    double sum = 0;
    for (int k = 0; k < kClassCount; k++) sum += exp(z[k] - top);
    for (int k = 0; k < kClassCount; k++) gradient[i * kClassCount + k] = (float)((exp(z[k] - top) / sum - (k == labels[i])) / divisor);
  }
};

/// Thread = element. From bf16, or from f16.
template <bool is_bf16>
struct Widen {
  const uint16_t *from;
  float *to;

  DEVICE_FUNCTION void operator()(int64_t i) const { to[i] = is_bf16 ? half_widen_bf16(from[i]) : half_widen_f16(from[i]); }
};

template <bool is_bf16>
struct Narrow {
  const float *from;
  uint16_t *to;

  DEVICE_FUNCTION void operator()(int64_t i) const { to[i] = is_bf16 ? half_narrow_bf16(from[i]) : half_narrow_f16(from[i]); }
};

#endif
