/// @file Makes worlds of parameter servers and workers, which are threads of the test process.
/// Knows only the public API.
#pragma once

#include "tests/api/api_world.h"
#include "tests/group/thread_ranks.h"

#include <zero/zero.h>

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zero::test::server_world {

using Values = std::vector<float>;
using Configure = std::function<void(zero_config *)>;

inline std::string fresh_name() {
  static std::atomic<int> count{0};
  return "server_test." + std::to_string(::getpid()) + "." + std::to_string(++count);
}

/// A world of servers and workers, which are threads.
struct Case {
  int64_t servers = 1;
  int64_t workers = 1;
  int64_t count = 1;
  Configure configure = [](zero_config *) {};
  int64_t deadline_ms = 20'000;
};

inline zero_config *make_config(const Case &world) {
  zero_config *config = nullptr;
  ZERO_EXPECT_OK(zero_config_create(&config));
  ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_DEADLINE_MS, world.deadline_ms));
  ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_STAGING_BYTES, 16384));
  ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_SERVER_RANKS, world.servers));
  world.configure(config);
  return config;
}

/// One rank of a sealed world.
struct Rank {
  int64_t id = 0;
  zero_group *group = nullptr;
  zero_server *server = nullptr;
};

inline void run_ranks(const Case &world, const std::function<void(Rank &)> &body) {
  const std::string name = fresh_name();
  const int64_t size = world.servers + world.workers;
  run_thread_ranks(size, [&](int64_t id) {
    Rank rank{id};
    zero_config *config = make_config(world);
    ZERO_ASSERT_OK(zero_group_create_local(name.c_str(), id, size, config, &rank.group));
    ZERO_ASSERT_OK(zero_server_create(rank.group, config, world.count, &rank.server));
    zero_config_release(config);
    ZERO_ASSERT_OK(zero_server_seal(rank.server));
    body(rank);
    zero_server_release(rank.server);
    zero_group_release(rank.group);
  });
}

inline Configure arrival(
    int64_t staleness, const Configure &more = [](zero_config *) {}) {
  return [staleness, more](zero_config *config) {
    ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_SERVER_ORDER, ZERO_SERVER_ORDER_ARRIVAL));
    ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_SERVER_STALENESS, staleness));
    more(config);
  };
}

}  // namespace zero::test::server_world
