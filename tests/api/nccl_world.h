/// @file The ranks of groups over NCCL, through the public API: their configs, streams and memory.
/// Several ranks are threads over a fake NCCL and emulated devices; a single rank uses NCCL if
/// there is a CUDA device.
#pragma once

#include "api_world.h"
#if ZERO_TEST_RANKS > 1
#include "tests/group/fake_nccl.h"
#endif
#include "tests/group/thread_ranks.h"
#include "tests/memory/caller_device.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

namespace zero::test {

inline constexpr int64_t kRanks = ZERO_TEST_RANKS;
inline constexpr int64_t kDevices = kRanks > 1 ? 2 : 1;
inline constexpr int64_t kCount = 12'000;  // a multiple of all numbers of ranks here
inline constexpr int64_t kLateUs = 2000;

inline std::string fresh_name() {
  static std::atomic<int> number{0};
  return "nccl_api." + std::to_string(::getpid()) + "." + std::to_string(number++);
}

/// Keys of a group in device memory.
struct NcclConfig {
  explicit NcclConfig(int64_t device) {
    ZERO_EXPECT_OK(zero_config_create(&config));
    ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_NCCL, 1));
    ZERO_EXPECT_OK(zero_config_set_str(config, ZERO_KEY_NCCL_MODULE, ZERO_NCCL_FILE));
    ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_DEVICE, device));
    ZERO_EXPECT_OK(zero_config_set_str(config, ZERO_KEY_CUDA_MODULE, caller_module()));
    ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_RENDEZVOUS_MS, 60'000));
  }
  NcclConfig(const NcclConfig &) = delete;
  ~NcclConfig() { zero_config_release(config); }

  zero_config *config = nullptr;
};

/// One rank: a group, a stream, and device memory with one value in all elements once the stream
/// reaches it.
struct Rank {
  /// Meets the other ranks by name.
  Rank(const std::string &name, int64_t number) : rank(number) {
    const NcclConfig keys(device);
    ZERO_EXPECT_OK(zero_group_create_local(name.c_str(), rank, kRanks, keys.config, &group));
  }
  /// Takes over the group of a request.
  Rank(zero_request *made, int64_t number) : rank(number) {
    ZERO_EXPECT_OK(zero_request_wait(made));
    ZERO_EXPECT_OK(zero_request_group(made, &group));
    zero_request_release(made);
  }
  Rank(const Rank &) = delete;
  ~Rank() {
    caller_wait(stream);
    zero_group_release(group);
    for (void *data : lent) caller_free(data);
    caller_stream_destroy(stream);
  }

  float *memory(int64_t count, float value, int64_t late = kLateUs) {
    const auto nbytes = count * static_cast<int64_t>(sizeof(float));
    lent.push_back(caller_alloc(device, std::max<int64_t>(nbytes, 1)));
    values.emplace_back(static_cast<size_t>(count), value);
    caller_copy(stream, lent.back(), values.back().data(), nbytes, late);
    return static_cast<float *>(lent.back());
  }
  /// Returns values in device memory, read through another stream.
  std::vector<float> seen(const float *data, int64_t count) const {
    std::vector<float> got(static_cast<size_t>(count));
    void *other = caller_stream_create(device);
    caller_copy(other, got.data(), data, count * static_cast<int64_t>(sizeof(float)), 0);
    caller_wait(other);
    caller_stream_destroy(other);
    return got;
  }

  const int64_t rank;
  const int64_t device = rank % kDevices;
  void *const stream = caller_stream_create(device);
  zero_group *group = nullptr;
  std::vector<void *> lent;
  std::vector<std::vector<float>> values;
};

inline std::vector<float> all(int64_t count, float value) { return std::vector<float>(static_cast<size_t>(count), value); }

}  // namespace zero::test
