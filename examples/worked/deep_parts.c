/// @file deep_parts: 100 layers in 5 parts of 20, over 8 ranks in stage 3: a rank gathers one part at a time. Adam at 0.001, squared error
/// and an L2 term, 100 steps. A layer is x += tanh(W x + b) / 10 with 8 numbers in x.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zero/zero.h>

#include "../check.h"
#include "../random.h"
#include "../ranks.h"

enum { kRanks = 8, kParts = 5, kLayers = 20, kWidth = 8, kSamples = 4, kSteps = 100 };
enum { kLayerCount = kWidth * kWidth + kWidth, kPartCount = kLayers * kLayerCount }; /* W by rows, then b */
static const double kDecay = 0.01;                                                    /* the L2 term is half of it times all squares */

/// In [-1/2, 1/2), exact in fp32. Streams 0 to 4 are first values of a part, 100 + r the samples of rank r.
static float uniform(uint64_t *state) { return (float)(random_next(state) >> 40) * 0x1p-24f - 0.5f; }

struct trainer {
  zero_group *group;
  zero_config *config;
  zero_optimizer *optimizer;
  float inputs[kSamples][kWidth];
  float targets[kSamples][kWidth];
  float states[kSamples][kParts * kLayers + 1][kWidth]; /* x before each layer, and at the end */
  float slopes[kSamples][kParts * kLayers][kWidth];     /* 1 - tanh^2 */
};

static int create(struct trainer *t) {
  const int64_t shape[2] = {kLayers, kLayerCount};
  if (failed(zero_config_create(&t->config), "zero_config_create") ||
      failed(zero_config_set_i64(t->config, ZERO_KEY_STAGE, 3), "set stage") ||
      failed(zero_config_set_str(t->config, ZERO_KEY_ALGORITHM, "adam"), "set algorithm") ||
      failed(zero_config_set_f64(t->config, ZERO_KEY_LR, 0.001), "set learning rate") ||
      failed(zero_config_set_f64(t->config, ZERO_KEY_WEIGHT_DECAY, kDecay), "set the L2 term") ||
      failed(zero_config_set_i64(t->config, ZERO_KEY_BUCKET_BYTES, sizeof(float) * kPartCount), "set bucket size") ||
      failed(zero_optimizer_create(t->group, t->config, &t->optimizer), "zero_optimizer_create")) {
    return -1;
  }
  for (int part = 0; part < kParts; part++) {
    char name[16];
    int64_t id;
    snprintf(name, sizeof name, "part%d", part);
    if (failed(zero_optimizer_add_param(t->optimizer, NULL, name, ZERO_DTYPE_F32, shape, 2, &id), "zero_optimizer_add_param")) return -1;
  }
  return failed(zero_optimizer_seal(t->optimizer), "zero_optimizer_seal") ? -1 : 0;
}

/// Rank 0 makes them, part by part, and the others receive what they keep.
static int give_first_values(struct trainer *t, int64_t rank) {
  for (int part = 0; part < kParts && rank == 0; part++) {
    uint64_t state = random_stream(1, (uint64_t)part);
    void *address;
    if (failed(zero_optimizer_param_acquire(t->optimizer, part, NULL, 0, NULL, &address), "zero_optimizer_param_acquire")) return -1;
    for (int i = 0; i < kPartCount; i++) ((float *)address)[i] = uniform(&state);
    if (failed(zero_optimizer_param_release(t->optimizer, part), "zero_optimizer_param_release")) return -1;
  }
  return failed(zero_optimizer_begin(t->optimizer, ZERO_SOURCE_ROOT), "zero_optimizer_begin") ? -1 : 0;
}

/// One layer of one sample: x at `at` to x at `at` + 1.
static void layer_forward(struct trainer *t, int sample, int at, const float *layer) {
  const float *x = t->states[sample][at];
  for (int i = 0; i < kWidth; i++) {
    float sum = layer[kWidth * kWidth + i];
    for (int j = 0; j < kWidth; j++) sum += layer[i * kWidth + j] * x[j];
    const float value = tanhf(sum);
    t->slopes[sample][at][i] = 1 - value * value;
    t->states[sample][at + 1][i] = x[i] + value / 10;
  }
}

/// The gradient of x at `at` + 1 becomes that of x at `at`; that of the layer is added to.
static void layer_backward(const struct trainer *t, int sample, int at, const float *layer, float *gradient, float *layer_gradient) {
  float inner[kWidth];
  for (int i = 0; i < kWidth; i++) inner[i] = gradient[i] * t->slopes[sample][at][i] / 10;
  for (int i = 0; i < kWidth; i++) {
    for (int j = 0; j < kWidth; j++) {
      layer_gradient[i * kWidth + j] += inner[i] * t->states[sample][at][j];
      gradient[j] += inner[i] * layer[i * kWidth + j];
    }
    layer_gradient[kWidth * kWidth + i] += inner[i];
  }
}

/// Forward: adds what this part has of the sum of all squares.
static int part_forward(struct trainer *t, int part, double *squares) {
  void *address;
  if (failed(zero_optimizer_param_acquire(t->optimizer, part, NULL, 0, NULL, &address), "zero_optimizer_param_acquire")) return -1;
  const float *layers = address;
  for (int i = 0; i < kPartCount; i++) *squares += (double)layers[i] * layers[i];
  for (int sample = 0; sample < kSamples; sample++) {
    for (int l = 0; l < kLayers; l++) layer_forward(t, sample, part * kLayers + l, layers + l * kLayerCount);
  }
  return failed(zero_optimizer_param_release(t->optimizer, part), "zero_optimizer_param_release") ? -1 : 0;
}

/// Backward: this part's gradient goes to libzero as soon as it is made.
static int part_backward(struct trainer *t, int part, float gradients[kSamples][kWidth]) {
  void *address, *made;
  int64_t accumulate;
  if (failed(zero_optimizer_param_acquire(t->optimizer, part, NULL, 0, NULL, &address), "zero_optimizer_param_acquire") ||
      failed(zero_optimizer_grad_acquire(t->optimizer, part, NULL, &made, &accumulate), "zero_optimizer_grad_acquire")) {
    return -1;
  }
  float *gradient = made;
  for (int i = 0; i < kPartCount; i++) gradient[i] = 0;
  for (int sample = 0; sample < kSamples; sample++) {
    for (int l = kLayers - 1; l >= 0; l--) {
      layer_backward(t, sample, part * kLayers + l, (const float *)address + l * kLayerCount, gradients[sample], gradient + l * kLayerCount);
    }
  }
  return failed(zero_optimizer_param_release(t->optimizer, part), "zero_optimizer_param_release") ||
                 failed(zero_optimizer_grad_ready(t->optimizer, part, NULL, 0, kPartCount, NULL), "zero_optimizer_grad_ready")
             ? -1
             : 0;
}

/// The loss before the step: half the squared error, averaged over the samples of all ranks, and the L2 term.
static int step(struct trainer *t, double *loss) {
  float gradients[kSamples][kWidth];
  double squares = 0;
  double errors = 0;
  for (int s = 0; s < kSamples; s++) {
    for (int i = 0; i < kWidth; i++) t->states[s][0][i] = t->inputs[s][i];
  }
  for (int part = 0; part < kParts; part++) {
    if (part_forward(t, part, &squares)) return -1;
  }
  for (int s = 0; s < kSamples; s++) {
    for (int i = 0; i < kWidth; i++) {
      const float error = t->states[s][kParts * kLayers][i] - t->targets[s][i];
      errors += 0.5 * (double)error * error / kSamples;
      gradients[s][i] = error / kSamples;
    }
  }
  for (int part = kParts - 1; part >= 0; part--) {
    if (part_backward(t, part, gradients)) return -1;
  }
  if (failed(zero_group_all_reduce(t->group, &errors, 1, &errors, 1, ZERO_DTYPE_F64, ZERO_REDUCE_SUM, NULL), "zero_group_all_reduce")) return -1;
  *loss = errors / kRanks + 0.5 * kDecay * squares;
  return failed(zero_optimizer_step(t->optimizer, NULL, NULL), "zero_optimizer_step") ? -1 : 0;
}

static int work(struct trainer *t, int64_t rank) {
  uint64_t state = random_stream(1, 100 + (uint64_t)rank);
  for (int s = 0; s < kSamples; s++) {
    for (int i = 0; i < kWidth; i++) t->inputs[s][i] = uniform(&state);
    for (int i = 0; i < kWidth; i++) t->targets[s][i] = uniform(&state);
  }
  if (create(t) || give_first_values(t, rank)) return -1;
  for (int s = 1; s <= kSteps; s++) {
    double loss;
    if (step(t, &loss)) return -1;
    if (rank == 0 && (s == 1 || s % 20 == 0)) printf("step %d loss %.9f\n", s, loss);
  }
  return 0;
}

static int rank_main(void *context, int64_t rank) {
  struct trainer *t = calloc(1, sizeof *t);
  char name[64];
  (void)context;
  snprintf(name, sizeof name, "deep_parts.%ld", (long)getpid());
  const int status = !t || failed(zero_group_create_local(name, rank, kRanks, NULL, &t->group), "zero_group_create_local") || work(t, rank);
  if (status && t && t->group) zero_group_abort(t->group, "a rank of deep_parts gave up");
  if (t) zero_optimizer_release(t->optimizer);
  if (t) zero_config_release(t->config);
  if (t) zero_group_release(t->group);
  free(t);
  return status ? -1 : 0;
}

int main(void) {
  if (launched()) return 2;
  return ranks_run_threads(kRanks, rank_main, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
