/// @file Lets many ranks meet and add tensors, in one process or one process each. Also limits and
/// counts descriptors. Knows only the public API.
#pragma once

#include "api_world.h"

#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace zero::test {

/// Sets the soft limit of descriptors of this process.
inline void limit_descriptors(int64_t limit) {
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  now.rlim_cur = limit > 0 ? static_cast<rlim_t>(limit) : now.rlim_max;
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
}

inline int64_t descriptors_now() {
  int64_t count = 0;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd"); entry != std::filesystem::directory_iterator(); ++entry) ++count;
  return count;
}

inline zero_group *join_crowd(const std::string &name, int64_t rank, int64_t size) {
  zero_group *group = nullptr;
  EXPECT_EQ(ZERO_OK, zero_group_create_local(name.c_str(), rank, size, nullptr, &group)) << last_text();
  return group;
}

inline zero_optimizer *crowd_optimizer(zero_group *group, int64_t stage, const std::vector<int64_t> &counts) {
  zero_config *config = nullptr;
  zero_optimizer *optimizer = nullptr;
  EXPECT_EQ(ZERO_OK, zero_config_create(&config));
  EXPECT_EQ(ZERO_OK, zero_config_set_i64(config, ZERO_KEY_STAGE, stage));
  EXPECT_EQ(ZERO_OK, zero_optimizer_create(group, config, &optimizer)) << last_text();
  zero_config_release(config);
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t id = -1;
    EXPECT_EQ(ZERO_OK, zero_optimizer_add_param(optimizer, nullptr, ("t" + std::to_string(i)).c_str(), ZERO_DTYPE_F32, &counts[i], 1, &id));
  }
  return optimizer;
}

}  // namespace zero::test
