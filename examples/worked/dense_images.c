/// @file dense_images: a 784-256-10 network on Fashion-MNIST, SGD at 0.01 with momentum 0.9, batches of 128 shared by 4 ranks, stage 1.
/// usage: dense_images [FOLDER of the images]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zero/zero.h>

#include "../check.h"
#include "../fashion/idx.h"
#include "../gpt/products.h"
#include "../random.h"
#include "../ranks.h"

enum { kRanks = 4, kBatch = 128, kRows = kBatch / kRanks, kInputs = 784, kHidden = 256, kOutputs = 10, kSteps = 15 };
enum { kHiddenWeight, kHiddenBias, kOutWeight, kOutBias, kTensors };
static const int64_t kCounts[kTensors] = {kInputs * kHidden, kHidden, kHidden *kOutputs, kOutputs}; /* weights: inputs x outputs */

/// In [-1/2, 1/2), exact in fp32. Stream i are the first values of tensor i: those of weights, times 2^-3 and 2^-2; biases are 0.
static float uniform(uint64_t *state) { return (float)(random_next(state) >> 40) * 0x1p-24f - 0.5f; }

struct trainer {
  const struct dataset *data;
  zero_group *group;
  zero_config *config;
  zero_optimizer *optimizer;
  float in[kRows * kInputs], hidden[kRows * kHidden], out[kRows * kOutputs], hidden_grad[kRows * kHidden];
};

static int create(struct trainer *t) {
  int64_t id;
  if (failed(zero_config_create(&t->config), "zero_config_create") ||
      failed(zero_config_set_i64(t->config, ZERO_KEY_STAGE, 1), "set stage") ||
      failed(zero_config_set_str(t->config, ZERO_KEY_ALGORITHM, "sgd"), "set algorithm") ||
      failed(zero_config_set_f64(t->config, ZERO_KEY_LR, 0.01), "set learning rate") ||
      failed(zero_config_set_f64(t->config, ZERO_KEY_MOMENTUM, 0.9), "set momentum") ||
      failed(zero_optimizer_create(t->group, t->config, &t->optimizer), "zero_optimizer_create")) {
    return -1;
  }
  for (int i = 0; i < kTensors; i++) {
    static const char *const kNames[kTensors] = {"hidden.weight", "hidden.bias", "out.weight", "out.bias"};
    if (failed(zero_optimizer_add_param(t->optimizer, NULL, kNames[i], ZERO_DTYPE_F32, &kCounts[i], 1, &id), "zero_optimizer_add_param")) return -1;
  }
  return failed(zero_optimizer_seal(t->optimizer), "zero_optimizer_seal") ? -1 : 0;
}

/// Every rank writes the same values, which libzero checks.
static int give_first_values(struct trainer *t) {
  for (int i = 0; i < kTensors; i += 2) {
    uint64_t state = random_stream(1, (uint64_t)i);
    void *address;
    if (failed(zero_optimizer_param_acquire(t->optimizer, i, NULL, 0, NULL, &address), "zero_optimizer_param_acquire")) return -1;
    for (int64_t e = 0; e < kCounts[i]; e++) ((float *)address)[e] = uniform(&state) * (i == kHiddenWeight ? 0.125f : 0.25f);
    if (failed(zero_optimizer_param_release(t->optimizer, i), "zero_optimizer_param_release")) return -1;
  }
  return failed(zero_optimizer_begin(t->optimizer, ZERO_SOURCE_LOCAL), "zero_optimizer_begin") ? -1 : 0;
}

/// Forward to gradients of what the last layer gave, which stay in `out`: those of the mean over this rank's rows. Adds up the loss.
static double forward(struct trainer *t, const uint8_t *labels, float *const params[kTensors]) {
  double loss = 0;
  for (int r = 0; r < kRows; r++) {
    memcpy(t->hidden + r * kHidden, params[kHiddenBias], kHidden * sizeof(float));
    memcpy(t->out + r * kOutputs, params[kOutBias], kOutputs * sizeof(float));
  }
  product(kAsIs, kAsIs, kRows, kHidden, kInputs, 1, t->in, kInputs, params[kHiddenWeight], kHidden, 1, t->hidden, kHidden);
  for (int i = 0; i < kRows * kHidden; i++) t->hidden[i] = t->hidden[i] > 0 ? t->hidden[i] : 0;
  product(kAsIs, kAsIs, kRows, kOutputs, kHidden, 1, t->hidden, kHidden, params[kOutWeight], kOutputs, 1, t->out, kOutputs);
  for (int r = 0; r < kRows; r++) {
    float *out = t->out + r * kOutputs;
    double sum = 0;
    for (int i = 0; i < kOutputs; i++) sum += exp(out[i]);
    loss += log(sum) - out[labels[r]];
    for (int i = 0; i < kOutputs; i++) out[i] = (float)((exp(out[i]) / sum - (i == labels[r])) / kRows);
  }
  return loss;
}

static void add_up(int width, const float *rows, float *bias) {
  for (int r = 0; r < kRows; r++) {
    for (int i = 0; i < width; i++) bias[i] += rows[r * width + i];
  }
}

/// The last layer's gradients are given first.
static int backward(struct trainer *t, float *const params[kTensors]) {
  float *grads[kTensors];
  for (int i = kTensors - 1; i >= 0; i--) {
    void *address;
    int64_t accumulate;
    if (failed(zero_optimizer_grad_acquire(t->optimizer, i, NULL, &address, &accumulate), "zero_optimizer_grad_acquire")) return -1;
    grads[i] = address;
    memset(address, 0, (size_t)kCounts[i] * sizeof(float));
    if (i == kOutBias) add_up(kOutputs, t->out, grads[i]);
    if (i == kOutWeight) {
      product(kTransposed, kAsIs, kHidden, kOutputs, kRows, 1, t->hidden, kHidden, t->out, kOutputs, 0, grads[i], kOutputs);
      product(kAsIs, kTransposed, kRows, kHidden, kOutputs, 1, t->out, kOutputs, params[kOutWeight], kOutputs, 0, t->hidden_grad, kHidden);
      for (int e = 0; e < kRows * kHidden; e++) t->hidden_grad[e] = t->hidden[e] > 0 ? t->hidden_grad[e] : 0;
    }
    if (i == kHiddenBias) add_up(kHidden, t->hidden_grad, grads[i]);
    if (i == kHiddenWeight) {
      product(kTransposed, kAsIs, kInputs, kHidden, kRows, 1, t->in, kInputs, t->hidden_grad, kHidden, 0, grads[i], kHidden);
    }
    if (failed(zero_optimizer_grad_ready(t->optimizer, i, NULL, 0, kCounts[i], NULL), "zero_optimizer_grad_ready")) return -1;
  }
  return 0;
}

/// The mean loss of the batch before the step.
static int step(struct trainer *t, int number, int64_t rank, double *loss) {
  float *params[kTensors];
  const int64_t first = (int64_t)number * kBatch + rank * kRows;
  for (int i = 0; i < kRows * kInputs; i++) t->in[i] = (float)t->data->images[first * kInputs + i] / 256;
  for (int i = 0; i < kTensors; i++) {
    void *address;
    if (failed(zero_optimizer_param_acquire(t->optimizer, i, NULL, 0, NULL, &address), "zero_optimizer_param_acquire")) return -1;
    params[i] = address;
  }
  *loss = forward(t, t->data->labels + first, params) / kBatch;
  if (backward(t, params)) return -1;
  for (int i = 0; i < kTensors; i++) {
    if (failed(zero_optimizer_param_release(t->optimizer, i), "zero_optimizer_param_release")) return -1;
  }
  return failed(zero_group_all_reduce(t->group, loss, 1, loss, 1, ZERO_DTYPE_F64, ZERO_REDUCE_SUM, NULL), "zero_group_all_reduce") ||
                 failed(zero_optimizer_step(t->optimizer, NULL, NULL), "zero_optimizer_step")
             ? -1
             : 0;
}

static int work(struct trainer *t, int64_t rank) {
  if (create(t) || give_first_values(t)) return -1;
  for (int s = 0; s < kSteps; s++) {
    double loss;
    if (step(t, s, rank, &loss)) return -1;
    if (rank == 0) printf("step %d loss %.9f\n", s + 1, loss);
  }
  return 0;
}

static int rank_main(void *context, int64_t rank) {
  struct trainer *t = calloc(1, sizeof *t);
  char name[64];
  if (t) t->data = context;
  snprintf(name, sizeof name, "dense_images.%ld", (long)getpid());
  const int status = !t || failed(zero_group_create_local(name, rank, kRanks, NULL, &t->group), "zero_group_create_local") || work(t, rank);
  if (status && t && t->group) zero_group_abort(t->group, "a rank of dense_images gave up");
  if (t) zero_optimizer_release(t->optimizer);
  if (t) zero_config_release(t->config);
  if (t) zero_group_release(t->group);
  free(t);
  return status ? -1 : 0;
}

int main(int argc, char **argv) {
  struct dataset data = {0};
  if (launched()) return 2;
  if (dataset_read(argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist", "train", kBatch * kSteps, &data)) return EXIT_FAILURE;
  const int status = ranks_run_threads(kRanks, rank_main, &data);
  dataset_release(&data);
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
