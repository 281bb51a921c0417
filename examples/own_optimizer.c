/// @file own_optimizer: an optimizer of one's own on libzero's shards: Signum, which is signSGD with momentum (Bernstein et al., "signSGD:
/// Compressed Optimisation for Non-Convex Problems", 2018, algorithm 2): m = beta m + (1 - beta) g; w -= lr sign(m).
/// libzero reduces gradients, keeps m and gathers parameters; the update between is the program's. Runs alone, under mpirun or torchrun.
#include <stdio.h>
#include <stdlib.h>
#include <zero/zero.h>

enum { kCount = 1000, kSteps = 60 };

static void must(int32_t status) {
  char text[512];
  if (status == ZERO_OK) return;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "%s: %s\n", zero_status_name(status), text);
  exit(1);
}

/// Of 1/2 (w - y)^2, where y is this rank's sample.
static float gradient(float w, int64_t i, int64_t rank) {
  const float y = (float)(i % 7) - 3 + (float)rank / 8;
  return w - y;
}

/// Updates `count` elements, wherever they lie in the model: any rule that treats elements one by one can stand here.
static void signum(int64_t count, const float *g, float *m, float *w) {
  const float lr = 0.0625f, beta = 0.75f;
  for (int64_t i = 0; i < count; i++) {
    m[i] = beta * m[i] + (1 - beta) * g[i];
    w[i] -= m[i] > 0 ? lr : m[i] < 0 ? -lr : 0;
  }
}

/// The pieces of all parameters that this rank updates; in every slot they have the same elements.
static void update_views(zero_optimizer *optimizer) {
  const int32_t slots[3] = {ZERO_SLOT_GRAD, ZERO_SLOT_CUSTOM, ZERO_SLOT_PARAM};
  int64_t views;
  must(zero_optimizer_view_count(optimizer, &views));
  for (int64_t view = 0; view < views; view++) {
    int64_t param, offset, count = 0;
    void *data[3];
    for (int i = 0; i < 3; i++) must(zero_optimizer_view(optimizer, view, slots[i], &param, &offset, &count, &data[i]));
    signum(count, data[0], data[1], data[2]);
  }
}

/// Forward and backward, then the parts of a step: reduce, update, gather.
static void step(zero_optimizer *optimizer, int64_t w, int64_t rank) {
  float gradients[kCount];
  void *address;
  zero_step_result result;
  must(zero_optimizer_param_acquire(optimizer, w, NULL, 0, NULL, &address));
  for (int64_t i = 0; i < kCount; i++) gradients[i] = gradient(((const float *)address)[i], i, rank);
  must(zero_optimizer_param_release(optimizer, w));
  must(zero_optimizer_grad_ready(optimizer, w, gradients, 0, kCount, NULL));
  must(zero_step_result_init(&result, sizeof result));
  must(zero_optimizer_reduce(optimizer, NULL, &result));
  if (!result.skipped) update_views(optimizer); /* all ranks skip when a gradient on one is not finite */
  must(zero_optimizer_gather(optimizer, NULL));
}

int main(void) {
  zero_group *group;
  zero_config *config;
  zero_optimizer *optimizer;
  const int64_t shape[1] = {kCount};
  int64_t rank, w;
  float values[kCount];
  void *address;
  must(zero_group_create_env(NULL, &group));
  must(zero_group_rank(group, &rank));
  must(zero_config_create(&config));
  must(zero_config_set_i64(config, ZERO_KEY_STAGE, 3));
  must(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "custom"));
  must(zero_config_set_i64(config, ZERO_KEY_CUSTOM_SLOTS, 1)); /* m, zero at first, sharded like the rest */
  must(zero_optimizer_create(group, config, &optimizer));
  must(zero_optimizer_add_param(optimizer, NULL, "w", ZERO_DTYPE_F32, shape, 1, &w));
  must(zero_optimizer_seal(optimizer));
  must(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  for (int i = 0; i < kSteps; i++) step(optimizer, w, rank);
  must(zero_optimizer_param_acquire(optimizer, w, values, kCount, NULL, &address));
  for (int i = 0; rank == 0 && i < kCount; i++) printf("%.9g\n", values[i]);
  must(zero_optimizer_param_release(optimizer, w));
  zero_optimizer_release(optimizer);
  zero_config_release(config);
  zero_group_release(group);
  return 0;
}
