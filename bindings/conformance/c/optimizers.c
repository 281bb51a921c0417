/// @file optimizers: training runs of five steps, and what can be asked of an optimizer afterwards.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "model.h"
#include "scenarios.h"
#include "values.h"

enum { kSteps = 5 };

/// A run that differs from the usual one where a field is set.
struct training {
  const char *name;
  int64_t stage;
  void (*configure)(zero_config *config);
  int32_t dtype;
  void (*first_values)(struct model *model); /* model_begin */
  void (*step)(struct model *model, int64_t t);
  void (*say)(struct model *model); /* model_say_result */
};

static void sgd(zero_config *config) {
  must(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd"));
  must(zero_config_set_f64(config, ZERO_KEY_MOMENTUM, 0.9));
}

static void clip(zero_config *config) { must(zero_config_set_f64(config, ZERO_KEY_CLIP_NORM, 1)); }

static void weights(zero_config *config) { must(zero_config_set_i64(config, ZERO_KEY_DIVISOR, ZERO_DIVISOR_WEIGHTS)); }

static void no_overlap(zero_config *config) { must(zero_config_set_i64(config, ZERO_KEY_OVERLAP, 0)); }

static void custom(zero_config *config) {
  must(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "custom"));
  must(zero_config_set_i64(config, ZERO_KEY_CUSTOM_SLOTS, 1));
}

/// Everything in a device's memory, if there is a device.
static void on_device(zero_config *config) {
  if (!zero_has_feature(ZERO_FEATURE_CUDA)) return;
  must(zero_config_set_i64(config, ZERO_KEY_DEVICE, 0));
  must(zero_config_set_i64(config, ZERO_KEY_TIER, ZERO_TIER_DEVICE));
}

static void init_normal(struct model *model) {
  for (int64_t id = 0; id < kParamCount; id++) {
    must(zero_optimizer_init_param(model->optimizer, id, ZERO_INITIALISER_NORMAL, 0.5, 2, 7 + id));
  }
  must(zero_optimizer_begin(model->optimizer, ZERO_SOURCE_SHARDS));
}

static void no_step(struct model *model, int64_t t) {
  (void)model;
  (void)t;
}

static void usual_step(struct model *model, int64_t t) {
  model_give_gradients(model, t);
  model_step(model);
}

/// Gradients from memory of its own: `b`, then `w` in two halves of which the second comes first.
static void private_step(struct model *model, int64_t t) {
  float b[7], w[600];
  values_fill(b, ZERO_DTYPE_F32, 7, 10 * t + 3 * kB + model->rank->id);
  values_fill(w, ZERO_DTYPE_F32, 600, 10 * t + 3 * kW + model->rank->id);
  must(zero_optimizer_grad_ready(model->optimizer, kB, b, 0, 7, NULL));
  must(zero_optimizer_grad_ready(model->optimizer, kW, w + 300, 300, 300, NULL));
  must(zero_optimizer_grad_ready(model->optimizer, kW, w, 0, 300, NULL));
  model_step(model);
}

/// Gradients from memory of its own, of both parameters in one call.
static void bulk_step(struct model *model, int64_t t) {
  const int64_t ids[] = {kB, kW};
  float b[7], w[600];
  const void *grads[] = {b, w};
  values_fill(b, ZERO_DTYPE_F32, 7, 10 * t + 3 * kB + model->rank->id);
  values_fill(w, ZERO_DTYPE_F32, 600, 10 * t + 3 * kW + model->rank->id);
  must(zero_optimizer_grads_ready(model->optimizer, ids, 2, grads, NULL));
  model_step(model);
}

static void micro_step(struct model *model, int64_t t) {
  must(zero_optimizer_micro_step(model->optimizer, ZERO_MICRO_STEP_LOCAL, NULL));
  model_give_gradients(model, t);
  must(zero_optimizer_micro_step(model->optimizer, ZERO_MICRO_STEP_LAST, NULL));
  usual_step(model, t);
}

static void rate_step(struct model *model, int64_t t) {
  must(zero_optimizer_set_f64(model->optimizer, 0, ZERO_KEY_LR, 0.01 / (double)(t + 1)));
  usual_step(model, t);
}

static void replicas(zero_config *config) {
  must(zero_config_set_i64(config, ZERO_KEY_REPLICA_RANKS, 1));
  must(zero_config_set_i64(config, ZERO_KEY_SYNC_PERIOD, 2));
  must(zero_config_set_f64(config, ZERO_KEY_OUTER_LR, 0.7));
  must(zero_config_set_f64(config, ZERO_KEY_OUTER_MOMENTUM, 0.9));
}

/// The period ends in steps 1 and 3, and the run behind step 4.
static void replica_step(struct model *model, int64_t t) {
  usual_step(model, t);
  if (model->rank->id == 0) text_add(&model->rank->text, "%" PRId64, model->result.synced);
  if (t == kSteps - 1) must(zero_optimizer_sync(model->optimizer, NULL, &model->result));
}

static void say_synced(struct model *model) {
  if (model->rank->id == 0) text_add(&model->rank->text, "%" PRId64, model->result.synced);
  if (model->rank->id == 0) text_add_double(&model->rank->text, model->result.spread);
  model_say_result(model);
}

/// In step 2 the gradient of `b` on rank 1 holds a NaN.
static void skip_step(struct model *model, int64_t t) {
  if (t != 2 || model->rank->id != 1) {
    usual_step(model, t);
  } else {
    float b[7], w[600];
    values_fill(b, ZERO_DTYPE_F32, 7, 10 * t + 3 * kB + model->rank->id);
    values_fill(w, ZERO_DTYPE_F32, 600, 10 * t + 3 * kW + model->rank->id);
    b[0] = NAN;
    must(zero_optimizer_grad_ready(model->optimizer, kB, b, 0, 7, NULL));
    must(zero_optimizer_grad_ready(model->optimizer, kW, w, 0, 600, NULL));
    model_step(model);
  }
  if (t == 2 && model->rank->id == 0) {
    text_add(&model->rank->text, "%" PRId64 " %" PRId64, model->result.step, model->result.skipped);
  }
}

static void weighted_step(struct model *model, int64_t t) {
  must(zero_optimizer_set_weight(model->optimizer, (double)model->rank->id));
  usual_step(model, t);
}

/// slot += gradient, parameter -= 0.125 slot.
static void update(int64_t count, const float *gradient, float *slot, float *param) {
  for (int64_t i = 0; i < count; i++) {
    slot[i] += gradient[i];
    param[i] -= 0.125f * slot[i];
  }
}

static void custom_step(struct model *model, int64_t t) {
  const int32_t slots[] = {ZERO_SLOT_GRAD, ZERO_SLOT_CUSTOM, ZERO_SLOT_PARAM};
  int64_t views;
  model_give_gradients(model, t);
  must(zero_optimizer_reduce(model->optimizer, NULL, &model->result));
  must(zero_optimizer_view_count(model->optimizer, &views));
  for (int64_t view = 0; view < views; view++) {
    int64_t param, offset, count = 0;
    void *data[3];
    for (int i = 0; i < 3; i++) must(zero_optimizer_view(model->optimizer, view, slots[i], &param, &offset, &count, &data[i]));
    update(count, data[0], data[1], data[2]);
  }
  must(zero_optimizer_gather(model->optimizer, NULL));
}

static void say_norm(struct model *model) {
  if (model->rank->id == 0) text_add_double(&model->rank->text, model->result.grad_norm);
  model_say_result(model);
}

static void say_skipped(struct model *model) {
  if (model->rank->id == 0) text_add(&model->rank->text, "%" PRId64, model->result.skipped_total);
  model_say_result(model);
}

static void say_views(struct model *model) {
  char line[512] = "";
  size_t length = 0;
  int64_t views, param, offset, count;
  void *data;
  must(zero_optimizer_view_count(model->optimizer, &views));
  for (int64_t view = 0; view < views; view++) {
    must(zero_optimizer_view(model->optimizer, view, ZERO_SLOT_PARAM, &param, &offset, &count, &data));
    length += (size_t)snprintf(line + length, sizeof line - length, "%s%" PRId64 ":%" PRId64 ":%" PRId64, view > 0 ? "," : "", param,
                               offset, count);
  }
  text_add(&model->rank->text, "%s", length > 0 ? line : "-");
}

static void say_acquired(struct model *model) {
  void *data;
  must(zero_optimizer_param_acquire(model->optimizer, kW, NULL, 0, NULL, &data));
  text_add_hash(&model->rank->text, data, model_count(kW) * (int64_t)sizeof(float));
  must(zero_optimizer_param_release(model->optimizer, kW));
}

static void say_slots(struct model *model) {
  int64_t slots, slot, dtype, count;
  must(zero_optimizer_slot_count(model->optimizer, kW, &slots));
  for (int64_t index = 0; model->rank->id == 0 && index < slots; index++) {
    must(zero_optimizer_slot(model->optimizer, kW, index, &slot, &dtype, &count));
    text_add(&model->rank->text, "%" PRId64 ":%" PRId64 ":%" PRId64, slot, dtype, count);
  }
}

static void say_scalars(struct model *model) {
  double lr;
  int64_t steps;
  must(zero_optimizer_get_f64(model->optimizer, 0, ZERO_KEY_LR, &lr));
  must(zero_optimizer_get_i64(model->optimizer, ZERO_KEY_STEP_COUNT, &steps));
  if (model->rank->id != 0) return;
  text_add_double(&model->rank->text, lr);
  text_add(&model->rank->text, "%" PRId64, steps);
}

static void say_moments(struct model *model) {
  float moments[600];
  const int64_t count = model->rank->id == 0 ? 600 : 0;
  must(zero_optimizer_read(model->optimizer, kW, ZERO_SLOT_SECOND_MOMENT, 0, moments, count, NULL));
  if (count > 0) text_add_hash(&model->rank->text, moments, sizeof moments);
}

static void say_verified(struct model *model) {
  zero_verify_result result;
  must(zero_verify_result_init(&result, sizeof result));
  must(zero_optimizer_verify(model->optimizer, NULL, &result));
  if (model->rank->id == 0) text_add(&model->rank->text, "%" PRId64 " %" PRId64, result.found, result.chunk_count);
}

static void say_traffic(struct model *model) {
  zero_traffic_stats reductions, gathers;
  must(zero_traffic_stats_init(&reductions, sizeof reductions));
  must(zero_traffic_stats_init(&gathers, sizeof gathers));
  must(zero_stats_optimizer_traffic(model->optimizer, ZERO_OPERATION_REDUCE_SCATTER, &reductions));
  must(zero_stats_optimizer_traffic(model->optimizer, ZERO_OPERATION_ALL_GATHER, &gathers));
  text_add(&model->rank->text, "%" PRId64 "/%" PRId64, reductions.sent_elements, gathers.sent_elements);
}

static void say_formula(struct model *model) {
  zero_memory_stats stats;
  must(zero_memory_stats_init(&stats, sizeof stats));
  must(zero_stats_optimizer_memory(model->optimizer, ZERO_MEMORY_TOTAL, &stats));
  text_add(&model->rank->text, "%" PRId64, stats.formula_nbytes);
}

static void say_described(struct model *model) {
  int64_t needed;
  must(zero_describe_optimizer(model->optimizer, NULL, 0, &needed));
  if (model->rank->id == 0) text_add(&model->rank->text, "%d", needed - 1 > 100);
}

static void train(struct rank *self) {
  const struct training *it = self->context;
  zero_config *config = model_config(it->stage);
  struct model model;
  if (it->configure) it->configure(config);
  model_create(&model, self, config, it->dtype ? it->dtype : ZERO_DTYPE_F32);
  zero_config_release(config);
  must(zero_optimizer_seal(model.optimizer));
  (it->first_values ? it->first_values : model_begin)(&model);
  for (int64_t t = 0; t < kSteps; t++) (it->step ? it->step : usual_step)(&model, t);
  (it->say ? it->say : model_say_result)(&model);
  model_release(&model);
}

static void module_buffer(struct rank *self) {
  const int64_t shape[] = {9};
  zero_config *config = model_config(1);
  struct model model;
  int64_t id, count;
  void *data;
  model_create(&model, self, config, ZERO_DTYPE_F32);
  zero_config_release(config);
  must(zero_optimizer_add_module_buffer(model.optimizer, "m", ZERO_DTYPE_F32, shape, 1, ZERO_SYNC_AVERAGE, &id));
  must(zero_optimizer_seal(model.optimizer));
  must(zero_optimizer_module_buffer(model.optimizer, id, &data, &count));
  values_fill(data, ZERO_DTYPE_F32, count, self->id);
  must(zero_optimizer_sync_module_buffers(model.optimizer, NULL));
  text_add_hash(&self->text, data, count * (int64_t)sizeof(float));
  model_release(&model);
}

enum { kRows = 40, kWidth = 10 };

/// A table of which gradients are given by rows, sealed and begun with zeros.
static zero_optimizer *table_create(struct rank *self) {
  const int64_t shape[] = {kRows, kWidth};
  zero_config *config = model_config(1), *by_rows;
  zero_optimizer *optimizer;
  int64_t id;
  must(zero_config_create(&by_rows));
  must(zero_config_set_i64(by_rows, ZERO_KEY_ROWS, 1));
  must(zero_optimizer_create(self->group, config, &optimizer));
  must(zero_optimizer_add_param(optimizer, by_rows, "t", ZERO_DTYPE_F32, shape, 2, &id));
  zero_config_release(config);
  zero_config_release(by_rows);
  must(zero_optimizer_seal(optimizer));
  must(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  return optimizer;
}

static void rows(struct rank *self) {
  zero_optimizer *optimizer = table_create(self);
  const int64_t given[] = {self->id, 7, self->id};
  float values[3 * kWidth], table[kRows * kWidth];
  const int64_t count = self->id == 0 ? kRows * kWidth : 0;
  values_fill(values, ZERO_DTYPE_F32, 3 * kWidth, self->id);
  must(zero_optimizer_grad_ready_rows(optimizer, 0, given, values, 3, NULL));
  must(zero_optimizer_step(optimizer, NULL, NULL));
  must(zero_optimizer_read(optimizer, 0, ZERO_SLOT_PARAM, 0, table, count, NULL));
  if (count > 0) text_add_hash(&self->text, table, sizeof table);
  zero_optimizer_release(optimizer);
}

static void rows_error(struct rank *self) {
  zero_optimizer *optimizer = table_create(self);
  const int64_t given[] = {kRows};
  float values[kWidth];
  values_fill(values, ZERO_DTYPE_F32, kWidth, 0);
  text_add_error(&self->text, zero_optimizer_grad_ready_rows(optimizer, 0, given, values, 1, NULL));
  zero_optimizer_release(optimizer);
}

static void run_all(const struct training *trainings, size_t count) {
  for (size_t i = 0; i < count; i++) ranks_run(trainings[i].name, 3, train, &trainings[i]);
}

void optimizer_scenarios(void) {
  static const struct training first[] = {
      {.name = "train-stage0", .stage = 0},
      {.name = "train-stage1", .stage = 1},
      {.name = "train-stage2", .stage = 2},
      {.name = "train-stage3", .stage = 3},
      {.name = "train-sgd", .stage = 1, .configure = sgd},
      {.name = "train-private", .stage = 1, .step = private_step},
      {.name = "train-bulk0", .stage = 0, .step = bulk_step},
      {.name = "train-bulk1", .stage = 1, .step = bulk_step},
      {.name = "train-bulk2", .stage = 2, .step = bulk_step},
      {.name = "train-bulk3", .stage = 3, .step = bulk_step},
      {.name = "train-device", .stage = 2, .configure = on_device, .first_values = init_normal, .step = private_step},
      {.name = "train-clip", .stage = 1, .configure = clip, .say = say_norm},
      {.name = "train-micro", .stage = 2, .step = micro_step},
      {.name = "train-rate", .stage = 1, .step = rate_step},
      {.name = "train-skip", .stage = 1, .step = skip_step, .say = say_skipped},
      {.name = "train-weights", .stage = 1, .configure = weights, .step = weighted_step},
      {.name = "train-replicas", .stage = 1, .configure = replicas, .step = replica_step, .say = say_synced},
      {.name = "train-custom", .stage = 1, .configure = custom, .step = custom_step},
      {.name = "train-custom-views", .stage = 1, .configure = custom, .step = custom_step, .say = say_views},
      {.name = "train-acquired", .stage = 3, .say = say_acquired},
      {.name = "precision-bf16", .stage = 1, .dtype = ZERO_DTYPE_BF16},
      {.name = "slots", .stage = 1, .dtype = ZERO_DTYPE_BF16, .say = say_slots},
      {.name = "scalars", .stage = 1, .say = say_scalars},
      {.name = "moments", .stage = 1, .say = say_moments},
      {.name = "init-normal", .stage = 1, .first_values = init_normal, .step = no_step},
  };
  static const struct training rest[] = {
      {.name = "verify", .stage = 1, .say = say_verified},
      {.name = "traffic", .stage = 1, .configure = no_overlap, .say = say_traffic},
      {.name = "memory-formula", .stage = 1, .say = say_formula},
      {.name = "describe", .stage = 1, .say = say_described},
  };
  run_all(first, sizeof first / sizeof *first);
  ranks_run("rows", 3, rows, NULL);
  ranks_run("rows-error", 1, rows_error, NULL);
  ranks_run("module-buffer", 3, module_buffer, NULL);
  run_all(rest, sizeof rest / sizeof *rest);
}
