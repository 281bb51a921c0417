/// @file trainer: parameters are acquired tensor by tensor and gradients given chunk by chunk, so that a rank never holds more than the
/// largest tensor beside its shards. Knows nothing of how ranks are started.
#include "trainer.h"

#include <stdio.h>
#include <stdlib.h>

enum { kChunk = 1 << 18 };

int failed(int32_t status, const char *call) {
  char text[1024];
  if (status == ZERO_OK) return 0;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "memory_wall: %s: %s: %s\n", call, zero_status_name(status), text);
  return 1;
}

/// VERIFY_EVERY: checksums are taken after step n * K - 1, here the last one.
static int fill_config(const struct options *options, int64_t stage, zero_config *config) {
  const int64_t limit = (int64_t)(options->limit_gib * (double)(INT64_C(1) << 30));
  return failed(zero_config_set_i64(config, ZERO_KEY_STAGE, stage), "set stage") ||
         failed(zero_config_set_i64(config, ZERO_KEY_VERIFY_EVERY, options->steps + 1), "set verification") ||
         failed(zero_config_set_i64(config, ZERO_KEY_MEMORY_LIMIT, limit), "set memory limit");
}

static int add_param(zero_optimizer *optimizer, const struct tensor *tensor) {
  zero_config *config = NULL;
  int64_t id = 0;
  if (failed(zero_config_create(&config), "zero_config_create")) return -1;
  const int status =
      (tensor->tied_to >= 0 && failed(zero_config_set_i64(config, ZERO_KEY_TIED_TO, tensor->tied_to), "tie")) ||
      failed(zero_optimizer_add_param(optimizer, config, tensor->name, ZERO_DTYPE_F32, tensor->shape, tensor->ndim, &id), tensor->name);
  zero_config_release(config);
  return status ? -1 : 0;
}

int trainer_create(struct trainer *t, int64_t stage, int32_t *out_status) {
  zero_config *config = NULL;
  if (failed(zero_config_create(&config), "zero_config_create")) return -1;
  int status = fill_config(t->options, stage, config) || failed(zero_optimizer_create(t->group, config, &t->optimizer), "create");
  zero_config_release(config);
  for (int64_t id = 0; !status && id < t->shapes->count; id++) status = add_param(t->optimizer, &t->shapes->tensors[id]);
  if (status) return -1;
  *out_status = zero_optimizer_seal(t->optimizer);
  if (*out_status != ZERO_E_OUT_OF_MEMORY) return failed(*out_status, "zero_optimizer_seal") ? -1 : 0;
  trainer_release(t);
  return 0;
}

void trainer_release(struct trainer *t) {
  zero_optimizer_release(t->optimizer);
  t->optimizer = NULL;
  free(t->chunk);
  t->chunk = NULL;
}

int trainer_first_values(struct trainer *t) {
  const int64_t kSeed = 1;
  t->chunk = malloc(kChunk * sizeof *t->chunk);
  if (!t->chunk) {
    fprintf(stderr, "memory_wall: out of memory\n");
    return -1;
  }
  for (int64_t id = 0; id < t->shapes->count; id++) {
    const struct tensor *tensor = &t->shapes->tensors[id];
    const int32_t kind = tensor->deviation > 0 ? ZERO_INITIALISER_NORMAL : ZERO_INITIALISER_CONSTANT;
    if (tensor->tied_to >= 0) continue;
    if (failed(zero_optimizer_init_param(t->optimizer, id, kind, tensor->mean, tensor->deviation, kSeed), "zero_optimizer_init_param"))
      return -1;
  }
  return failed(zero_optimizer_begin(t->optimizer, ZERO_SOURCE_SHARDS), "zero_optimizer_begin") ? -1 : 0;
}

static int acquire(struct trainer *t, int64_t id, const float **out) {
  void *address = NULL;
  if (failed(zero_optimizer_param_acquire(t->optimizer, id, NULL, 0, NULL, &address), "zero_optimizer_param_acquire")) return -1;
  *out = address;
  return 0;
}

static int give_back(struct trainer *t, int64_t id) {
  return failed(zero_optimizer_param_release(t->optimizer, id), "zero_optimizer_param_release") ? -1 : 0;
}

/// The loss: every rank squares its share of each tensor.
static int forward(struct trainer *t, double *sum) {
  for (int64_t id = 0; id < t->shapes->count; id++) {
    const struct tensor *tensor = &t->shapes->tensors[id];
    const float *values = NULL;
    int64_t first = 0;
    int64_t share = 0;
    if (acquire(t, id, &values) || failed(zero_group_share(t->group, tensor->count, t->rank, &first, &share), "zero_group_share"))
      return -1;
    for (int64_t i = first; tensor->tied_to < 0 && i < first + share; i++) *sum += (double)values[i] * (double)values[i];
    if (give_back(t, id)) return -1;
  }
  return failed(zero_group_all_reduce(t->group, sum, 1, sum, 1, ZERO_DTYPE_F64, ZERO_REDUCE_SUM, NULL), "zero_group_all_reduce") ? -1 : 0;
}

/// The gradient of one tensor, chunk by chunk: its own values, of which this rank's samples make `part`.
static int give_gradient(struct trainer *t, int64_t id, const float *values, float part) {
  const int64_t count = t->shapes->tensors[id].count;
  for (int64_t first = 0; first < count; first += kChunk) {
    const int64_t rest = count - first < kChunk ? count - first : kChunk;
    for (int64_t i = 0; i < rest; i++) t->chunk[i] = values[first + i] * part;
    if (failed(zero_optimizer_grad_ready(t->optimizer, id, t->chunk, first, rest, NULL), "zero_optimizer_grad_ready")) return -1;
  }
  return 0;
}

/// From the last tensor to the first. Ranks have gradients of different size, whose mean is the gradient; the two uses of a tied tensor are
/// added, so each gives half.
static int backward(struct trainer *t) {
  const float part = 2 * (float)(t->rank + 1) / (float)(t->options->ranks + 1);
  const int64_t last = t->shapes->count - 1;
  for (int64_t id = last; id >= 0; id--) {
    const int tied = id == last || id == t->shapes->tensors[last].tied_to;
    const float *values = NULL;
    if (acquire(t, id, &values) || give_gradient(t, id, values, tied ? part / 2 : part) || give_back(t, id)) return -1;
  }
  return 0;
}

int trainer_step(struct trainer *t, double *out_mean_square) {
  double sum = 0;
  if (forward(t, &sum) || backward(t) || failed(zero_optimizer_step(t->optimizer, NULL, NULL), "zero_optimizer_step")) return -1;
  *out_mean_square = sum / (double)t->shapes->parameters;
  return 0;
}

int trainer_verify(struct trainer *t, int64_t *out_nbytes, int64_t *out_differing) {
  zero_verify_result result;
  if (failed(zero_verify_result_init(&result, sizeof result), "zero_verify_result_init") ||
      failed(zero_optimizer_verify(t->optimizer, NULL, &result), "zero_optimizer_verify")) {
    return -1;
  }
  *out_nbytes = result.shard_nbytes + result.replica_nbytes;
  *out_differing = result.chunk_count;
  return failed(zero_group_all_reduce(t->group, out_nbytes, 1, out_nbytes, 1, ZERO_DTYPE_I64, ZERO_REDUCE_SUM, NULL),
                "zero_group_all_reduce")
             ? -1
             : 0;
}
