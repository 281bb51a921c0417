/// @file Worlds for engine tests: ranks as threads, each with a group of its own over the local transport.
/// Knows nothing of optimizers.
#pragma once

#include "engine/compute/host_kernels.h"
#include "group/connect/connect.h"
#include "tests/group/host_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace zero::test {

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

/// The same with so many ranks on each host but the last, which has what is left; 0: all ranks share one host.
template <class Body>
void run_hosts(int64_t size, int64_t per_host, Body &&body) {
  if (per_host == 0 || per_host >= size) return run_world(size, body);
  const std::string name = meeting_name();
  Hosts hosts;
  for (int64_t rank = 0; rank < size; ++rank) hosts.push_back(rank / per_host);
  run_thread_ranks(size, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    const Status status = connect_hosts(name, rank, hosts, std::make_shared<HostReducer>(1), &group);
    EXPECT_TRUE(status.ok()) << status.text();
    if (group != nullptr) body(group);
  });
}

}  // namespace zero::test
