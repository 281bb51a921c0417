/// @file trainer: one rank's part of the training: the file that shows how libzero is used.
/// Knows nothing of how ranks are started or where images come from.
#include "trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static int out_of_memory(void) {
  fprintf(stderr, "train_fashion: out of memory\n");
  return -1;
}

static int fill_config(zero_config *config, const struct options *o) {
  return failed(zero_config_set_i64(config, ZERO_KEY_STAGE, o->stage), "set stage") ||
         failed(zero_config_set_i64(config, ZERO_KEY_BUCKET_BYTES, o->bucket_nbytes), "set bucket size") ||
         failed(zero_config_set_i64(config, ZERO_KEY_DIVISOR, o->divisor), "set divisor") ||
         failed(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "adamw"), "set algorithm");
}

static int create_optimizer(struct trainer *t) {
  zero_config *config = NULL;
  if (failed(zero_config_create(&config), "zero_config_create")) return -1;
  int status =
      fill_config(config, t->run->options) || failed(zero_optimizer_create(t->group, config, &t->optimizer), "zero_optimizer_create");
  zero_config_release(config);
  for (int i = 0; !status && i < kTensorCount; i++) {
    const struct tensor *tensor = &model_tensors[i];
    int64_t id = 0;
    status = failed(zero_optimizer_add_param(t->optimizer, NULL, tensor->name, ZERO_DTYPE_F32, tensor->shape, tensor->ndim, &id),
                    "zero_optimizer_add_param");
  }
  return status || failed(zero_optimizer_seal(t->optimizer), "zero_optimizer_seal") ? -1 : 0;
}

/// Rank 0 writes the first values, the others receive their part of them.
static int give_first_values(struct trainer *t) {
  const float *from = t->run->first_values;
  for (int i = 0; t->rank == 0 && i < kTensorCount; i++) {
    void *address = NULL;
    if (failed(zero_optimizer_param_acquire(t->optimizer, i, NULL, 0, NULL, &address), "zero_optimizer_param_acquire")) return -1;
    if (from) {
      memcpy(address, from, (size_t)model_tensors[i].count * sizeof(float));
      from += model_tensors[i].count;
    } else {
      model_first_values(i, (uint64_t)t->run->options->seed, address);
    }
    if (failed(zero_optimizer_param_release(t->optimizer, i), "zero_optimizer_param_release")) return -1;
  }
  return failed(zero_optimizer_begin(t->optimizer, ZERO_SOURCE_ROOT), "zero_optimizer_begin") ? -1 : 0;
}

/// Memory for samples, and for parameters and gradients when the caller is to have its own.
static int allocate(struct trainer *t) {
  const struct options *o = t->run->options;
  const int64_t kSmallest = 32; /* so that evaluation does not crawl when batches are tiny */
  t->capacity = (o->batch + t->size - 1) / t->size;
  if (t->capacity < kSmallest) t->capacity = kSmallest;
  t->model = model_create(t->capacity);
  t->images = malloc((size_t)t->capacity * sizeof *t->images);
  t->labels = malloc((size_t)t->capacity);
  if (!t->model || !t->images || !t->labels) return out_of_memory();
  for (int i = 0; o->caller_memory && i < kTensorCount; i++) {
    t->params[i] = malloc((size_t)model_tensors[i].count * sizeof(float));
    t->gradients[i] = malloc((size_t)model_tensors[i].count * sizeof(float));
    if (!t->params[i] || !t->gradients[i]) return out_of_memory();
  }
  return sampler_create(&t->sampler, t->run->train.count, o->batch, (uint64_t)o->seed) ? out_of_memory() : 0;
}

int trainer_create(struct trainer *t) {
  if (failed(zero_group_rank(t->group, &t->rank), "zero_group_rank") || failed(zero_group_size(t->group, &t->size), "zero_group_size")) {
    return -1;
  }
  return allocate(t) || create_optimizer(t) || give_first_values(t) ? -1 : 0;
}

void trainer_release(struct trainer *t) {
  zero_optimizer_release(t->optimizer);
  zero_group_release(t->group);
  sampler_release(&t->sampler);
  model_release(t->model);
  free(t->images);
  free(t->labels);
  for (int i = 0; i < kTensorCount; i++) {
    free(t->params[i]);
    free(t->gradients[i]);
  }
}

int64_t trainer_steps_in_all(const struct trainer *t) { return sampler_steps_per_epoch(&t->sampler) * t->run->options->epochs; }

/// Weight and bias of a layer, from the library's memory or copied into the caller's. In stage 3 they are gathered from the ranks now.
static int acquire_layer(struct trainer *t, int layer, const float *out[2]) {
  for (int i = 0; i < 2; i++) {
    const int id = 2 * layer + i;
    void *address = NULL;
    if (failed(zero_optimizer_param_acquire(t->optimizer, id, t->params[id], t->params[id] ? model_tensors[id].count : 0, NULL, &address),
               "zero_optimizer_param_acquire")) {
      return -1;
    }
    out[i] = address;
  }
  return 0;
}

static int release_layer(struct trainer *t, int layer) {
  return failed(zero_optimizer_param_release(t->optimizer, 2 * layer), "zero_optimizer_param_release") ||
                 failed(zero_optimizer_param_release(t->optimizer, 2 * layer + 1), "zero_optimizer_param_release")
             ? -1
             : 0;
}

/// Where to add a tensor's gradient, zeroed if this is the first time in this step.
static int acquire_gradient(struct trainer *t, int id, float **out) {
  void *address = t->gradients[id];
  int64_t accumulate = 0;
  if (!address && failed(zero_optimizer_grad_acquire(t->optimizer, id, NULL, &address, &accumulate), "zero_optimizer_grad_acquire"))
    return -1;
  if (!accumulate) memset(address, 0, (size_t)model_tensors[id].count * sizeof(float));
  *out = address;
  return 0;
}

static int forward(struct trainer *t) {
  for (int layer = 0; layer < kLayerCount; layer++) {
    const float *params[2];
    if (acquire_layer(t, layer, params)) return -1;
    model_forward(t->model, layer, params[0], params[1]);
    if (release_layer(t, layer)) return -1;
  }
  return 0;
}

/// One layer's gradients; libzero may reduce them while the next layer computes. A NULL gradient means the acquired address.
static int backward_layer(struct trainer *t, int layer, const float *weight) {
  float *gradients[2];
  if (acquire_gradient(t, 2 * layer, &gradients[0]) || acquire_gradient(t, 2 * layer + 1, &gradients[1])) return -1;
  model_backward(t->model, layer, weight, gradients[0], gradients[1]);
  for (int id = 2 * layer + 1; id >= 2 * layer; id--) {
    if (failed(zero_optimizer_grad_ready(t->optimizer, id, t->gradients[id], 0, model_tensors[id].count, NULL),
               "zero_optimizer_grad_ready")) {
      return -1;
    }
  }
  return 0;
}

/// A rank without samples acquires like the others, because that is a collective in stage 3, but gives no gradients.
static int backward(struct trainer *t, int64_t samples) {
  for (int layer = kLayerCount - 1; layer >= 0; layer--) {
    const float *params[2];
    if (acquire_layer(t, layer, params)) return -1;
    if (samples > 0 && backward_layer(t, layer, params[0])) return -1;
    if (release_layer(t, layer)) return -1;
  }
  return 0;
}

/// Gives the model `count` samples of a data set: those numbered in `order`, or those from `first` on when it is NULL.
static void load(struct trainer *t, const struct dataset *data, const int64_t *order, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const int64_t sample = order ? order[first + i] : first + i;
    t->images[i] = data->images + sample * kImagePixels;
    t->labels[i] = data->labels[sample];
  }
  model_begin(t->model, count, t->images, t->labels);
}

/// What changes from step to step: the learning rate, which falls to 0 along a line, and how much this rank's gradient counts.
static int set_step_scalars(struct trainer *t, int64_t step, int64_t samples) {
  const struct options *o = t->run->options;
  const double lr = o->lr * (1.0 - (double)step / (double)trainer_steps_in_all(t));
  if (failed(zero_optimizer_set_f64(t->optimizer, 0, ZERO_KEY_LR, lr), "zero_optimizer_set_f64")) return -1;
  return o->divisor == ZERO_DIVISOR_WEIGHTS && failed(zero_optimizer_set_weight(t->optimizer, (double)samples), "zero_optimizer_set_weight")
             ? -1
             : 0;
}

int trainer_step(struct trainer *t, int64_t step, double *out_loss, int64_t *out_samples) {
  int64_t total = 0;
  const int64_t *order = sampler_batch(&t->sampler, step, &total);
  int64_t first = 0;
  int64_t samples = 0;
  if (failed(zero_group_share(t->group, total, t->rank, &first, &samples), "zero_group_share")) return -1;
  load(t, &t->run->train, order, first, samples);
  if (set_step_scalars(t, step, samples) || forward(t)) return -1;
  int64_t correct = 0;
  double loss = model_loss(t->model, &correct);
  if (failed(zero_group_all_reduce(t->group, &loss, 1, &loss, 1, ZERO_DTYPE_F64, ZERO_REDUCE_SUM, NULL), "zero_group_all_reduce"))
    return -1;
  if (backward(t, samples)) return -1;
  zero_step_result result;
  if (failed(zero_step_result_init(&result, sizeof result), "zero_step_result_init") ||
      failed(zero_optimizer_step(t->optimizer, NULL, &result), "zero_optimizer_step")) {
    return -1;
  }
  *out_loss = loss / (double)total;
  *out_samples = total;
  if (!result.skipped) return 0;
  if (t->rank == 0) fprintf(stderr, "train_fashion: step %lld: a gradient is not finite; try a smaller --lr\n", (long long)step);
  return -1;
}

int trainer_evaluate(struct trainer *t, double *out_percent) {
  const int64_t count = t->run->test.count;
  int64_t first = 0;
  int64_t share = 0;
  int64_t correct = 0;
  if (failed(zero_group_share(t->group, count, t->rank, &first, &share), "zero_group_share")) return -1;
  /* As many batches as the largest share needs, on all ranks, because acquiring is a collective in stage 3. */
  const int64_t largest = (count + t->size - 1) / t->size;
  for (int64_t done = 0; done < largest; done += t->capacity) {
    const int64_t rest = share > done ? share - done : 0;
    int64_t batch_correct = 0;
    load(t, &t->run->test, NULL, first + done, rest < t->capacity ? rest : t->capacity);
    if (forward(t)) return -1;
    model_loss(t->model, &batch_correct);
    correct += batch_correct;
  }
  if (failed(zero_group_all_reduce(t->group, &correct, 1, &correct, 1, ZERO_DTYPE_I64, ZERO_REDUCE_SUM, NULL), "zero_group_all_reduce")) {
    return -1;
  }
  *out_percent = 100.0 * (double)correct / (double)count;
  return 0;
}

int trainer_hash(struct trainer *t, uint64_t *out_hash) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (int layer = 0; layer < kLayerCount; layer++) {
    const float *params[2];
    if (acquire_layer(t, layer, params)) return -1;
    for (int i = 0; i < 2; i++) {
      const unsigned char *bytes = (const unsigned char *)params[i];
      for (int64_t b = 0; b < model_tensors[2 * layer + i].count * (int64_t)sizeof(float); b++) {
        hash = (hash ^ bytes[b]) * UINT64_C(0x100000001b3);
      }
    }
    if (release_layer(t, layer)) return -1;
  }
  *out_hash = hash;
  return 0;
}
