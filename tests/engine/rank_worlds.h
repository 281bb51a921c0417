/// @file Worlds for engine tests: ranks as threads, each with a group of its own over the local transport.
/// Knows nothing of optimizers.
#pragma once

#include "engine/host_kernels.h"
#include "group/connect.h"
#include "tests/group/thread_ranks.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace zero::test {

inline bool full_tests() { return std::getenv("ZERO_TEST_FULL") != nullptr; }

/// A name under which only the ranks of one world meet.
inline std::string meeting_name() {
  static std::atomic<int64_t> count{0};
  return "engine_test." + std::to_string(::getpid()) + "." + std::to_string(++count);
}

inline std::shared_ptr<Group> connect_rank(const std::string &name, int64_t rank, int64_t size, int64_t threads) {
  Config config;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_DEADLINE_MS, 60'000).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGING_BYTES, 65'536).ok());
  OperationQueue queue;
  std::shared_ptr<Group> group;
  const Status status = queue.run(connect_local_group(
      name, rank, size, GroupOptions(config), [threads](const Place &) { return std::make_shared<HostReducer>(threads); }, &group));
  EXPECT_TRUE(status.ok()) << status.text();
  return group;
}

/// Runs body(group) on every rank of a new world.
template <class Body>
void run_world(int64_t size, Body &&body, int64_t threads = 1) {
  const std::string name = meeting_name();
  run_thread_ranks(size, [&](int64_t rank) {
    const std::shared_ptr<Group> group = connect_rank(name, rank, size, threads);
    if (group != nullptr) body(group);
  });
}

}  // namespace zero::test
