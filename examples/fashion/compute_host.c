/// @file compute_host: the model on the calling thread, in the host's memory.
/// Knows nothing of devices.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute.h"
#include "model.h"
#include "../precision.h"

struct host {
  struct compute compute; /* first, so that its address is the host's */
  struct model *model;
};

static struct model *model_of(struct compute *self) { return ((struct host *)self)->model; }

static void release(struct compute *self) {
  model_release(model_of(self));
  free(self);
}

static int begin(struct compute *self, int64_t count, const uint8_t *const *images, const uint8_t *labels) {
  model_begin(model_of(self), count, images, labels);
  return 0;
}

static void set_divisor(struct compute *self, double divisor) { model_set_divisor(model_of(self), divisor); }

static int forward(struct compute *self, int layer, const float *weight, const float *bias) {
  model_forward(model_of(self), layer, weight, bias);
  return 0;
}

static int loss(struct compute *self, double *out_loss, int64_t *out_correct) {
  *out_loss = model_loss(model_of(self), out_correct);
  return 0;
}

static int backward(struct compute *self, int layer, const float *weight, float *weight_grad, float *bias_grad) {
  model_backward(model_of(self), layer, weight, weight_grad, bias_grad);
  return 0;
}

static void *allocate(struct compute *self, size_t nbytes) {
  (void)self;
  return malloc(nbytes);
}

static void deallocate(struct compute *self, void *memory) {
  (void)self;
  free(memory);
}

static int clear(struct compute *self, void *to, size_t nbytes) {
  (void)self;
  memset(to, 0, nbytes);
  return 0;
}

static int copy(struct compute *self, void *to, const void *from, size_t nbytes) {
  (void)self;
  memcpy(to, from, nbytes);
  return 0;
}

static int widen(struct compute *self, int32_t dtype, const uint16_t *from, int64_t count, float *to) {
  (void)self;
  precision_widen(dtype, from, count, to);
  return 0;
}

static int narrow(struct compute *self, int32_t dtype, const float *from, int64_t count, uint16_t *to) {
  (void)self;
  precision_narrow(dtype, from, count, to);
  return 0;
}

static const struct compute kHost = {NULL,     release,    begin, set_divisor, forward, loss,  backward,
                                     allocate, deallocate, clear, copy,        widen,   narrow};

int compute_create_host(int64_t capacity, struct compute **out) {
  struct host *host = malloc(sizeof *host);
  struct model *model = model_create(capacity);
  if (!host || !model) {
    fprintf(stderr, "train_fashion: out of memory\n");
    model_release(model);
    free(host);
    return -1;
  }
  *host = (struct host){kHost, model};
  *out = &host->compute;
  return 0;
}
