/// @file server: a synchronous parameter server out of shard weights: rank 0 keeps all states and makes all updates, the others compute
/// gradients. The result has the bits of even shards. A server sends as much as all its workers together, so it is for workers with little
/// memory, never for speed. Under mpirun, torchrun or srun.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zero/zero.h>

enum { kCount = 5000, kSteps = 40, kMostRanks = 64 };

static void must(int32_t status) {
  char text[512];
  if (status == ZERO_OK) return;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "server: %s: %s\n", zero_status_name(status), text);
  exit(1);
}

/// Rank 0 serves: it has no samples, and its gradient no weight.
static void step(zero_optimizer *optimizer, int64_t w, int64_t rank) {
  float gradient[kCount] = {0};
  void *address;
  must(zero_optimizer_param_acquire(optimizer, w, NULL, 0, NULL, &address));
  for (int64_t i = 0; rank > 0 && i < kCount; i++) gradient[i] = ((const float *)address)[i] - (float)((i + rank) % 13);
  must(zero_optimizer_param_release(optimizer, w));
  must(zero_optimizer_set_weight(optimizer, rank == 0 ? 0 : 1));
  must(zero_optimizer_grad_ready(optimizer, w, gradient, 0, kCount, NULL));
  must(zero_optimizer_step(optimizer, NULL, NULL));
}

static uint64_t hash_of(const void *data, size_t nbytes) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < nbytes; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/// `weights`: shard sizes; "" for even ones.
static void train(zero_group *group, int64_t rank, const char *weights) {
  zero_config *config;
  zero_optimizer *optimizer;
  zero_memory_stats states;
  zero_traffic_stats reduced;
  zero_traffic_stats gathered;
  const int64_t shape[1] = {kCount};
  float values[kCount];
  void *address;
  int64_t w;
  must(zero_config_create(&config));
  must(zero_config_set_i64(config, ZERO_KEY_DIVISOR, ZERO_DIVISOR_WEIGHTS));
  must(zero_config_set_str(config, ZERO_KEY_SHARD_WEIGHTS, weights));
  must(zero_optimizer_create(group, config, &optimizer));
  must(zero_optimizer_add_param(optimizer, NULL, "w", ZERO_DTYPE_F32, shape, 1, &w));
  must(zero_optimizer_seal(optimizer));
  must(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  for (int i = 0; i < kSteps; i++) step(optimizer, w, rank);
  must(zero_optimizer_param_acquire(optimizer, w, values, kCount, NULL, &address));
  must(zero_optimizer_param_release(optimizer, w));
  must(zero_memory_stats_init(&states, sizeof states));
  must(zero_traffic_stats_init(&reduced, sizeof reduced));
  must(zero_traffic_stats_init(&gathered, sizeof gathered));
  must(zero_stats_optimizer_memory(optimizer, ZERO_MEMORY_STATE, &states));
  must(zero_stats_optimizer_traffic(optimizer, ZERO_OPERATION_REDUCE_SCATTER, &reduced));
  must(zero_stats_optimizer_traffic(optimizer, ZERO_OPERATION_ALL_GATHER, &gathered));
  printf("shards=%s rank=%" PRId64 " states=%" PRId64 " reduced=%" PRId64 " gathered=%" PRId64 " hash=%016" PRIx64 "\n",
         *weights ? "server" : "even", rank, states.formula_nbytes, reduced.sent_elements / kSteps, gathered.sent_elements / kSteps,
         hash_of(values, sizeof values));
  zero_optimizer_release(optimizer);
  zero_config_release(config);
}

int main(void) {
  zero_group *group;
  int64_t rank, ranks;
  char weights[2 * kMostRanks] = "1";
  must(zero_group_create_env(NULL, &group));
  must(zero_group_rank(group, &rank));
  must(zero_group_size(group, &ranks));
  if (ranks < 2 || ranks > kMostRanks) {
    fprintf(stderr, "server: %" PRId64 " ranks, but a server and its workers are 2 to %d; start it with a launcher\n", ranks, kMostRanks);
    return 2;
  }
  for (int64_t worker = 1; worker < ranks; worker++) strcat(weights, ",0");
  train(group, rank, "");
  train(group, rank, weights);
  zero_group_release(group);
  return 0;
}
