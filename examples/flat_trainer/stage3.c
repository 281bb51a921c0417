/// @file stage3: sharded.c in stage 3 too: parameters are whole only from forward to backward. A trainer
/// that runs its layers one by one acquires each where it is used, and keeps less (examples/gpt).
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zero/zero.h>

#include "../check.h"
#include "../random.h"

#define TRY(call) do { if (failed(call, #call)) return 1; } while (0)

enum { kInputs = 16, kHidden = 64, kBatch = 32, kSteps = 60, kParameters = kInputs * kHidden + kHidden + kHidden + 1 };

/// Tensors in the order in which forward uses them.
enum { kW1, kB1, kW2, kB2, kTensors };
static const int64_t kCounts[kTensors] = {kInputs * kHidden, kHidden, kHidden, 1};

struct model {
  zero_group *group;
  zero_optimizer *optimizer;
  float *params[kTensors], *grads[kTensors];
  float in[kBatch][kInputs], hidden[kBatch][kHidden], error[kBatch];
  int64_t rank, size, rows, steps;
};

static float uniform(uint64_t *state) { return (float)(random_next(state) >> 40) * 0x1p-24f - 0.5f; }

static int create(struct model *model) {
  int64_t id;
  zero_config *config;
  const char *stage = getenv("FLAT_STAGE"); /* 3 when it is not set */
  TRY(zero_group_create_env(NULL, &model->group));
  TRY(zero_group_rank(model->group, &model->rank));
  TRY(zero_group_size(model->group, &model->size));
  TRY(zero_config_create(&config));
  TRY(zero_config_set_i64(config, ZERO_KEY_STAGE, stage ? atoi(stage) : 3));
  TRY(zero_config_set_f64(config, ZERO_KEY_LR, 0.01));
  TRY(zero_optimizer_create(model->group, config, &model->optimizer));
  zero_config_release(config);
  for (int i = 0; i < kTensors; i++) {
    const char name[] = {(char)('a' + i), 0};
    TRY(zero_optimizer_add_param(model->optimizer, NULL, name, ZERO_DTYPE_F32, &kCounts[i], 1, &id));
  }
  TRY(zero_optimizer_seal(model->optimizer));
  for (int i = 0; i < kTensors; i++) TRY(zero_optimizer_param_acquire(model->optimizer, i, NULL, 0, NULL, (void **)&model->params[i]));
  return 0;
}

static int first_values(struct model *model) {
  uint64_t state = random_stream(1, 0);
  for (int i = 0; i < kTensors; i++) {
    for (int64_t e = 0; e < kCounts[i]; e++) model->params[i][e] = uniform(&state);
    TRY(zero_optimizer_param_release(model->optimizer, i));
  }
  TRY(zero_optimizer_begin(model->optimizer, ZERO_SOURCE_LOCAL));
  return 0;
}

static int acquire_params(struct model *model) {
  for (int i = 0; i < kTensors; i++) TRY(zero_optimizer_param_acquire(model->optimizer, i, NULL, 0, NULL, (void **)&model->params[i]));
  return 0;
}

/// Rows [first, first + rows) of the batch of a step.
static void load(struct model *model, int step, int first) {
  for (int row = 0; row < model->rows; row++) {
    uint64_t state = random_stream(2, (uint64_t)(step * kBatch + first + row));
    for (int i = 0; i < kInputs; i++) model->in[row][i] = uniform(&state);
  }
}

/// The sum over rows of the squared error; the function to learn is sin(x0 + 2 x1) + x2 x3.
static float forward(struct model *model) {
  float *const *p = model->params;
  float loss = 0;
  for (int row = 0; row < model->rows; row++) {
    const float *x = model->in[row];
    float out = p[kB2][0];
    for (int h = 0; h < kHidden; h++) {
      float sum = p[kB1][h];
      for (int i = 0; i < kInputs; i++) sum += x[i] * p[kW1][i * kHidden + h];
      model->hidden[row][h] = tanhf(sum);
      out += model->hidden[row][h] * p[kW2][h];
    }
    model->error[row] = out - (sinf(x[0] + 2 * x[1]) + x[2] * x[3]);
    loss += model->error[row] * model->error[row];
  }
  return loss;
}

/// Gradients of the mean over rows, added up.
static void backward(struct model *model) {
  float *const *g = model->grads;
  for (int row = 0; row < model->rows; row++) {
    const float out_grad = 2 * model->error[row] / (float)model->rows;
    g[kB2][0] += out_grad;
    for (int h = 0; h < kHidden; h++) {
      const float value = model->hidden[row][h];
      const float inner = out_grad * model->params[kW2][h] * (1 - value * value);
      g[kW2][h] += out_grad * value;
      g[kB1][h] += inner;
      for (int i = 0; i < kInputs; i++) g[kW1][i * kHidden + h] += inner * model->in[row][i];
    }
  }
}

static int zero_gradients(struct model *model) {
  int64_t add;
  for (int i = 0; i < kTensors; i++) {
    TRY(zero_optimizer_grad_acquire(model->optimizer, i, NULL, (void **)&model->grads[i], &add));
    memset(model->grads[i], 0, (size_t)kCounts[i] * sizeof(float));
  }
  return 0;
}

static int update(struct model *model) {
  for (int i = 0; i < kTensors; i++) TRY(zero_optimizer_param_release(model->optimizer, i));
  for (int i = 0; i < kTensors; i++) TRY(zero_optimizer_grad_ready(model->optimizer, i, NULL, 0, kCounts[i], NULL));
  TRY(zero_optimizer_step(model->optimizer, NULL, NULL));
  return 0;
}

static int finish(struct model *model) {
  zero_optimizer_release(model->optimizer);
  zero_group_release(model->group);
  return 0;
}

/// The step's loss, a mean over the batch of all ranks.
static int print(struct model *model, int step, double loss) {
  TRY(zero_group_all_reduce(model->group, &loss, 1, &loss, 1, ZERO_DTYPE_F64, ZERO_REDUCE_SUM, NULL));
  if (model->rank == 0) printf("step %d loss %.6f\n", step, loss / kBatch);
  return 0;
}

int main(void) {
  static struct model model = {.rank = 0, .size = 1};
  if (create(&model)) return 1;
  model.rows = kBatch / model.size;
  if (first_values(&model)) return 1;
  for (int step = 1; step <= kSteps; step++) {
    load(&model, step, (int)(model.rank * model.rows));
    if (acquire_params(&model)) return 1;
    const double loss = forward(&model);
    if (zero_gradients(&model)) return 1;
    backward(&model);
    if (update(&model)) return 1;
    if (step % 10 == 0 && print(&model, step, loss)) return 1;
  }
  return finish(&model);
}
