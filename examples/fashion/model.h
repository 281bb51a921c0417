/// @file model: a convolutional classifier of 28 x 28 images with its own forward and backward, layer by layer over a batch of samples.
/// Knows nothing of ranks or of libzero: parameters and gradients are plain pointers that its caller provides.
#ifndef FASHION_MODEL_H
#define FASHION_MODEL_H

#include <stdint.h>

enum {
  kImageSide = 28,
  kImagePixels = kImageSide * kImageSide,
  kClassCount = 10,
  kLayerCount = 4,
  kTensorCount = 2 * kLayerCount /* of layer l: weight 2 l, bias 2 l + 1 */
};

/// A tensor of parameters. Weights are stored input-major: [kernel row][kernel column][input][output] or [input][output].
struct tensor {
  const char *name;
  int64_t shape[4];
  int64_t ndim;
  int64_t count;
};

extern const struct tensor model_tensors[kTensorCount];

/// Elements of the tensors before tensor `tensor`; with kTensorCount those of all.
int64_t model_offset(int tensor);

/// First values of a tensor: weights uniform with the variance 2 / inputs (He et al., "Delving Deep into Rectifiers", 2015), biases zero.
void model_first_values(int tensor, uint64_t seed, float *out);

/// Activations of up to `capacity` samples.
struct model;

/// NULL when memory is short; model_release takes NULL.
struct model *model_create(int64_t capacity);
void model_release(struct model *model);

/// Takes `count` images of kImagePixels bytes and their labels; the first layer reads them.
void model_begin(struct model *model, int64_t count, const uint8_t *const *images, const uint8_t *labels);

/// What gradients of the sum over samples of the loss are divided by; their number after model_begin.
void model_set_divisor(struct model *model, double divisor);

/// Layer `layer` of all samples; layers run from 0 to kLayerCount - 1.
void model_forward(struct model *model, int layer, const float *weight, const float *bias);

/// After the last layer: sum over the samples of the cross-entropy, and how many were classified correctly.
double model_loss(const struct model *model, int64_t *out_correct);

/// Adds to both gradients those of the sum of cross-entropies over the divisor; layers run from kLayerCount - 1 to 0.
void model_backward(struct model *model, int layer, const float *weight, float *weight_grad, float *bias_grad);

#endif
