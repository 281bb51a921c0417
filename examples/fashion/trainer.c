/// @file trainer: one rank's part of the training: the file that shows how libzero is used.
/// Knows nothing of how ranks are started or where images come from.
#include "trainer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"

static int out_of_memory(void) {
  fprintf(stderr, "train_fashion: out of memory\n");
  return -1;
}

static int fill_config(zero_config *config, const struct options *o, int64_t device) {
  return recipe_fill(o->recipe, config) || failed(zero_config_set_i64(config, ZERO_KEY_STAGE, o->stage), "set stage") ||
         failed(zero_config_set_i64(config, ZERO_KEY_BUCKET_BYTES, o->bucket_nbytes), "set bucket size") ||
         failed(zero_config_set_i64(config, ZERO_KEY_DIVISOR, o->divisor), "set divisor") ||
         failed(zero_config_set_i64(config, ZERO_KEY_DEVICE, device), "set device") ||
         failed(zero_config_set_i64(config, ZERO_KEY_TIER, o->tier), "set tier") ||
         failed(zero_config_set_f64(config, ZERO_KEY_CLIP_NORM, o->clip_norm), "set clipping") || replica_configure(&o->replicas, config) ||
         failed(zero_config_set_i64(config, ZERO_KEY_LOSS_SCALE_DYNAMIC, o->dynamic_scale), "set dynamic loss scale") ||
         failed(zero_config_set_f64(config, ZERO_KEY_LOSS_SCALE, o->loss_scale), "set loss scale");
}

static int create_optimizer(struct trainer *t) {
  const struct options *o = t->run->options;
  zero_config *config = NULL;
  if (failed(zero_config_create(&config), "zero_config_create")) return -1;
  const int status =
      fill_config(config, o, t->device) || failed(zero_optimizer_create(t->group, config, &t->optimizer), "zero_optimizer_create");
  zero_config_release(config);
  if (status || recipe_add_params(o->recipe, o->dtype, t->optimizer)) return -1;
  t->layers.optimizer = t->optimizer;
  return failed(zero_optimizer_seal(t->optimizer), "zero_optimizer_seal") ? -1 : 0;
}

void trainer_first_values(const struct trainer *t, float *out) {
  const float *from = t->run->first_values;
  if (from) memcpy(out, from, (size_t)model_offset(kTensorCount) * sizeof(float));
  for (int i = 0; !from && i < kTensorCount; i++) model_first_values(i, (uint64_t)t->run->options->seed, out + model_offset(i));
}

static int write_first_values(struct trainer *t) {
  float *values = malloc((size_t)model_offset(kTensorCount) * sizeof(float));
  int status = 0;
  if (!values) return out_of_memory();
  trainer_first_values(t, values);
  for (int i = 0; !status && i < kTensorCount; i++) status = layers_write_first(&t->layers, i, values + model_offset(i));
  free(values);
  return status;
}

/// Rank 0 writes the first values, the others receive their part of them.
static int give_first_values(struct trainer *t) {
  const int status = t->rank == 0 ? write_first_values(t) : 0;
  return status || failed(zero_optimizer_begin(t->optimizer, ZERO_SOURCE_ROOT), "zero_optimizer_begin") ? -1 : 0;
}

/// Memory for the samples of a micro-step, and for a layer.
static int allocate(struct trainer *t) {
  const struct options *o = t->run->options;
  const int64_t kSmallest = 32; /* so that evaluation does not crawl when batches are tiny */
  const int64_t parts = t->size * o->accumulate;
  t->capacity = (o->batch + parts - 1) / parts;
  if (t->capacity < kSmallest) t->capacity = kSmallest;
  if (t->device < 0 ? compute_create_host(t->capacity, &t->compute) : compute_create_cuda(t->device, t->capacity, &t->compute)) return -1;
  t->images = malloc((size_t)t->capacity * sizeof *t->images);
  t->labels = malloc((size_t)t->capacity);
  if (!t->images || !t->labels) return out_of_memory();
  if (layers_create(&t->layers, o, t->compute)) return -1;
  return sampler_create(&t->sampler, t->run->train.count, o->batch, (uint64_t)o->seed) ? out_of_memory() : 0;
}

/// From the newest save, or from first values.
static int begin(struct trainer *t) {
  if (saves_open(&t->saves, &t->run->options->saves, t->group, t->optimizer, &t->first_step)) return -1;
  if (t->first_step < 0) {
    t->first_step = 0;
    return give_first_values(t);
  }
  return failed(zero_optimizer_get_f64(t->optimizer, 0, ZERO_KEY_LOSS_SCALE, &t->loss_scale), "get loss scale") ||
                 failed(zero_optimizer_get_i64(t->optimizer, ZERO_KEY_SKIPPED_COUNT, &t->skipped), "get skipped steps")
             ? -1
             : 0;
}

int trainer_create(struct trainer *t) {
  if (failed(zero_group_rank(t->group, &t->rank), "zero_group_rank") || failed(zero_group_size(t->group, &t->size), "zero_group_size")) {
    return -1;
  }
  t->device = t->run->options->device;
  t->loss_scale = t->run->options->loss_scale;
  if (t->run->options->own_device && failed(zero_group_local_rank(t->group, &t->device), "zero_group_local_rank")) return -1;
  if (t->run->options->servers.count > 0) return allocate(t);
  return allocate(t) || create_optimizer(t) || begin(t) ? -1 : 0;
}

void trainer_release(struct trainer *t) {
  saves_release(&t->saves);
  zero_optimizer_release(t->optimizer);
  zero_group_release(t->group);
  sampler_release(&t->sampler);
  free(t->images);
  free(t->labels);
  layers_release(&t->layers);
  if (t->compute) t->compute->release(t->compute);
}

int64_t trainer_steps_in_all(const struct trainer *t) { return sampler_steps_per_epoch(&t->sampler) * t->run->options->epochs; }

static int forward(struct trainer *t) {
  for (int layer = 0; layer < kLayerCount; layer++) {
    const float *params[2];
    if (layers_acquire(&t->layers, layer, params)) return -1;
    if (t->compute->forward(t->compute, layer, params[0], params[1]) || layers_give_back(&t->layers, layer)) return -1;
  }
  return 0;
}

static int backward_layer(struct trainer *t, int layer, const float *weight) {
  float *gradients[2];
  if (layers_gradients(&t->layers, layer, gradients) || t->compute->backward(t->compute, layer, weight, gradients[0], gradients[1])) {
    return -1;
  }
  return layers_ready(&t->layers, layer);
}

/// A rank without samples acquires like the others, because that is a collective in stage 3, but gives no gradients.
static int backward(struct trainer *t, int64_t samples) {
  for (int layer = kLayerCount - 1; layer >= 0; layer--) {
    const float *params[2];
    if (layers_acquire(&t->layers, layer, params)) return -1;
    if (samples > 0 && backward_layer(t, layer, params[0])) return -1;
    if (layers_give_back(&t->layers, layer)) return -1;
  }
  return 0;
}

/// Gives the model `count` samples of a data set: those numbered in `order`, or those from `first` on when it is NULL.
static int load(struct trainer *t, const struct dataset *data, const int64_t *order, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const int64_t sample = order ? order[first + i] : first + i;
    t->images[i] = data->images + sample * kImagePixels;
    t->labels[i] = data->labels[sample];
  }
  return t->compute->begin(t->compute, count, t->images, t->labels);
}

/// The learning rate falls to 0 along a line.
static int set_lr(struct trainer *t, int64_t step) {
  const struct options *o = t->run->options;
  return recipe_set_lr(o->recipe, t->optimizer, o->lr * (1.0 - (double)step / (double)trainer_steps_in_all(t)));
}

/// Opens micro-step `k` of a step. A step of one micro-step needs no call.
static int begin_micro_step(struct trainer *t, int64_t k) {
  const struct options *o = t->run->options;
  if (o->accumulate == 1) return 0;
  const int32_t kind = k + 1 < o->accumulate ? o->manner : ZERO_MICRO_STEP_LAST;
  return failed(zero_optimizer_micro_step(t->optimizer, kind, t->compute->stream), "zero_optimizer_micro_step") ? -1 : 0;
}

/// The gradient of a micro-step of `count` samples of this rank's `share`, and how much it counts. With weights it is a mean over the
/// micro-step, which counts by its samples; otherwise it is a part of the mean over the share, because micro-steps are added.
static int set_weight(struct trainer *t, int64_t share, int64_t count) {
  const int weighted = t->run->options->divisor == ZERO_DIVISOR_WEIGHTS;
  t->compute->set_divisor(t->compute, (double)(weighted ? count : share) / t->loss_scale);
  return weighted && failed(zero_optimizer_set_weight(t->optimizer, (double)count), "zero_optimizer_set_weight") ? -1 : 0;
}

/// Micro-step `k`: its part of this rank's `share` of the samples, which begins at `order`. Adds to the loss.
static int micro_step(struct trainer *t, int64_t k, const int64_t *order, int64_t share, double *loss) {
  const int64_t parts = t->run->options->accumulate;
  const int64_t first = k * share / parts;
  const int64_t count = (k + 1) * share / parts - first;
  int64_t correct = 0;
  double own = 0;
  if (load(t, &t->run->train, order, first, count) || begin_micro_step(t, k) || set_weight(t, share, count) || forward(t) ||
      t->compute->loss(t->compute, &own, &correct)) {
    return -1;
  }
  *loss += own;
  return backward(t, count);
}

/// Takes the step. One that was skipped is lost; when the scale of the loss cannot fall either, nothing is left to try.
static int apply_step(struct trainer *t, int64_t step) {
  zero_step_result result;
  if (failed(zero_step_result_init(&result, sizeof result), "zero_step_result_init") ||
      failed(zero_optimizer_step(t->optimizer, t->compute->stream, &result), "zero_optimizer_step")) {
    return -1;
  }
  const int falls = result.loss_scale < t->loss_scale;
  t->loss_scale = result.loss_scale;
  t->skipped = result.skipped_total;
  t->stop_reason = replica_stop(&t->run->options->replicas, step, &result);
  if (!result.skipped) return 0;
  if (t->rank == 0 && falls) fprintf(stderr, "train_fashion: step %" PRId64 " skipped: overflow, loss scale now %g\n", step, t->loss_scale);
  if (t->rank == 0 && !falls) {
    fprintf(stderr, "train_fashion: step %" PRId64 ": a gradient is not finite; try a smaller --lr or --loss-scale\n", step);
  }
  return falls ? 0 : -1;
}

int trainer_step(struct trainer *t, int64_t step, double *out_loss, int64_t *out_samples) {
  int64_t total = 0;
  const int64_t *order = sampler_batch(&t->sampler, step, &total);
  int64_t first = 0;
  int64_t share = 0;
  double loss = 0;
  if (failed(zero_group_share(t->group, total, t->rank, &first, &share), "zero_group_share") || set_lr(t, step)) return -1;
  for (int64_t k = 0; k < t->run->options->accumulate; k++) {
    if (micro_step(t, k, order + first, share, &loss)) return -1;
  }
  if (failed(zero_group_all_reduce(t->group, &loss, 1, &loss, 1, ZERO_DTYPE_F64, ZERO_REDUCE_SUM, NULL), "zero_group_all_reduce") ||
      apply_step(t, step)) {
    return -1;
  }
  *out_loss = loss / (double)total;
  *out_samples = total;
  return 0;
}

int trainer_gradient(struct trainer *t, int64_t step, double *out_loss, int64_t *out_samples) {
  const int64_t *order = sampler_batch(&t->sampler, step, out_samples);
  double loss = 0;
  if (micro_step(t, 0, order, *out_samples, &loss)) return -1;
  *out_loss = loss / (double)*out_samples;
  return 0;
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
    double loss = 0;
    if (load(t, &t->run->test, NULL, first + done, rest < t->capacity ? rest : t->capacity) || forward(t) ||
        t->compute->loss(t->compute, &loss, &batch_correct)) {
      return -1;
    }
    correct += batch_correct;
  }
  if (failed(zero_group_all_reduce(t->group, &correct, 1, &correct, 1, ZERO_DTYPE_I64, ZERO_REDUCE_SUM, NULL), "zero_group_all_reduce")) {
    return -1;
  }
  *out_percent = 100.0 * (double)correct / (double)count;
  return 0;
}

/// Hashes one parameter on, wherever it lies.
static int hash_on(struct trainer *t, int id, const float *param, uint64_t *hash) {
  const size_t nbytes = (size_t)model_tensors[id].count * sizeof(float);
  unsigned char *bytes = malloc(nbytes);
  if (!bytes) return out_of_memory();
  const int status = t->compute->copy(t->compute, bytes, param, nbytes);
  for (size_t b = 0; !status && b < nbytes; b++) *hash = (*hash ^ bytes[b]) * UINT64_C(0x100000001b3);
  free(bytes);
  return status;
}

int trainer_hash(struct trainer *t, uint64_t *out_hash) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (int layer = 0; layer < kLayerCount; layer++) {
    const float *params[2];
    if (layers_acquire(&t->layers, layer, params)) return -1;
    for (int i = 0; i < 2; i++) {
      if (hash_on(t, 2 * layer + i, params[i], &hash)) return -1;
    }
    if (layers_give_back(&t->layers, layer)) return -1;
  }
  *out_hash = hash;
  return 0;
}
