/// @file linear_regression: the smallest program: two ranks, threads of this process, fit w in y = w . x with one sample each.
/// One step of gradient descent from (1, 1): the gradients (w . x - y) x are (-2, -4) and (-1, -2), so w becomes (1, 1) + 0.1 (3, 6).
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zero/zero.h>

enum { kRanks = 2, kCount = 2 };

static const float kX[kCount] = {1, 2};
static const float kY[kRanks] = {5, 4};

/// 1 after telling why a call failed, otherwise 0.
static int failed(int32_t status) {
  char text[1024];
  if (status == ZERO_OK) return 0;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "linear_regression: %s: %s\n", zero_status_name(status), text);
  return 1;
}

/// An optimizer with one parameter, w.
static int create(zero_group *group, zero_config *config, zero_optimizer **optimizer, int64_t *w) {
  const int64_t shape[1] = {kCount};
  return failed(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd")) || failed(zero_config_set_f64(config, ZERO_KEY_LR, 0.1)) ||
         failed(zero_config_set_i64(config, ZERO_KEY_DIVISOR, ZERO_DIVISOR_ONE)) ||
         failed(zero_config_set_i64(config, ZERO_KEY_STAGE, 3)) || failed(zero_optimizer_create(group, config, optimizer)) ||
         failed(zero_optimizer_add_param(*optimizer, NULL, "w", ZERO_DTYPE_F32, shape, 1, w)) || failed(zero_optimizer_seal(*optimizer));
}

static int first_values(zero_optimizer *optimizer, int64_t w) {
  void *address = NULL;
  if (failed(zero_optimizer_param_acquire(optimizer, w, NULL, 0, NULL, &address))) return 1;
  for (int i = 0; i < kCount; i++) ((float *)address)[i] = 1;
  return failed(zero_optimizer_param_release(optimizer, w)) || failed(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
}

/// Forward, backward, step: the gradient of 1/2 (w . x - y)^2, summed over ranks.
static int train(zero_optimizer *optimizer, int64_t w, float y) {
  void *address = NULL;
  float gradient[kCount];
  if (failed(zero_optimizer_param_acquire(optimizer, w, NULL, 0, NULL, &address))) return 1;
  const float *weights = address;
  const float error = weights[0] * kX[0] + weights[1] * kX[1] - y;
  for (int i = 0; i < kCount; i++) gradient[i] = error * kX[i];
  return failed(zero_optimizer_param_release(optimizer, w)) || failed(zero_optimizer_grad_ready(optimizer, w, gradient, 0, kCount, NULL)) ||
         failed(zero_optimizer_step(optimizer, NULL, NULL));
}

/// Prints w; every rank sees the same.
static int print(zero_optimizer *optimizer, int64_t w, int rank) {
  float values[kCount];
  void *address = NULL;
  if (failed(zero_optimizer_param_acquire(optimizer, w, values, kCount, NULL, &address))) return 1;
  if (rank == 0) printf("(%g, %g)\n", values[0], values[1]);
  return failed(zero_optimizer_param_release(optimizer, w));
}

static int run(int rank) {
  zero_group *group = NULL;
  zero_config *config = NULL;
  zero_optimizer *optimizer = NULL;
  int64_t w = 0;
  char name[64];
  snprintf(name, sizeof name, "linear_regression.%ld", (long)getpid()); /* so that two runs at a time do not meet */
  const int status = failed(zero_group_create_local(name, rank, kRanks, NULL, &group)) || failed(zero_config_create(&config)) ||
                     create(group, config, &optimizer, &w) || first_values(optimizer, w) || train(optimizer, w, kY[rank]) ||
                     print(optimizer, w, rank);
  zero_optimizer_release(optimizer);
  zero_config_release(config);
  zero_group_release(group);
  return status;
}

static void *thread_main(void *argument) {
  int *rank_then_status = argument;
  *rank_then_status = run(*rank_then_status);
  return NULL;
}

/// A launcher would start as many pairs of ranks.
static int refuse_launcher(void) {
  char variable[64];
  if (failed(zero_group_launcher(variable, sizeof variable, NULL))) return 1;
  if (*variable == '\0') return 0;
  fprintf(stderr, "linear_regression: its ranks are two threads, but a launcher has started it (%s is %s); start it without\n", variable,
          getenv(variable));
  return 1;
}

int main(void) {
  if (refuse_launcher()) return 2;
  pthread_t threads[kRanks];
  int ranks[kRanks] = {0, 1};
  for (int i = 0; i < kRanks; i++) {
    if (pthread_create(&threads[i], NULL, thread_main, &ranks[i]) != 0) return 1;
  }
  for (int i = 0; i < kRanks; i++) pthread_join(threads[i], NULL);
  return ranks[0] || ranks[1];
}
