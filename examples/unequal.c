/// @file unequal: ranks of unequal speed divide each batch by what they measured (zero_group_balance), so that all need the same time. The
/// weighted mean of gradients is that of the whole batch, whoever makes which part. --slow N: the last rank makes its work N times. Under
/// mpirun, torchrun or srun.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zero/zero.h>

enum { kCount = 512, kBatch = 1024, kMicro = 16, kSteps = 12 };

static void must(int32_t status) {
  char text[512];
  if (status == ZERO_OK) return;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "unequal: %s: %s\n", zero_status_name(status), text);
  exit(1);
}

/// Processor time: what a rank works, and not what it waits or what others keep it from.
static double seconds_worked(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static float input(int64_t sample, int64_t i) { return (float)((sample * 7919 + i * 104729 + sample * i * 31) % 1009 - 504) / 504; }
static float truth(int64_t i) { return (float)(i % 7 - 3) / 3; }

/// Adds the gradient of 1/2 (x w - x truth)^2 of one sample, divided by the samples of a micro-step.
static void add_sample(const float *w, int64_t sample, float *gradient) {
  float error = 0;
  for (int64_t i = 0; i < kCount; i++) error += input(sample, i) * (w[i] - truth(i));
  for (int64_t i = 0; i < kCount; i++) gradient[i] += error * input(sample, i) / kMicro;
}

/// Samples `begin` and following, as one micro-step.
static void micro_step(zero_optimizer *optimizer, int64_t param, const float *w, int64_t begin, int64_t times) {
  float gradient[kCount];
  must(zero_optimizer_micro_step(optimizer, ZERO_MICRO_STEP_LOCAL, NULL));
  must(zero_optimizer_set_weight(optimizer, kMicro));
  for (int64_t time = 0; time < times; time++) {
    memset(gradient, 0, sizeof gradient);
    for (int64_t sample = begin; sample < begin + kMicro; sample++) add_sample(w, sample, gradient);
  }
  must(zero_optimizer_grad_ready(optimizer, param, gradient, 0, kCount, NULL));
}

/// The first sample of this rank: the sum of the shares of lower ranks.
static int64_t first_sample(zero_group *group, int64_t rank, int64_t share, int64_t *shares, int64_t ranks) {
  int64_t first = 0;
  must(zero_group_all_gather(group, &share, 1, shares, ranks, ZERO_DTYPE_I64, NULL));
  for (int64_t lower = 0; lower < rank; lower++) first += shares[lower];
  return first;
}

static void print_step(int step, const int64_t *shares, int64_t ranks, double slowest, double sum) {
  printf("step=%d shares=", step);
  for (int64_t rank = 0; rank < ranks; rank++) printf("%s%" PRId64, rank > 0 ? "," : "", shares[rank]);
  printf(" slowest_to_mean=%.2f\n", slowest * (double)ranks / sum);
}

static void train(zero_group *group, zero_optimizer *optimizer, int64_t param, int64_t times) {
  int64_t rank, ranks, share = 0;
  double seconds = 0;
  must(zero_group_rank(group, &rank));
  must(zero_group_size(group, &ranks));
  int64_t *shares = calloc((size_t)ranks, sizeof *shares);
  if (shares == NULL) {
    fprintf(stderr, "unequal: no memory\n");
    exit(1);
  }
  for (int step = 0; step < kSteps; step++) {
    void *w;
    must(zero_group_balance(group, seconds, share, kBatch, kMicro, &share));
    const int64_t first = kBatch * step + first_sample(group, rank, share, shares, ranks);
    must(zero_optimizer_param_acquire(optimizer, param, NULL, 0, NULL, &w));
    const double begin = seconds_worked();
    if (share == 0) must(zero_optimizer_set_weight(optimizer, 0));
    for (int64_t done = 0; done < share; done += kMicro) micro_step(optimizer, param, w, first + done, rank == ranks - 1 ? times : 1);
    seconds = seconds_worked() - begin;
    must(zero_optimizer_param_release(optimizer, param));
    must(zero_optimizer_step(optimizer, NULL, NULL));
    double slowest, sum;
    must(zero_group_all_reduce(group, &seconds, 1, &slowest, 1, ZERO_DTYPE_F64, ZERO_REDUCE_MAX, NULL));
    must(zero_group_all_reduce(group, &seconds, 1, &sum, 1, ZERO_DTYPE_F64, ZERO_REDUCE_SUM, NULL));
    if (rank == 0) print_step(step, shares, ranks, slowest, sum);
  }
  free(shares);
}

/// The parameters' distance from the truth: the same, to rounding, however the batches were divided.
static void print_distance(zero_optimizer *optimizer, int64_t param, int64_t rank) {
  void *w;
  double squares = 0;
  must(zero_optimizer_param_acquire(optimizer, param, NULL, 0, NULL, &w));
  for (int64_t i = 0; i < kCount; i++) squares += pow(((const float *)w)[i] - truth(i), 2);
  must(zero_optimizer_param_release(optimizer, param));
  if (rank == 0) printf("distance=%.5f\n", sqrt(squares));
}

int main(int argc, char **argv) {
  zero_group *group;
  zero_config *config;
  zero_optimizer *optimizer;
  const int64_t shape[1] = {kCount};
  const int64_t times = argc == 3 && strcmp(argv[1], "--slow") == 0 ? strtoll(argv[2], NULL, 10) : 1;
  int64_t param, rank;
  if (times < 1 || (argc != 1 && argc != 3)) {
    fprintf(stderr, "usage: unequal [--slow N]\n");
    return 2;
  }
  must(zero_group_create_env(NULL, &group));
  must(zero_group_rank(group, &rank));
  must(zero_config_create(&config));
  must(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd"));
  must(zero_config_set_f64(config, ZERO_KEY_LR, 0.5));
  must(zero_config_set_i64(config, ZERO_KEY_DIVISOR, ZERO_DIVISOR_WEIGHTS));
  must(zero_optimizer_create(group, config, &optimizer));
  must(zero_optimizer_add_param(optimizer, NULL, "w", ZERO_DTYPE_F32, shape, 1, &param));
  must(zero_optimizer_seal(optimizer));
  must(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  train(group, optimizer, param, times);
  print_distance(optimizer, param, rank);
  zero_optimizer_release(optimizer);
  zero_config_release(config);
  zero_group_release(group);
  return 0;
}
