/// @file wide_line: 500 parameters fitted by 5 ranks with 100 samples each: y = w . x, gradient descent, states and gradients sharded
/// (stage 2). libzero averages over ranks, and with equal shares that is the average over all 500 samples.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zero/zero.h>

#include "../check.h"
#include "../random.h"
#include "../ranks.h"

enum { kRanks = 5, kSamples = 100, kCount = 500, kSteps = 50 };

/// In [-1/2, 1/2), exact in fp32. Stream r are the samples of rank r: for each x, then y.
static float uniform(uint64_t *state) { return (float)(random_next(state) >> 40) * 0x1p-24f - 0.5f; }

struct trainer {
  zero_group *group;
  zero_config *config;
  zero_optimizer *optimizer;
  float x[kSamples][kCount];
  float y[kSamples];
};

static int create(struct trainer *t) {
  const int64_t shape[1] = {kCount};
  int64_t id;
  return failed(zero_config_create(&t->config), "zero_config_create") ||
         failed(zero_config_set_i64(t->config, ZERO_KEY_STAGE, 2), "set stage") ||
         failed(zero_config_set_str(t->config, ZERO_KEY_ALGORITHM, "sgd"), "set algorithm") ||
         failed(zero_config_set_f64(t->config, ZERO_KEY_LR, 1), "set learning rate") ||
         failed(zero_optimizer_create(t->group, t->config, &t->optimizer), "zero_optimizer_create") ||
         failed(zero_optimizer_add_param(t->optimizer, NULL, "w", ZERO_DTYPE_F32, shape, 1, &id), "zero_optimizer_add_param") ||
         failed(zero_optimizer_seal(t->optimizer), "zero_optimizer_seal") ||
         failed(zero_optimizer_begin(t->optimizer, ZERO_SOURCE_LOCAL), "zero_optimizer_begin"); /* w was not written: 0 */
}

/// The loss before the step, half the mean of squares, and the sum of squares of w.
static int step(struct trainer *t, double *loss, double *squares) {
  void *address;
  float gradient[kCount] = {0};
  *loss = *squares = 0;
  if (failed(zero_optimizer_param_acquire(t->optimizer, 0, NULL, 0, NULL, &address), "zero_optimizer_param_acquire")) return -1;
  const float *w = address;
  for (int i = 0; i < kCount; i++) *squares += (double)w[i] * w[i];
  for (int s = 0; s < kSamples; s++) {
    float error = -t->y[s];
    for (int i = 0; i < kCount; i++) error += w[i] * t->x[s][i];
    for (int i = 0; i < kCount; i++) gradient[i] += error * t->x[s][i] / kSamples;
    *loss += 0.5 * (double)error * error / (kSamples * kRanks);
  }
  return failed(zero_optimizer_param_release(t->optimizer, 0), "zero_optimizer_param_release") ||
                 failed(zero_optimizer_grad_ready(t->optimizer, 0, gradient, 0, kCount, NULL), "zero_optimizer_grad_ready") ||
                 failed(zero_group_all_reduce(t->group, loss, 1, loss, 1, ZERO_DTYPE_F64, ZERO_REDUCE_SUM, NULL), "zero_group_all_reduce") ||
                 failed(zero_optimizer_step(t->optimizer, NULL, NULL), "zero_optimizer_step")
             ? -1
             : 0;
}

static int work(struct trainer *t, int64_t rank) {
  uint64_t state = random_stream(1, (uint64_t)rank);
  for (int s = 0; s < kSamples; s++) {
    for (int i = 0; i < kCount; i++) t->x[s][i] = uniform(&state);
    t->y[s] = uniform(&state);
  }
  if (create(t)) return -1;
  for (int s = 1; s <= kSteps; s++) {
    double loss, squares;
    if (step(t, &loss, &squares)) return -1;
    if (rank == 0 && (s == 1 || s % 10 == 0)) printf("step %d loss %.9f squares %.9f\n", s, loss, squares);
  }
  return 0;
}

static int rank_main(void *context, int64_t rank) {
  struct trainer *t = calloc(1, sizeof *t);
  char name[64];
  (void)context;
  snprintf(name, sizeof name, "wide_line.%ld", (long)getpid());
  const int status = !t || failed(zero_group_create_local(name, rank, kRanks, NULL, &t->group), "zero_group_create_local") || work(t, rank);
  if (status && t && t->group) zero_group_abort(t->group, "a rank of wide_line gave up");
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
