/// @file own: a trainer as users of llm.c have it: one block of memory for all parameters and one for
/// all gradients, tensors as pointers into them, and its own AdamW. A 16-64-1 network learns a function.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../random.h"

enum { kInputs = 16, kHidden = 64, kBatch = 32, kSteps = 60, kParameters = kInputs * kHidden + kHidden + kHidden + 1 };

/// Tensors in the order in which forward uses them.
enum { kW1, kB1, kW2, kB2, kTensors };
static const int64_t kCounts[kTensors] = {kInputs * kHidden, kHidden, kHidden, 1};

struct model {
  float params_memory[kParameters], grads_memory[kParameters], m[kParameters], v[kParameters];
  float *params[kTensors], *grads[kTensors];
  float in[kBatch][kInputs], hidden[kBatch][kHidden], error[kBatch];
  int64_t rank, size, rows, steps;
};

static float uniform(uint64_t *state) { return (float)(random_next(state) >> 40) * 0x1p-24f - 0.5f; }

static int create(struct model *model) {
  for (int64_t i = 0, at = 0; i < kTensors; at += kCounts[i++]) {
    model->params[i] = model->params_memory + at;
    model->grads[i] = model->grads_memory + at;
  }
  return 0;
}

static int first_values(struct model *model) {
  uint64_t state = random_stream(1, 0);
  for (int i = 0; i < kTensors; i++) {
    for (int64_t e = 0; e < kCounts[i]; e++) model->params[i][e] = uniform(&state);
  }
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
  memset(model->grads_memory, 0, sizeof model->grads_memory);
  return 0;
}

/// AdamW at 0.01, with a decay of 0.01.
static int update(struct model *model) {
  const float t = (float)++model->steps;
  for (int i = 0; i < kParameters; i++) {
    const float g = model->grads_memory[i];
    model->m[i] = 0.9f * model->m[i] + 0.1f * g;
    model->v[i] = 0.999f * model->v[i] + 0.001f * g * g;
    const float root = sqrtf(model->v[i] / (1 - powf(0.999f, t))) + 1e-8f;
    model->params_memory[i] -= 0.01f * (model->m[i] / (1 - powf(0.9f, t)) / root + 0.01f * model->params_memory[i]);
  }
  return 0;
}

static int finish(struct model *model) {
  (void)model;
  return 0;
}

/// The step's loss, a mean over the batch of all ranks.
static int print(struct model *model, int step, double loss) {
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
    const double loss = forward(&model);
    if (zero_gradients(&model)) return 1;
    backward(&model);
    if (update(&model)) return 1;
    if (step % 10 == 0 && print(&model, step, loss)) return 1;
  }
  return finish(&model);
}
