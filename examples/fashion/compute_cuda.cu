/// @file compute_cuda: the model on a CUDA device, with the kernels of kernels.h in the order of one stream.
/// Knows nothing of libzero but the numbers of its dtypes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zero/dtype.h>

#include "compute.h"
#include "device.h"
#include "kernels.h"

namespace {

/// The device's memory holds all but `bytes` and `losses`; activations and gradients are those of model.c.
struct Cuda {
  compute calls; /* first, so that its address is that of all */
  int64_t capacity;
  int64_t count;
  double divisor;
  uint8_t *bytes;     /* on the host: images, then labels, on their way */
  SampleLoss *losses; /* the same, on their way back */
  char *memory;       /* holds everything below */
  float *input, *pooled1, *pooled2, *hidden, *logits;
  float *gradient1, *gradient2, *gradient3, *gradient4; /* of what pooled1 to logits were before max(0, x) */
  float *full1, *full2;                                 /* gradients of the convolutions before pooling */
  uint8_t *picks1, *picks2, *images, *labels;
  SampleLoss *sample_losses;
};

Cuda *cuda_of(compute *self) { return reinterpret_cast<Cuda *>(self); }

/// Images and labels lie in one piece on both sides.
size_t batch_nbytes(int64_t count) { return (size_t)count * (kImagePixels + 1); }

/// The next `count` elements of the memory; with NULL only counts them.
template <class T>
void carve(const Cuda *c, size_t *used, int64_t count, T **out) {
  *out = c->memory ? reinterpret_cast<T *>(c->memory + *used) : nullptr;
  *used += ((size_t)count * sizeof(T) + 255) / 256 * 256;
}

size_t carve_all(Cuda *c) {
  const int64_t n = c->capacity;
  size_t used = 0;
  carve(c, &used, n * Convolution1::kIn, &c->input);
  carve(c, &used, n * Convolution2::kIn, &c->pooled1);
  carve(c, &used, n * kPooled2, &c->pooled2);
  carve(c, &used, n * kHidden, &c->hidden);
  carve(c, &used, n * kClassCount, &c->logits);
  carve(c, &used, n * Convolution1::kPooled, &c->gradient1);
  carve(c, &used, n * kPooled2, &c->gradient2);
  carve(c, &used, n * kHidden, &c->gradient3);
  carve(c, &used, n * kClassCount, &c->gradient4);
  carve(c, &used, n * Convolution1::kFull, &c->full1);
  carve(c, &used, n * Convolution2::kFull, &c->full2);
  carve(c, &used, n * Convolution1::kPooled, &c->picks1);
  carve(c, &used, n * Convolution2::kPooled, &c->picks2);
  carve(c, &used, n * (kImagePixels + 1), &c->images);
  carve(c, &used, n, &c->sample_losses);
  return used;
}

void release(compute *self) {
  Cuda *c = cuda_of(self);
  device_close(self->stream);
  device_deallocate(c->memory);
  free(c->bytes);
  free(c->losses);
  free(c);
}

int begin(compute *self, int64_t count, const uint8_t *const *images, const uint8_t *labels) {
  Cuda *c = cuda_of(self);
  c->count = count;
  c->divisor = (double)count;
  c->labels = c->images + count * kImagePixels;
  if (count == 0) return 0;
  for (int64_t s = 0; s < count; s++) memcpy(c->bytes + s * kImagePixels, images[s], kImagePixels);
  memcpy(c->bytes + count * kImagePixels, labels, (size_t)count);
  if (device_copy(self->stream, c->images, c->bytes, batch_nbytes(count))) return -1;
  return device_launch(self->stream, count * kImagePixels, "unpack", Unpack{c->images, c->input});
}

void set_divisor(compute *self, double divisor) { cuda_of(self)->divisor = divisor; }

int forward(compute *self, int layer, const float *weight, const float *bias) {
  const Cuda *c = cuda_of(self);
  const int64_t n = c->count;
  if (layer == 0) {
    /* Into pooled1 within its border, as Convolution2 reads it. */
    float *first = c->pooled1 + Convolution2::kInRow + kChannels1;
    return device_launch(
        self->stream, n * Convolution1::kPooled, "conv1",
        ConvolutionForward<Convolution1>{c->input, weight, bias, first, Convolution2::kInRow, Convolution2::kIn, c->picks1});
  }
  if (layer == 1) {
    return device_launch(self->stream, n * Convolution2::kPooled, "conv2",
                         ConvolutionForward<Convolution2>{c->pooled1, weight, bias, c->pooled2, Convolution2::kPooledSide * kChannels2,
                                                          Convolution2::kPooled, c->picks2});
  }
  if (layer == 2) {
    return device_launch(self->stream, n * kHidden, "dense1", DenseForward<true>{kPooled2, kHidden, c->pooled2, weight, bias, c->hidden});
  }
  return device_launch(self->stream, n * kClassCount, "dense2",
                       DenseForward<false>{kHidden, kClassCount, c->hidden, weight, bias, c->logits});
}

int loss(compute *self, double *out_loss, int64_t *out_correct) {
  const Cuda *c = cuda_of(self);
  *out_loss = 0;
  *out_correct = 0;
  if (c->count == 0) return 0;
  if (device_launch(self->stream, c->count, "loss", Loss{c->logits, c->labels, c->sample_losses}) ||
      device_copy(self->stream, c->losses, c->sample_losses, (size_t)c->count * sizeof(SampleLoss))) {
    return -1;
  }
  for (int64_t s = 0; s < c->count; s++) {
    *out_loss += c->losses[s].loss;
    *out_correct += c->losses[s].correct;
  }
  return 0;
}

/// One dense layer: gradients of its parameters, and of its input.
int dense_backward(const Cuda *c, int inputs, int outputs, const float *in, const float *gradient, const float *weight, float *in_grad,
                   float *weight_grad, float *bias_grad) {
  const DenseWeightGrad weights{inputs, outputs, in, gradient, c->count, weight_grad, bias_grad};
  return device_launch(c->calls.stream, first_bias((int64_t)inputs * outputs) + outputs, "dense weight gradient", weights) ||
                 device_launch(c->calls.stream, c->count * inputs, "dense input gradient",
                               DenseInputGrad{inputs, outputs, gradient, weight, in, in_grad})
             ? -1
             : 0;
}

/// One convolution: gradients of its parameters, by way of that of its output before pooling.
template <class C>
int convolution_backward(const Cuda *c, const float *in, const float *gradient, const uint8_t *picks, float *full, float *weight_grad,
                         float *bias_grad) {
  const ConvolutionWeightGrad<C> weights{in, full, c->count, weight_grad, bias_grad};
  return device_launch(c->calls.stream, c->count * C::kSide * C::kSide * C::kOutputs, "unpool", Unpool<C>{gradient, picks, full}) ||
                 device_launch(c->calls.stream, weights.kThreads, "convolution weight gradient", weights)
             ? -1
             : 0;
}

int backward(compute *self, int layer, const float *weight, float *weight_grad, float *bias_grad) {
  const Cuda *c = cuda_of(self);
  if (c->count == 0) return 0;
  if (layer == 3) {
    return device_launch(self->stream, c->count, "loss gradient", LossGrad{c->logits, c->labels, c->divisor, c->gradient4}) ||
           dense_backward(c, kHidden, kClassCount, c->hidden, c->gradient4, weight, c->gradient3, weight_grad, bias_grad);
  }
  if (layer == 2) return dense_backward(c, kPooled2, kHidden, c->pooled2, c->gradient3, weight, c->gradient2, weight_grad, bias_grad);
  if (layer == 1) {
    return convolution_backward<Convolution2>(c, c->pooled1, c->gradient2, c->picks2, c->full2, weight_grad, bias_grad) ||
           device_launch(self->stream, c->count * Convolution1::kPooled, "convolution input gradient",
                         ConvolutionInputGrad<Convolution2>{c->full2, weight, c->pooled1, c->gradient1});
  }
  return convolution_backward<Convolution1>(c, c->input, c->gradient1, c->picks1, c->full1, weight_grad, bias_grad);
}

void *allocate(compute *, size_t nbytes) { return device_allocate(nbytes); }

void deallocate(compute *, void *memory) { device_deallocate(memory); }

int clear(compute *self, void *to, size_t nbytes) { return device_clear(self->stream, to, nbytes); }

int copy(compute *self, void *to, const void *from, size_t nbytes) { return device_copy(self->stream, to, from, nbytes); }

int widen(compute *self, int32_t dtype, const uint16_t *from, int64_t count, float *to) {
  return dtype == ZERO_DTYPE_BF16 ? device_launch(self->stream, count, "widen", Widen<true>{from, to})
                                  : device_launch(self->stream, count, "widen", Widen<false>{from, to});
}

int narrow(compute *self, int32_t dtype, const float *from, int64_t count, uint16_t *to) {
  return dtype == ZERO_DTYPE_BF16 ? device_launch(self->stream, count, "narrow", Narrow<true>{from, to})
                                  : device_launch(self->stream, count, "narrow", Narrow<false>{from, to});
}

int out_of_memory() {
  fprintf(stderr, "train_fashion: out of memory\n");
  return -1;
}

/// The memory of a struct whose stream is open; borders stay 0 from now on.
int allocate_all(Cuda *c) {
  const size_t nbytes = carve_all(c);
  c->bytes = static_cast<uint8_t *>(malloc(batch_nbytes(c->capacity)));
  c->losses = static_cast<SampleLoss *>(malloc((size_t)c->capacity * sizeof(SampleLoss)));
  if (!c->bytes || !c->losses) return out_of_memory();
  c->memory = static_cast<char *>(device_allocate(nbytes));
  if (!c->memory) return -1;
  carve_all(c);
  return device_clear(c->calls.stream, c->memory, nbytes);
}

}  // namespace

int compute_create_cuda(int64_t device, int64_t capacity, struct compute **out) {
  Cuda *c = static_cast<Cuda *>(calloc(1, sizeof *c));
  if (!c) return out_of_memory();
  c->calls = {nullptr, release, begin, set_divisor, forward, loss, backward, allocate, deallocate, clear, copy, widen, narrow};
  c->capacity = capacity > 0 ? capacity : 1;
  if (device_open(device, &c->calls.stream) || allocate_all(c)) {
    release(&c->calls);
    return -1;
  }
  *out = &c->calls;
  return 0;
}
