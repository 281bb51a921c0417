/// @file trainer: create, seal, first values; then for each step forward, backward, step.
/// Knows nothing of how ranks are started or what is printed.
#include "trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "../precision.h"
#include "hugging_face.h"
#include "report.h"

static int out_of_memory(void) {
  fprintf(stderr, "train_gpt: out of memory\n");
  return -1;
}

enum { kMatrices, kVectors }; /* parameter sets: vectors do not decay */

int trainer_configure(zero_config *config, const struct options *o) {
  return failed(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "adamw"), "set algorithm") ||
         failed(zero_config_set_f64(config, ZERO_KEY_LR, o->lr), "set learning rate") ||
         failed(zero_config_set_f64(config, ZERO_KEY_BETA2, 0.99), "set beta2") ||
         failed(zero_config_set_f64(config, ZERO_KEY_WEIGHT_DECAY, o->weight_decay), "set weight decay");
}

static int fill_config(zero_config *config, const struct options *o) {
  return trainer_configure(config, o) || failed(zero_config_set_i64(config, ZERO_KEY_STAGE, o->stage), "set stage") ||
         failed(zero_config_set_f64(config, ZERO_KEY_CLIP_NORM, o->clip_norm), "set clipping") || replica_configure(&o->replicas, config);
}

/// Registers all tensors: matrices in set 0, vectors, which do not decay, in a set of their own.
static int add_params(struct trainer *t, zero_config *set, zero_config *vector) {
  const struct shape *shape = &t->run->shape;
  int64_t number = 0;
  if (failed(zero_config_set_f64(set, ZERO_KEY_WEIGHT_DECAY, 0), "set weight decay") ||
      failed(zero_optimizer_add_set(t->optimizer, set, &number), "zero_optimizer_add_set") ||
      failed(zero_config_set_i64(vector, ZERO_KEY_SET, number), "set parameter set")) {
    return -1;
  }
  for (int i = 0; i < shape->tensor_count; i++) {
    const struct tensor *tensor = &shape->tensors[i];
    int64_t id = 0;
    if (failed(zero_optimizer_add_param(t->optimizer, tensor->ndim == 1 ? vector : NULL, tensor->name, (int32_t)t->run->options->dtype,
                                        tensor->extents, tensor->ndim, &id),
               "zero_optimizer_add_param")) {
      return -1;
    }
  }
  return 0;
}

/// The order in which layers acquire, there and back, so that stage 3 gathers ahead from the first
/// step on.
static int set_gather_order(struct trainer *t) {
  const struct shape *shape = &t->run->shape;
  int64_t ids[3 * kMostLayers];
  int64_t count = 0;
  for (int layer = 0; layer < shape->layer_count; layer++) {
    for (int i = 0; i < 2; i++) {
      if (shape->layers[layer].tensors[i] >= 0) ids[count++] = shape->layers[layer].tensors[i];
    }
  }
  for (int layer = shape->layer_count - 2; layer > 0; layer--) ids[count++] = shape->layers[layer].tensors[0];
  return failed(zero_optimizer_set_gather_order(t->optimizer, ids, count), "zero_optimizer_set_gather_order");
}

static int create_optimizer(struct trainer *t) {
  zero_config *config = NULL;
  zero_config *set = NULL;
  zero_config *vector = NULL;
  const int status =
      failed(zero_config_create(&config), "zero_config_create") || failed(zero_config_create(&set), "zero_config_create") ||
      failed(zero_config_create(&vector), "zero_config_create") || fill_config(config, t->run->options) ||
      failed(zero_optimizer_create(t->group, config, &t->optimizer), "zero_optimizer_create") || add_params(t, set, vector) ||
      set_gather_order(t) || failed(zero_optimizer_seal(t->optimizer), "zero_optimizer_seal");
  zero_config_release(config);
  zero_config_release(set);
  zero_config_release(vector);
  t->parameters.optimizer = t->optimizer;
  return status ? -1 : 0;
}

/// Each rank makes or reads what it keeps: none ever holds the whole model.
static int give_first_values(struct trainer *t) {
  const struct shape *shape = &t->run->shape;
  if (t->run->options->init) return hugging_face_load(t->run->options, shape, t->group, t->optimizer);
  for (int i = 0; i < shape->tensor_count; i++) {
    const struct tensor *tensor = &shape->tensors[i];
    const int is_constant = tensor->deviation == 0;
    if (failed(zero_optimizer_init_param(t->optimizer, i, is_constant ? ZERO_INITIALISER_CONSTANT : ZERO_INITIALISER_NORMAL,
                                         is_constant ? tensor->constant : 0, tensor->deviation, t->run->options->seed),
               "zero_optimizer_init_param")) {
      return -1;
    }
  }
  return failed(zero_optimizer_begin(t->optimizer, ZERO_SOURCE_SHARDS), "zero_optimizer_begin") ? -1 : 0;
}

/// All ranks get as many sequences, or none trains.
static int share_batch(struct trainer *t) {
  const struct options *o = t->run->options;
  t->sequences = o->batch / (t->size * o->micro_steps);
  if (t->sequences * t->size * o->micro_steps == o->batch) return 0;
  if (t->rank == 0) {
    fprintf(stderr, "train_gpt: --batch %" PRId64 ": expected a multiple of %" PRId64 ": %" PRId64 " ranks x %" PRId64 " micro-steps\n",
            o->batch, t->size * o->micro_steps, t->size, o->micro_steps);
  }
  return -1;
}

int trainer_create(struct trainer *t, int is_worker) {
  const struct options *o = t->run->options;
  if (failed(zero_group_rank(t->group, &t->rank), "zero_group_rank") || failed(zero_group_size(t->group, &t->size), "zero_group_size") ||
      share_batch(t)) {
    return -1;
  }
  const size_t tokens = (size_t)(t->sequences * o->context);
  t->ids = malloc(tokens * sizeof *t->ids);
  t->targets = malloc(tokens * sizeof *t->targets);
  if (!t->ids || !t->targets || model_create(&t->model, &t->run->shape, t->sequences, o->context, 1)) return out_of_memory();
  if (parameters_create(&t->parameters, &t->run->shape, (int32_t)o->dtype)) return -1;
  if (is_worker) return 0;
  if (failed(zero_group_barrier(t->group), "zero_group_barrier")) return -1;
  t->process_before = report_process_now();
  return create_optimizer(t) || give_first_values(t) ? -1 : 0;
}

void trainer_release(struct trainer *t) {
  saves_release(&t->saves);
  zero_optimizer_release(t->optimizer);
  zero_group_release(t->group);
  parameters_release(&t->parameters);
  model_release(&t->model);
  free(t->ids);
  free(t->targets);
}

static int forward(struct trainer *t, int layer) {
  const real *params[2];
  if (parameters_acquire(&t->parameters, layer, 2, params)) return -1;
  model_forward(&t->model, layer, params);
  return parameters_give_back(&t->parameters, layer, 2);
}

/// The way back needs weights, but neither biases nor the tables of the embedding.
static int backward(struct trainer *t, int layer) {
  const int count = t->run->shape.layers[layer].kind == kEmbedding ? 0 : 1;
  const real *params[2];
  real *gradients[2];
  int add[2] = {0, 0};
  if (parameters_acquire(&t->parameters, layer, count, params) || parameters_gradients(&t->parameters, layer, gradients, add)) return -1;
  model_backward(&t->model, layer, params, gradients, add);
  return parameters_give_back(&t->parameters, layer, count) || parameters_ready(&t->parameters, layer) ? -1 : 0;
}

/// There and back. The head goes both ways while its table is acquired.
static int forward_backward(struct trainer *t) {
  const int last = t->run->shape.layer_count - 1;
  for (int layer = 0; layer < last; layer++) {
    if (forward(t, layer)) return -1;
  }
  for (int layer = last; layer >= 0; layer--) {
    if (backward(t, layer)) return -1;
  }
  return 0;
}

/// Linear up to the highest rate, then along a cosine down to a tenth of it.
static double rate_of(const struct options *o, int64_t step) {
  const double kPi = 3.14159265358979323846;
  if (step < o->warm_up) return o->lr * (double)(step + 1) / (double)o->warm_up;
  const double done = o->steps > o->warm_up ? (double)(step - o->warm_up) / (double)(o->steps - o->warm_up) : 1;
  return o->lr * (0.1 + 0.45 * (1 + cos(kPi * done)));
}

static int set_rate(struct trainer *t, double lr) {
  return failed(zero_optimizer_set_f64(t->optimizer, kMatrices, ZERO_KEY_LR, lr), "zero_optimizer_set_f64") ||
                 failed(zero_optimizer_set_f64(t->optimizer, kVectors, ZERO_KEY_LR, lr), "zero_optimizer_set_f64")
             ? -1
             : 0;
}

/// This rank's sequences of micro-step k.
static void load(struct trainer *t, int64_t step, int64_t k) {
  const struct options *o = t->run->options;
  for (int64_t i = 0; i < t->sequences; i++) {
    const int64_t row = (k * t->size + t->rank) * t->sequences + i;
    const int64_t place = text_training_place(&t->run->text, (uint64_t)o->seed, step, o->batch, row, o->context);
    text_copy(&t->run->text, place, o->context, t->ids + i * o->context, t->targets + i * o->context);
  }
  model_begin(&t->model, t->ids, t->targets);
}

/// Opens micro-step k; gradients are reduced in each, so that stages 2 and 3 keep their memory. A
/// step of one needs no call.
static int begin_micro_step(struct trainer *t, int64_t k) {
  const int64_t count = t->run->options->micro_steps;
  const int32_t kind = k + 1 < count ? ZERO_MICRO_STEP_REDUCE : ZERO_MICRO_STEP_LAST;
  return count > 1 && failed(zero_optimizer_micro_step(t->optimizer, kind, NULL), "zero_optimizer_micro_step") ? -1 : 0;
}

/// Writes one slot of all tensors as fp32.
static int write_slot(struct trainer *t, int32_t slot, FILE *file) {
  const struct shape *shape = &t->run->shape;
  const int is_wide = t->run->options->dtype == ZERO_DTYPE_F32;
  for (int id = 0; id < shape->tensor_count; id++) {
    const int64_t count = t->rank == 0 ? shape->tensors[id].count : 0;
    float *values = malloc((size_t)(count + 1) * sizeof *values);
    uint16_t *narrow = malloc((size_t)(count + 1) * sizeof *narrow);
    int status = values && narrow ? 0 : out_of_memory();
    if (!status && failed(zero_optimizer_read(t->optimizer, id, slot, 0, is_wide ? (void *)values : narrow, count, NULL), "zero_optimizer_read")) {
      status = -1;
    }
    if (!status && !is_wide) precision_widen((int32_t)t->run->options->dtype, narrow, count, values);
    if (!status && file) fwrite(values, sizeof *values, (size_t)count, file); /* who closes the file asks for errors */
    free(values);
    free(narrow);
    if (status) return -1;
  }
  return 0;
}

int trainer_write_parameters(struct trainer *t, FILE *file) { return write_slot(t, ZERO_SLOT_PARAM, file); }

/// Takes the step: in one call, or in its parts, between which gradients can be read.
static int apply_step(struct trainer *t, int write_gradients, FILE *gradients, zero_step_result *result) {
  if (failed(zero_step_result_init(result, sizeof *result), "zero_step_result_init")) return -1;
  if (!write_gradients) return failed(zero_optimizer_step(t->optimizer, NULL, result), "zero_optimizer_step") ? -1 : 0;
  return failed(zero_optimizer_reduce(t->optimizer, NULL, result), "zero_optimizer_reduce") ||
                 write_slot(t, ZERO_SLOT_GRAD, gradients) || failed(zero_optimizer_apply(t->optimizer, NULL), "zero_optimizer_apply") ||
                 failed(zero_optimizer_gather(t->optimizer, NULL), "zero_optimizer_gather")
             ? -1
             : 0;
}

static int mean_over_ranks(struct trainer *t, double *sum, int64_t count) {
  if (failed(zero_group_all_reduce(t->group, sum, 1, sum, 1, ZERO_DTYPE_F64, ZERO_REDUCE_SUM, NULL), "zero_group_all_reduce")) return -1;
  *sum /= (double)count;
  return 0;
}

int trainer_step(struct trainer *t, int64_t step, int write_gradients, FILE *gradients, struct step *out) {
  const struct options *o = t->run->options;
  zero_step_result result;
  const int64_t step_begun = parameters_clock();
  *out = (struct step){.lr = rate_of(o, step)};
  /* The mean over this rank's tokens; libzero makes it one over ranks. */
  t->model.loss_factor = 1.0f / (float)(t->sequences * o->micro_steps * o->context);
  if (set_rate(t, out->lr)) return -1;
  for (int64_t k = 0; k < o->micro_steps; k++) {
    load(t, step, k);
    if (begin_micro_step(t, k) || forward_backward(t)) return -1;
    out->loss += t->model.loss;
  }
  const int64_t begun = parameters_clock();
  if (apply_step(t, write_gradients, gradients, &result)) return -1;
  t->parameters.library_ns += parameters_clock() - begun;
  t->steps_ns += parameters_clock() - step_begun;
  out->grad_norm = result.grad_norm;
  out->skipped = result.skipped;
  out->stop_reason = replica_stop(&t->run->options->replicas, step, &result);
  return mean_over_ranks(t, &out->loss, o->batch * o->context);
}

int trainer_first_values(struct trainer *t, float *out) {
  const struct shape *shape = &t->run->shape;
  for (int id = 0; id < shape->tensor_count; out += shape->tensors[id++].count) {
    void *address = NULL;
    if (failed(zero_optimizer_param_acquire(t->optimizer, id, NULL, 0, NULL, &address), "zero_optimizer_param_acquire")) return -1;
    memcpy(out, address, (size_t)shape->tensors[id].count * sizeof *out);
    if (failed(zero_optimizer_param_release(t->optimizer, id), "zero_optimizer_param_release")) return -1;
  }
  zero_optimizer_release(t->optimizer);
  t->optimizer = t->parameters.optimizer = NULL;
  return 0;
}

int trainer_gradient(struct trainer *t, int64_t step, double *out_loss) {
  const int64_t tokens = t->sequences * t->run->options->context;
  t->model.loss_factor = 1.0f / (float)tokens;
  load(t, step, 0);
  if (forward_backward(t)) return -1;
  *out_loss = t->model.loss / (double)tokens;
  return 0;
}

int trainer_validate(struct trainer *t, double *out_loss) {
  const struct options *o = t->run->options;
  const int64_t each = o->validation_batches * o->micro_steps;
  const int64_t rows = each * t->size * t->sequences;
  const struct parameters counted = t->parameters; /* steps are counted, and this is none */
  *out_loss = 0;
  for (int64_t k = 0; k < each; k++) {
    for (int64_t i = 0; i < t->sequences; i++) {
      const int64_t place = text_validation_place(&t->run->text, rows, (k * t->size + t->rank) * t->sequences + i, o->context);
      text_copy(&t->run->text, place, o->context, t->ids + i * o->context, t->targets + i * o->context);
    }
    model_begin(&t->model, t->ids, t->targets);
    for (int layer = 0; layer < t->run->shape.layer_count; layer++) {
      if (forward(t, layer)) return -1;
    }
    *out_loss += t->model.loss;
  }
  t->parameters = counted;
  return mean_over_ranks(t, out_loss, rows * o->context);
}

static uint64_t hash_on(uint64_t hash, const void *data, size_t nbytes) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < nbytes; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

int trainer_hash(struct trainer *t, uint64_t *out_hash) {
  const size_t nbytes = t->run->options->dtype == ZERO_DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  if (t->parameters.flat) {
    *out_hash = hash_on(hash, t->parameters.flat, (size_t)t->run->shape.parameters * nbytes);
    return 0;
  }
  for (int id = 0; id < t->run->shape.tensor_count; id++) {
    void *address = NULL;
    if (failed(zero_optimizer_param_acquire(t->optimizer, id, NULL, 0, NULL, &address), "zero_optimizer_param_acquire")) return -1;
    if (t->rank == 0) hash = hash_on(hash, address, (size_t)t->run->shape.tensors[id].count * nbytes);
    if (failed(zero_optimizer_param_release(t->optimizer, id), "zero_optimizer_param_release")) return -1;
  }
  *out_hash = t->rank == 0 ? hash : 0;
  return 0;
}
