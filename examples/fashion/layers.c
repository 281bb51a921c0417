/// @file layers: the calls that fetch parameters from libzero and give it gradients, and their conversions.
/// With flat arrays it only returns addresses. Knows nothing of steps or samples.
#include "layers.h"

#include <stdio.h>
#include <stdlib.h>

#include "../check.h"
#include "../precision.h"

static int is_wide(const struct layers *l) { return l->dtype == ZERO_DTYPE_F32; }

static size_t nbytes_of(const struct layers *l, int id) {
  return (size_t)model_tensors[id].count * (is_wide(l) ? sizeof(float) : sizeof(uint16_t));
}

static int out_of_memory(void) {
  fprintf(stderr, "train_fashion: out of memory\n");
  return -1;
}

/// Whether parameters and gradients pass through memory of the program: libzero's is not where the model is computed, or as asked for.
static int keeps_own(const struct options *options) {
  return options->caller_memory || (options->device >= 0 && options->tier == ZERO_TIER_HOST);
}

int layers_create(struct layers *l, const struct options *options, struct compute *compute) {
  *l = (struct layers){.compute = compute, .dtype = options->dtype};
  int64_t largest[2] = {0, 0};
  int missing = 0;
  for (int id = 0; id < kTensorCount; id++) {
    if (model_tensors[id].count > largest[id % 2]) largest[id % 2] = model_tensors[id].count;
    if (!keeps_own(options)) continue;
    l->params[id] = compute->allocate(compute, nbytes_of(l, id));
    l->gradients[id] = compute->allocate(compute, nbytes_of(l, id));
    missing |= !l->params[id] || !l->gradients[id];
  }
  for (int i = 0; !is_wide(l) && i < 2; i++) {
    l->wide_params[i] = compute->allocate(compute, (size_t)largest[i] * sizeof(float));
    l->wide_gradients[i] = compute->allocate(compute, (size_t)largest[i] * sizeof(float));
    missing |= !l->wide_params[i] || !l->wide_gradients[i];
  }
  return missing ? out_of_memory() : 0;
}

void layers_release(struct layers *l) {
  struct compute *compute = l->compute;
  for (int id = 0; compute && id < kTensorCount; id++) {
    compute->deallocate(compute, l->params[id]);
    compute->deallocate(compute, l->gradients[id]);
  }
  for (int i = 0; compute && i < 2; i++) {
    compute->deallocate(compute, l->wide_params[i]);
    compute->deallocate(compute, l->wide_gradients[i]);
  }
}

int layers_acquire(struct layers *l, int layer, const float *out[2]) {
  for (int i = 0; i < 2; i++) {
    const int id = 2 * layer + i;
    const int64_t count = model_tensors[id].count;
    void *address = NULL;
    if (l->flat_params) {
      out[i] = l->flat_params + model_offset(id);
      continue;
    }
    if (failed(zero_optimizer_param_acquire(l->optimizer, id, l->params[id], l->params[id] ? count : 0, l->compute->stream, &address),
               "zero_optimizer_param_acquire")) {
      return -1;
    }
    if (!is_wide(l) && l->compute->widen(l->compute, l->dtype, address, count, l->wide_params[i])) return -1;
    out[i] = is_wide(l) ? address : l->wide_params[i];
  }
  return 0;
}

int layers_give_back(struct layers *l, int layer) {
  if (l->flat_params) return 0;
  return failed(zero_optimizer_param_release(l->optimizer, 2 * layer), "zero_optimizer_param_release") ||
                 failed(zero_optimizer_param_release(l->optimizer, 2 * layer + 1), "zero_optimizer_param_release")
             ? -1
             : 0;
}

/// The address of one gradient, zeroed if this is its first time in the step; of a 16-bit one that of its fp32 form.
static int acquire_gradient(struct layers *l, int id, float **out) {
  const int64_t count = model_tensors[id].count;
  void *address = l->flat_params ? l->flat_gradients + model_offset(id) : l->gradients[id];
  int64_t accumulate = 0;
  struct compute *compute = l->compute;
  if (!address &&
      failed(zero_optimizer_grad_acquire(l->optimizer, id, compute->stream, &address, &accumulate), "zero_optimizer_grad_acquire")) {
    return -1;
  }
  l->acquired[id % 2] = address;
  *out = is_wide(l) ? address : l->wide_gradients[id % 2];
  if (!accumulate) return compute->clear(compute, *out, (size_t)count * sizeof(float));
  return is_wide(l) ? 0 : compute->widen(compute, l->dtype, address, count, *out);
}

int layers_gradients(struct layers *l, int layer, float *out[2]) {
  return acquire_gradient(l, 2 * layer, &out[0]) || acquire_gradient(l, 2 * layer + 1, &out[1]) ? -1 : 0;
}

/// A NULL gradient means the acquired address.
static int ready(struct layers *l, int id) {
  const int64_t count = model_tensors[id].count;
  struct compute *compute = l->compute;
  if (!is_wide(l) && compute->narrow(compute, l->dtype, l->wide_gradients[id % 2], count, l->acquired[id % 2])) return -1;
  return failed(zero_optimizer_grad_ready(l->optimizer, id, l->gradients[id], 0, count, compute->stream), "zero_optimizer_grad_ready");
}

int layers_ready(struct layers *l, int layer) {
  if (l->flat_params) return 0;
  return ready(l, 2 * layer + 1) || ready(l, 2 * layer) ? -1 : 0;
}

int layers_write_first(struct layers *l, int id, const float *values) {
  void *address = NULL;
  uint16_t *narrowed = is_wide(l) ? NULL : malloc(nbytes_of(l, id));
  if (!is_wide(l) && !narrowed) return out_of_memory();
  if (narrowed) precision_narrow(l->dtype, values, model_tensors[id].count, narrowed);
  const int status =
      failed(zero_optimizer_param_acquire(l->optimizer, id, NULL, 0, l->compute->stream, &address), "zero_optimizer_param_acquire") ||
      l->compute->copy(l->compute, address, narrowed ? (const void *)narrowed : values, nbytes_of(l, id)) ||
      failed(zero_optimizer_param_release(l->optimizer, id), "zero_optimizer_param_release");
  free(narrowed);
  return status ? -1 : 0;
}
