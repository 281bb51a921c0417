/// @file local_steps: the same training twice: with gradients summed over all ranks in every step, and with ranks that make steps of their
/// own and meet after every 16 (replicas.h). Both end at the same point; the second sends a sixteenth. Under mpirun, torchrun or srun.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <zero/zero.h>

enum { kCount = 4096, kSteps = 160, kPeriod = 16 };

static void must(int32_t status) {
  char text[512];
  if (status == ZERO_OK) return;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "local_steps: %s: %s\n", zero_status_name(status), text);
  exit(1);
}

/// What rank `rank` wants element i to be. All ranks together want the mean.
static float wanted(int64_t i, int64_t rank) { return (float)(i % 11) - 5 + (float)((i + 3 * rank) % 8) / 4; }

/// The gradient of 1/2 (w - wanted)^2 on this rank, then a step.
static void step(zero_optimizer *optimizer, int64_t w, int64_t rank, zero_step_result *result) {
  float gradient[kCount];
  void *address;
  must(zero_optimizer_param_acquire(optimizer, w, NULL, 0, NULL, &address));
  for (int64_t i = 0; i < kCount; i++) gradient[i] = ((const float *)address)[i] - wanted(i, rank);
  must(zero_optimizer_param_release(optimizer, w));
  must(zero_optimizer_grad_ready(optimizer, w, gradient, 0, kCount, NULL));
  must(zero_optimizer_step(optimizer, NULL, result));
}

/// The largest difference to the mean of what all ranks want.
static double distance(zero_optimizer *optimizer, int64_t w, int64_t ranks) {
  void *address;
  double most = 0;
  must(zero_optimizer_param_acquire(optimizer, w, NULL, 0, NULL, &address));
  for (int64_t i = 0; i < kCount; i++) {
    double mean = 0;
    for (int64_t rank = 0; rank < ranks; rank++) mean += wanted(i, rank) / (double)ranks;
    most = fmax(most, fabs(((const float *)address)[i] - mean));
  }
  must(zero_optimizer_param_release(optimizer, w));
  return most;
}

static int64_t sent_nbytes(zero_optimizer *optimizer) {
  const int32_t operations[] = {ZERO_OPERATION_REDUCE_SCATTER, ZERO_OPERATION_ALL_GATHER, ZERO_OPERATION_ALL_REDUCE};
  zero_traffic_stats stats;
  int64_t sum = 0;
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    must(zero_traffic_stats_init(&stats, sizeof stats));
    must(zero_stats_optimizer_traffic(optimizer, operations[i], &stats));
    sum += stats.sent_nbytes;
  }
  return sum;
}

/// One rank per replica, so that each keeps the whole model. Rate 1 without momentum is the mean of the parameters.
static void train(zero_group *group, int64_t rank, int64_t ranks, int64_t period) {
  zero_config *config;
  zero_optimizer *optimizer;
  zero_step_result result;
  const int64_t shape[1] = {kCount};
  int64_t w;
  must(zero_config_create(&config));
  must(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd"));
  must(zero_config_set_f64(config, ZERO_KEY_LR, 0.125));
  must(zero_config_set_i64(config, ZERO_KEY_REPLICA_RANKS, 1));
  must(zero_config_set_i64(config, ZERO_KEY_SYNC_PERIOD, period));
  must(zero_optimizer_create(group, config, &optimizer));
  must(zero_optimizer_add_param(optimizer, NULL, "w", ZERO_DTYPE_F32, shape, 1, &w));
  must(zero_optimizer_seal(optimizer));
  must(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  must(zero_step_result_init(&result, sizeof result));
  const int64_t before = sent_nbytes(optimizer);
  for (int i = 0; i < kSteps; i++) step(optimizer, w, rank, &result);
  must(zero_optimizer_sync(optimizer, NULL, &result)); /* they are together: 160 steps are whole periods */
  const double far = distance(optimizer, w, ranks);
  if (rank == 0) printf("period=%" PRId64 " sent=%" PRId64 " distance=%.6f\n", period, (sent_nbytes(optimizer) - before) / kSteps, far);
  zero_optimizer_release(optimizer);
  zero_config_release(config);
}

int main(void) {
  zero_group *group;
  int64_t rank, ranks;
  must(zero_group_create_env(NULL, &group));
  must(zero_group_rank(group, &rank));
  must(zero_group_size(group, &ranks));
  if (ranks < 2) {
    fprintf(stderr, "local_steps: one rank has nobody to meet; start it with a launcher, for example mpirun -n 2\n");
    return 2;
  }
  train(group, rank, ranks, 1);
  train(group, rank, ranks, kPeriod);
  zero_group_release(group);
  return 0;
}
