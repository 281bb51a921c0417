/// @file servers: parameter servers of 600 f32; rank 0 is the server.
#include <inttypes.h>
#include <stddef.h>
#include <zero/zero.h>

#include "check.h"
#include "ranks.h"
#include "scenarios.h"
#include "values.h"

enum { kCount = 600, kRounds = 3, kCalls = 4 };

static const uint16_t kRecord[kCalls] = {32768, 32769, 1, 0};

static zero_server *create(const struct rank *self, int64_t order) {
  zero_config *config;
  zero_server *server;
  must(zero_config_create(&config));
  must(zero_config_set_i64(config, ZERO_KEY_SERVER_ORDER, order));
  must(zero_server_create(self->group, config, kCount, &server));
  zero_config_release(config);
  must(zero_server_seal(server));
  return server;
}

/// Pulls, and pushes v(i, 10 t + rank), in rounds t.
static void work(const struct rank *self, zero_server *server, int64_t rounds) {
  float params[kCount], gradients[kCount];
  for (int64_t t = 0; t < rounds; t++) {
    must(zero_server_pull(server, params, kCount));
    values_fill(gradients, ZERO_DTYPE_F32, kCount, 10 * t + self->id);
    must(zero_server_push(server, gradients, kCount));
  }
  must(zero_server_leave(server));
}

/// Writes v(i, 0), serves, and says the parameters.
static void serve(struct rank *self, zero_server *server, zero_server_result *result) {
  void *shard;
  int64_t offset, count;
  must(zero_server_shard(server, &shard, &offset, &count));
  values_fill(shard, ZERO_DTYPE_F32, count, 0);
  must(zero_server_result_init(result, sizeof *result));
  must(zero_server_run(server, result));
  text_add_hash(&self->text, shard, count * (int64_t)sizeof(float));
}

static void rounds(struct rank *self) {
  zero_server *server = create(self, ZERO_SERVER_ORDER_ROUND_ROBIN);
  zero_server_result result;
  if (self->id == 0) {
    serve(self, server, &result);
    text_add(&self->text, "%" PRId64 " %" PRId64 " %" PRId64, result.push_count, result.pull_count, result.greatest_age);
  } else {
    work(self, server, kRounds);
  }
  zero_server_release(server);
}

static void replay(struct rank *self) {
  zero_server *server = create(self, ZERO_SERVER_ORDER_ARRIVAL);
  zero_server_result result;
  if (self->id == 0) {
    uint16_t record[kCalls] = {0};
    int64_t count;
    must(zero_server_replay(server, kRecord, kCalls));
    serve(self, server, &result);
    must(zero_server_record(server, record, kCalls, &count));
    text_add_hash(&self->text, record, count * (int64_t)sizeof *record);
  } else {
    work(self, server, 1);
  }
  zero_server_release(server);
}

static void roles(struct rank *self) {
  zero_server *server = create(self, ZERO_SERVER_ORDER_ROUND_ROBIN);
  const float gradients[kCount] = {0};
  if (self->id == 0) {
    text_add_error(&self->text, zero_server_push(server, gradients, kCount));
    must(zero_server_run(server, NULL));
  } else {
    text_add_error(&self->text, zero_server_run(server, NULL));
    must(zero_server_leave(server));
  }
  zero_server_release(server);
}

void server_scenarios(void) {
  ranks_run("server-rounds", 3, rounds, NULL);
  ranks_run("server-replay", 3, replay, NULL);
  ranks_run("server-roles", 2, roles, NULL);
}
