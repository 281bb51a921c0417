/// @file own_pace: workers that need not wait for the slowest of them: rank 0 holds the parameters as a server, and each worker pulls and
/// pushes at its own speed, at most BOUND pushes ahead of the others. The last worker rests a millisecond in each round. Under mpirun,
/// torchrun or srun, with two ranks or more.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zero/zero.h>

enum { kCount = 1000, kRounds = 150 };

static void must(int32_t status) {
  char text[512];
  if (status == ZERO_OK) return;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "own_pace: %s: %s\n", zero_status_name(status), text);
  exit(1);
}

static float truth(int64_t i) { return (float)(i % 7 - 3) / 3; }

/// The gradient of 1/2 sum (w - truth)^2, seen by a worker with an error of its own that is 0 in the mean of its rounds.
static void compute(const float *w, int64_t rank, int64_t round, float *gradient) {
  for (int64_t i = 0; i < kCount; i++) gradient[i] = w[i] - truth(i) + (float)((i + 3 * rank + 5 * round) % 5 - 2) / 64;
}

static void rest(void) {
  const struct timespec time = {0, 1000000};
  nanosleep(&time, NULL);
}

static void work(zero_server *server, int64_t rank, int64_t ranks) {
  float w[kCount];
  float gradient[kCount];
  for (int64_t round = 0; round < kRounds; round++) {
    must(zero_server_pull(server, w, kCount));
    compute(w, rank, round, gradient);
    if (rank == ranks - 1) rest();
    must(zero_server_push(server, gradient, kCount));
  }
  must(zero_server_leave(server));
}

/// Serves, and prints what came of it.
static void serve(zero_server *server) {
  zero_server_result result;
  void *address;
  int64_t offset;
  int64_t count;
  double squares = 0;
  must(zero_server_result_init(&result, sizeof result));
  must(zero_server_run(server, &result)); /* first values are zeros */
  must(zero_server_shard(server, &address, &offset, &count));
  for (int64_t i = 0; i < count; i++) squares += pow(((const float *)address)[i] - truth(offset + i), 2);
  printf("pushes=%" PRId64 " waited=%" PRId64 " greatest_age=%" PRId64 " distance=%.4f\n", result.push_count, result.waited_count,
         result.greatest_age, sqrt(squares / kCount));
}

int main(int argc, char **argv) {
  zero_group *group;
  zero_config *config;
  zero_server *server;
  int64_t rank;
  int64_t ranks;
  const int64_t bound = argc > 1 ? strtoll(argv[1], NULL, 10) : 4;
  must(zero_group_create_env(NULL, &group));
  must(zero_group_rank(group, &rank));
  must(zero_group_size(group, &ranks));
  must(zero_config_create(&config));
  must(zero_config_set_i64(config, ZERO_KEY_SERVER_ORDER, ZERO_SERVER_ORDER_ARRIVAL));
  must(zero_config_set_i64(config, ZERO_KEY_SERVER_STALENESS, bound));
  must(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd"));
  must(zero_config_set_f64(config, ZERO_KEY_LR, 0.05));
  must(zero_server_create(group, config, kCount, &server));
  must(zero_server_seal(server));
  if (rank == 0) {
    serve(server);
  } else {
    work(server, rank, ranks);
  }
  zero_server_release(server);
  zero_config_release(config);
  zero_group_release(group);
  return 0;
}
