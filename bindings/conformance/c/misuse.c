/// @file misuse: calls that must fail, and groups that ranks fail in.
#include <inttypes.h>
#include <zero/zero.h>

#include "check.h"
#include "model.h"
#include "scenarios.h"
#include "values.h"

enum { kCount = 10, kMost = 11, kBufferCount = 1000 };

/// An optimizer that is not sealed yet.
static void build(struct model *model, struct rank *self) {
  zero_config *config = model_config(1);
  model_create(model, self, config, ZERO_DTYPE_F32);
  zero_config_release(config);
}

static void seal(struct model *model, struct rank *self) {
  build(model, self);
  must(zero_optimizer_seal(model->optimizer));
}

static void begin(struct model *model, struct rank *self) {
  seal(model, self);
  model_begin(model);
}

static void step_before_begin(struct rank *self) {
  struct model model;
  seal(&model, self);
  text_add_error(&self->text, zero_optimizer_step(model.optimizer, NULL, NULL));
  model_release(&model);
}

static void seal_twice(struct rank *self) {
  struct model model;
  seal(&model, self);
  text_add_error(&self->text, zero_optimizer_seal(model.optimizer));
  model_release(&model);
}

static int32_t add_param(struct model *model, const char *name, int32_t dtype, int64_t extent) {
  int64_t id;
  return zero_optimizer_add_param(model->optimizer, NULL, name, dtype, &extent, 1, &id);
}

static void param_after_seal(struct rank *self) {
  struct model model;
  seal(&model, self);
  text_add_error(&self->text, add_param(&model, "c", ZERO_DTYPE_F32, 7));
  model_release(&model);
}

static void param_dtype(struct rank *self) {
  struct model model;
  build(&model, self);
  text_add_error(&self->text, add_param(&model, "c", ZERO_DTYPE_I32, 7));
  model_release(&model);
}

static void param_shape(struct rank *self) {
  struct model model;
  build(&model, self);
  text_add_error(&self->text, add_param(&model, "c", ZERO_DTYPE_F32, -1));
  model_release(&model);
}

static void param_name_twice(struct rank *self) {
  struct model model;
  build(&model, self);
  text_add_error(&self->text, add_param(&model, "w", ZERO_DTYPE_F32, 7));
  model_release(&model);
}

static void unknown_algorithm(struct rank *self) {
  zero_config *config = model_config(1);
  zero_optimizer *optimizer;
  must(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "nothing"));
  text_add_error(&self->text, zero_optimizer_create(self->group, config, &optimizer));
  zero_config_release(config);
}

static void gradient_twice(struct rank *self) {
  float b[7];
  struct model model;
  begin(&model, self);
  values_fill(b, ZERO_DTYPE_F32, 7, 0);
  must(zero_optimizer_grad_ready(model.optimizer, kB, b, 0, 7, NULL));
  text_add_error(&self->text, zero_optimizer_grad_ready(model.optimizer, kB, b, 0, 7, NULL));
  model_release(&model);
}

static void gradient_range(struct rank *self) {
  float b[8];
  struct model model;
  begin(&model, self);
  values_fill(b, ZERO_DTYPE_F32, 8, 0);
  text_add_error(&self->text, zero_optimizer_grad_ready(model.optimizer, kB, b, 0, 8, NULL));
  model_release(&model);
}

static void read_range(struct rank *self) {
  float b[8];
  struct model model;
  begin(&model, self);
  text_add_error(&self->text, zero_optimizer_read(model.optimizer, kB, ZERO_SLOT_PARAM, 0, b, 8, NULL));
  model_release(&model);
}

static void rate_unknown(struct rank *self) {
  struct model model;
  begin(&model, self);
  text_add_error(&self->text, zero_optimizer_set_f64(model.optimizer, 0, ZERO_KEY_STAGE, 1));
  model_release(&model);
}

static void trace_off(struct rank *self) {
  struct model model;
  begin(&model, self);
  text_add_error(&self->text, zero_stats_optimizer_trace(model.optimizer, NULL, 0, NULL));
  model_release(&model);
}

static void closed(struct rank *self) {
  struct model model;
  int64_t size;
  begin(&model, self);
  zero_group_release(self->group);
  text_add_status(&self->text, zero_group_size(self->group, &size));
  self->group = NULL;
  zero_optimizer_release(model.optimizer);
  text_add_status(&self->text, zero_optimizer_step(model.optimizer, NULL, NULL));
}

static void mismatch(struct rank *self) {
  const int64_t count = self->id == 0 ? kCount : kMost;
  float data[kMost];
  values_fill(data, ZERO_DTYPE_F32, kMost, self->id);
  text_add_status(&self->text, zero_group_all_reduce(self->group, data, count, data, count, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, NULL));
}

static void timeout(struct rank *self) {
  if (self->id != 0) return;
  must(zero_group_set_deadline(self->group, 200));
  text_add_status(&self->text, zero_group_barrier(self->group));
}

static void aborted(struct rank *self) {
  if (self->id == 0) {
    must(zero_group_abort(self->group, NULL));
  } else {
    text_add_status(&self->text, zero_group_barrier(self->group));
  }
}

static void peer_left(struct rank *self) {
  if (self->id == 0) {
    text_add_status(&self->text, zero_group_barrier(self->group));
  } else {
    zero_group_release(self->group);
    self->group = NULL;
  }
}

static void release_order(struct rank *self) {
  struct model model;
  zero_buffer *buffer;
  begin(&model, self);
  must(zero_buffer_create(self->group, NULL, ZERO_DTYPE_F32, kBufferCount, &buffer));
  model_give_gradients(&model, 0);
  text_add_status(&self->text, zero_optimizer_step(model.optimizer, NULL, NULL));
  zero_group_release(self->group);
  self->group = NULL;
  zero_buffer_release(buffer);
  model_release(&model);
}

void misuse_scenarios(void) {
  ranks_run("step-before-begin", 1, step_before_begin, NULL);
  ranks_run("seal-twice", 1, seal_twice, NULL);
  ranks_run("param-after-seal", 1, param_after_seal, NULL);
  ranks_run("param-dtype", 1, param_dtype, NULL);
  ranks_run("param-shape", 1, param_shape, NULL);
  ranks_run("param-name-twice", 1, param_name_twice, NULL);
  ranks_run("unknown-algorithm", 1, unknown_algorithm, NULL);
  ranks_run("gradient-twice", 1, gradient_twice, NULL);
  ranks_run("gradient-range", 1, gradient_range, NULL);
  ranks_run("read-range", 1, read_range, NULL);
  ranks_run("rate-unknown", 1, rate_unknown, NULL);
  ranks_run("trace-off", 1, trace_off, NULL);
  ranks_run("closed", 1, closed, NULL);
  ranks_run("mismatch", 3, mismatch, NULL);
  ranks_run("timeout", 2, timeout, NULL);
  ranks_run("aborted", 2, aborted, NULL);
  ranks_run("peer-left", 2, peer_left, NULL);
  ranks_run("release-order", 1, release_order, NULL);
}
