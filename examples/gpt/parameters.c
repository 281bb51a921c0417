/// @file parameters: acquire, use, release; acquire, fill, ready. 16-bit tensors are widened and narrowed on the way. In flat arrays
/// tensors have an address, and that is all. Knows nothing of what layers compute, or of steps.
#include "parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../check.h"
#include "../precision.h"

int64_t parameters_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int is_wide(const struct parameters *p) { return p->dtype == ZERO_DTYPE_F32; }

static const struct tensor *tensor_of(const struct parameters *p, int layer, int i) {
  const int id = p->shape->layers[layer].tensors[i];
  return id < 0 ? NULL : &p->shape->tensors[id];
}

int parameters_create(struct parameters *p, const struct shape *shape, int32_t dtype) {
  *p = (struct parameters){.shape = shape, .dtype = dtype};
  for (int i = 0; !is_wide(p) && i < 2; i++) {
    int64_t most = 0;
    for (int layer = 0; layer < shape->layer_count; layer++) {
      const struct tensor *t = tensor_of(p, layer, i);
      if (t && t->count > most) most = t->count;
    }
    p->wide[i] = malloc((size_t)most * sizeof(float));
    p->wide_gradient[i] = malloc((size_t)most * sizeof(float));
    if (!p->wide[i] || !p->wide_gradient[i]) {
      fprintf(stderr, "train_gpt: out of memory\n");
      return -1;
    }
  }
  return 0;
}

void parameters_release(struct parameters *p) {
  for (int i = 0; i < 2; i++) {
    free(p->wide[i]);
    free(p->wide_gradient[i]);
  }
}

/// The tensor of which a layer makes the gradient; -1: none.
static int graded(const struct parameters *p, int layer, int i) {
  const struct layer *l = &p->shape->layers[layer];
  return l->kind == kHead && p->shape->tied ? -1 : l->tensors[i];
}

/// The first element of a tensor in a flat array.
static int64_t offset_of(const struct parameters *p, int id) {
  int64_t offset = 0;
  for (int i = 0; i < id; i++) offset += p->shape->tensors[i].count;
  return offset;
}

int parameters_acquire(struct parameters *p, int layer, int count, const float *out[2]) {
  out[0] = out[1] = NULL;
  for (int i = 0; i < count; i++) {
    const int id = p->shape->layers[layer].tensors[i];
    void *address = NULL;
    if (id < 0) continue;
    if (p->flat) {
      out[i] = p->flat + offset_of(p, id);
      continue;
    }
    const int64_t begun = parameters_clock();
    if (failed(zero_optimizer_param_acquire(p->optimizer, id, NULL, 0, NULL, &address), "zero_optimizer_param_acquire")) return -1;
    p->library_ns += parameters_clock() - begun;
    p->acquired += p->shape->tensors[id].count;
    if (!is_wide(p)) precision_widen(p->dtype, address, p->shape->tensors[id].count, p->wide[i]);
    out[i] = is_wide(p) ? address : p->wide[i];
  }
  return 0;
}

int parameters_give_back(struct parameters *p, int layer, int count) {
  if (p->flat) return 0;
  const int64_t begun = parameters_clock();
  for (int i = 0; i < count; i++) {
    const int id = p->shape->layers[layer].tensors[i];
    if (id >= 0 && failed(zero_optimizer_param_release(p->optimizer, id), "zero_optimizer_param_release")) return -1;
  }
  p->library_ns += parameters_clock() - begun;
  return 0;
}

int parameters_gradients(struct parameters *p, int layer, float *out[2], int add[2]) {
  out[0] = out[1] = NULL;
  for (int i = 0; i < 2; i++) {
    const int id = graded(p, layer, i);
    int64_t accumulate = 0;
    if (id < 0) continue;
    if (p->flat) {
      out[i] = p->flat_gradients + offset_of(p, id);
      continue;
    }
    const int64_t begun = parameters_clock();
    if (failed(zero_optimizer_grad_acquire(p->optimizer, id, NULL, &p->gradient[i], &accumulate), "zero_optimizer_grad_acquire")) return -1;
    p->library_ns += parameters_clock() - begun;
    add[i] = accumulate != 0;
    out[i] = is_wide(p) ? p->gradient[i] : p->wide_gradient[i];
    if (!is_wide(p) && add[i]) precision_widen(p->dtype, p->gradient[i], p->shape->tensors[id].count, out[i]);
  }
  return 0;
}

int parameters_ready(struct parameters *p, int layer) {
  if (p->flat) return 0;
  for (int i = 1; i >= 0; i--) {
    const int id = graded(p, layer, i);
    if (id < 0) continue;
    const int64_t count = p->shape->tensors[id].count;
    if (!is_wide(p)) precision_narrow(p->dtype, p->wide_gradient[i], count, p->gradient[i]);
    const int64_t begun = parameters_clock();
    if (failed(zero_optimizer_grad_ready(p->optimizer, id, NULL, 0, count, NULL), "zero_optimizer_grad_ready")) return -1;
    p->library_ns += parameters_clock() - begun;
  }
  return 0;
}
