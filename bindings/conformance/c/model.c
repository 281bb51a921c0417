/// @file model: registration, first values, gradients and results.
#include "model.h"

#include <string.h>

#include "check.h"
#include "values.h"

enum { kLargest = 600, kWidest = 4 };

static const int64_t shape_of_w[] = {20, 30}, shape_of_b[] = {7};

int64_t model_count(int64_t id) { return id == kW ? 600 : 7; }

static int64_t nbytes_of(const struct model *model, int64_t id) {
  int64_t element;
  must(zero_dtype_nbytes(model->dtype, &element));
  return model_count(id) * element;
}

zero_config *model_config(int64_t stage) {
  zero_config *config;
  must(zero_config_create(&config));
  must(zero_config_set_i64(config, ZERO_KEY_STAGE, stage));
  must(zero_config_set_i64(config, ZERO_KEY_BUCKET_BYTES, 1024));
  return config;
}

void model_create(struct model *model, struct rank *rank, const zero_config *config, int32_t dtype) {
  int64_t id;
  *model = (struct model){.rank = rank, .dtype = dtype};
  must(zero_step_result_init(&model->result, sizeof model->result));
  must(zero_optimizer_create(rank->group, config, &model->optimizer));
  must(zero_optimizer_add_param(model->optimizer, NULL, "w", dtype, shape_of_w, 2, &id));
  must(zero_optimizer_add_param(model->optimizer, NULL, "b", dtype, shape_of_b, 1, &id));
}

static void write_first_values(struct model *model, int64_t id) {
  void *data;
  must(zero_optimizer_param_acquire(model->optimizer, id, NULL, 0, NULL, &data));
  values_fill(data, model->dtype, model_count(id), id);
  must(zero_optimizer_param_release(model->optimizer, id));
}

void model_begin(struct model *model) {
  for (int64_t id = 0; model->rank->id == 0 && id < kParamCount; id++) write_first_values(model, id);
  must(zero_optimizer_begin(model->optimizer, ZERO_SOURCE_ROOT));
}

static void add_floats(float *to, const float *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) to[i] += values[i];
}

static void give_gradient(struct model *model, int64_t id, int64_t t) {
  _Alignas(kWidest) unsigned char gradient[kLargest * kWidest];
  void *data;
  int64_t accumulate;
  values_fill(gradient, model->dtype, model_count(id), 10 * t + 3 * id + model->rank->id);
  must(zero_optimizer_grad_acquire(model->optimizer, id, NULL, &data, &accumulate));
  if (accumulate) {
    add_floats(data, (const float *)gradient, model_count(id));
  } else {
    memcpy(data, gradient, (size_t)nbytes_of(model, id));
  }
  must(zero_optimizer_grad_ready(model->optimizer, id, NULL, 0, model_count(id), NULL));
}

void model_give_gradients(struct model *model, int64_t t) {
  give_gradient(model, kB, t);
  give_gradient(model, kW, t);
}

void model_step(struct model *model) { must(zero_optimizer_step(model->optimizer, NULL, &model->result)); }

void model_say_result(struct model *model) {
  for (int64_t id = 0; id < kParamCount; id++) {
    _Alignas(kWidest) unsigned char data[kLargest * kWidest];
    const int64_t count = model->rank->id == 0 ? model_count(id) : 0;
    must(zero_optimizer_read(model->optimizer, id, ZERO_SLOT_PARAM, 0, data, count, NULL));
    if (count > 0) text_add_hash(&model->rank->text, data, nbytes_of(model, id));
  }
}

void model_release(struct model *model) {
  zero_optimizer_release(model->optimizer);
  model->optimizer = NULL;
}
