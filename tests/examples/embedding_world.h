/// @file embedding_world: ranks as threads of a test, and the comparison of what they end with, for the tests of examples/libtorch and
/// examples/dlib. Knows nothing of frameworks.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "examples/embedding/handles.h"

namespace embedding {

using Values = std::vector<float>;

/// Elements that differ in a bit; all of them when there are not as many.
inline int64_t differing(const Values &a, const Values &b) {
  if (a.size() != b.size()) return static_cast<int64_t>(std::max(a.size(), b.size()));
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); i++) count += std::memcmp(&a[i], &b[i], sizeof(float)) != 0;
  return count;
}

/// Runs body(group, rank) on a thread per rank.
inline void in_world(int64_t size, const std::function<void(zero_group *, int64_t)> &body) {
  static int64_t worlds = 0;
  const std::string name = "embedding_world." + std::to_string(getpid()) + "." + std::to_string(worlds++);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; rank++) {
    threads.emplace_back([&, rank] {
      zero_group *group = nullptr;
      check(zero_group_create_local(name.c_str(), rank, size, nullptr, &group));
      const GroupHandle owner(group);
      body(group, rank);
    });
  }
  for (std::thread &thread : threads) thread.join();
}

/// With buckets smaller than the models of these tests.
inline ConfigHandle stage_config(int64_t stage) {
  ConfigHandle config = make_config();
  check(zero_config_set_i64(config.get(), ZERO_KEY_STAGE, stage));
  check(zero_config_set_i64(config.get(), ZERO_KEY_BUCKET_BYTES, 65536));
  return config;
}

}  // namespace embedding
