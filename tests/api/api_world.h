/// @file Objects to call exported functions with: groups, a buffer and optimizers of this process,
/// and handles that are not live. Knows only the public API.
#pragma once

#include <zero/zero.h>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace zero::test {

/// The text of the last error on this thread.
inline std::string last_text() {
  std::array<char, 2048> text;
  zero_last_error_copy(text.data(), static_cast<int64_t>(text.size()));
  return text.data();
}

#define ZERO_EXPECT_OK(...) EXPECT_EQ(ZERO_OK, (__VA_ARGS__)) << ::zero::test::last_text()
#define ZERO_ASSERT_OK(...) ASSERT_EQ(ZERO_OK, (__VA_ARGS__)) << ::zero::test::last_text()

/// True if the call failed with that code, and the error text contains `named`.
inline testing::AssertionResult failed_with(int32_t status, int32_t code, const std::string &named) {
  const std::string text = last_text();
  if (status != code) {
    return testing::AssertionFailure() << "returned " << zero_status_name(status) << ", expected " << zero_status_name(code) << " (" << text
                                       << ")";
  }
  if (zero_last_error_copy(nullptr, 0) != code) return testing::AssertionFailure() << "the last error has another code";
  if (text.find(named) == std::string::npos) return testing::AssertionFailure() << "the text does not name '" << named << "': " << text;
  return testing::AssertionSuccess();
}

inline zero_group *solo_group() {
  zero_group *group = nullptr;
  EXPECT_EQ(ZERO_OK, zero_group_create_local(nullptr, 0, 1, nullptr, &group)) << last_text();
  return group;
}

/// Two ranks of one group, both held by this thread.
struct TwoRanks {
  explicit TwoRanks(const char *name, int64_t deadline_ms = 5000) {
    zero_config *config = nullptr;
    EXPECT_EQ(ZERO_OK, zero_config_create(&config));
    EXPECT_EQ(ZERO_OK, zero_config_set_i64(config, ZERO_KEY_DEADLINE_MS, deadline_ms));
    std::array<zero_request *, 2> requests{};
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(ZERO_OK, zero_group_create_local_async(name, i, 2, config, &requests[static_cast<size_t>(i)])) << last_text();
    }
    int64_t done = 0;
    while (done != 2) {
      done = 0;
      for (zero_request *request : requests) {
        int64_t one = 0;
        EXPECT_EQ(ZERO_OK, zero_request_test(request, &one)) << last_text();
        done += one;
      }
    }
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(ZERO_OK, zero_request_group(requests[i], &rank[i])) << last_text();
      zero_request_release(requests[i]);
    }
    zero_config_release(config);
  }
  TwoRanks(const TwoRanks &) = delete;
  ~TwoRanks() {
    for (zero_group *group : rank) zero_group_release(group);
  }

  std::array<zero_group *, 2> rank{};
};

/// A world of one rank with one object of each kind.
struct World {
  World() {
    EXPECT_EQ(ZERO_OK, zero_config_create(&config));
    EXPECT_EQ(ZERO_OK, zero_config_create(&stale_config));
    group = solo_group();
    EXPECT_EQ(ZERO_OK, zero_buffer_create(group, nullptr, ZERO_DTYPE_F32, kCount, &buffer)) << last_text();
    building = new_optimizer();
    running = new_optimizer();
    int64_t id = -1;
    const int64_t shape = kCount;
    EXPECT_EQ(ZERO_OK, zero_optimizer_add_module_buffer(running, "mean", ZERO_DTYPE_F32, &shape, 1, ZERO_SYNC_AVERAGE, &id)) << last_text();
    EXPECT_EQ(ZERO_OK, zero_optimizer_seal(running)) << last_text();
    EXPECT_EQ(ZERO_OK, zero_optimizer_begin(running, ZERO_SOURCE_LOCAL)) << last_text();
    EXPECT_EQ(ZERO_OK, zero_group_barrier_async(group, &request)) << last_text();
    EXPECT_EQ(ZERO_OK, zero_request_wait(request)) << last_text();
    EXPECT_EQ(ZERO_OK, zero_group_split_async(group, 0, 0, &split_request)) << last_text();
    EXPECT_EQ(ZERO_OK, zero_request_wait(split_request)) << last_text();
    EXPECT_EQ(ZERO_OK, zero_buffer_create_async(group, nullptr, ZERO_DTYPE_F32, 4, &buffer_request)) << last_text();
    EXPECT_EQ(ZERO_OK, zero_request_wait(buffer_request)) << last_text();
    EXPECT_EQ(ZERO_OK, zero_checkpoint_create(group, nullptr, &checkpoint)) << last_text();
    EXPECT_EQ(ZERO_OK, zero_checkpoint_add_optimizer(checkpoint, "", running)) << last_text();
    zero_config_release(stale_config);
  }
  World(const World &) = delete;
  ~World() {
    zero_checkpoint_release(checkpoint);
    for (zero_request *made : {request, split_request, buffer_request}) zero_request_release(made);
    for (zero_optimizer *optimizer : {building, running}) zero_optimizer_release(optimizer);
    zero_buffer_release(buffer);
    zero_group_release(group);
    zero_config_release(config);
  }

  /// AdamW, stage 1, one tensor "weight" of kCount elements with id 0; not sealed.
  zero_optimizer *new_optimizer() const {
    zero_optimizer *optimizer = nullptr;
    zero_config *traced = nullptr;
    EXPECT_EQ(ZERO_OK, zero_config_create(&traced));
    EXPECT_EQ(ZERO_OK, zero_config_set_i64(traced, ZERO_KEY_TRACE_EVENTS, 16)) << last_text();
    EXPECT_EQ(ZERO_OK, zero_optimizer_create(group, traced, &optimizer)) << last_text();
    zero_config_release(traced);
    const int64_t shape = kCount;
    int64_t id = -1;
    EXPECT_EQ(ZERO_OK, zero_optimizer_add_param(optimizer, nullptr, "weight", ZERO_DTYPE_F32, &shape, 1, &id)) << last_text();
    EXPECT_EQ(0, id);
    return optimizer;
  }

  static constexpr int64_t kCount = 8;
  zero_config *config = nullptr;
  zero_config *stale_config = nullptr;  ///< a released handle
  zero_group *group = nullptr;
  zero_buffer *buffer = nullptr;
  zero_optimizer *building = nullptr;
  zero_optimizer *running = nullptr;
  zero_request *request = nullptr;
  zero_request *split_request = nullptr;
  zero_request *buffer_request = nullptr;
  zero_checkpoint *checkpoint = nullptr;  ///< checkpoint of `running`
};

}  // namespace zero::test
