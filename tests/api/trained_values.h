/// @file A short training of a group, with buffers and a part of the group beside it, as a text of
/// its results. Knows only the public API.
#pragma once

#include <zero/zero.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace zero::test {

/// The text of the last error on this thread, with the call.
inline std::string failed_call(const char *call) {
  std::array<char, 2048> text;
  zero_last_error_copy(text.data(), static_cast<int64_t>(text.size()));
  return std::string(call) + ": " + text.data();
}

#define ZERO_TRAINED(...)                                          \
  do {                                                             \
    if ((__VA_ARGS__) != ZERO_OK) return ::zero::test::failed_call(#__VA_ARGS__); \
  } while (0)

/// Sums over the ranks of a buffer's elements and of a collective, which are known.
inline std::string check_sums(zero_group *group) {
  constexpr int64_t kCount = 1000;
  int64_t rank = 0;
  int64_t size = 0;
  ZERO_TRAINED(zero_group_rank(group, &rank));
  ZERO_TRAINED(zero_group_size(group, &size));
  zero_buffer *buffer = nullptr;
  ZERO_TRAINED(zero_buffer_create(group, nullptr, ZERO_DTYPE_F32, kCount, &buffer));
  zero_buffer_release(buffer);
  std::vector<float> mine(kCount, static_cast<float>(rank + 1));
  std::vector<float> sums(kCount);
  ZERO_TRAINED(zero_group_all_reduce(group, mine.data(), kCount, sums.data(), kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, nullptr));
  for (const float sum : sums) {
    if (sum != static_cast<float>(size * (size + 1) / 2)) return "a sum is " + std::to_string(sum);
  }
  return "";
}

/// Three steps of AdamW; returns the bits of the parameters.
inline std::string train_optimizer(zero_optimizer *optimizer, int64_t rank) {
  constexpr int64_t kCount = 700;
  const std::array<int64_t, 2> shape = {100, 7};
  int64_t id = 0;
  ZERO_TRAINED(zero_optimizer_add_param(optimizer, nullptr, "weight", ZERO_DTYPE_F32, shape.data(), 2, &id));
  ZERO_TRAINED(zero_optimizer_seal(optimizer));
  ZERO_TRAINED(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  std::vector<float> values(kCount);
  for (int step = 0; step < 3; ++step) {
    for (int64_t i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = static_cast<float>((i * 7 + rank * 3 + step) % 11 - 5);
    ZERO_TRAINED(zero_optimizer_grad_ready(optimizer, id, values.data(), 0, kCount, nullptr));
    ZERO_TRAINED(zero_optimizer_step(optimizer, nullptr, nullptr));
  }
  void *address = nullptr;
  ZERO_TRAINED(zero_optimizer_param_acquire(optimizer, id, values.data(), kCount, nullptr, &address));
  ZERO_TRAINED(zero_optimizer_param_release(optimizer, id));
  uint64_t bits = 0;
  for (const float value : values) {
    uint32_t word = 0;
    std::memcpy(&word, &value, sizeof word);
    bits = bits * 1'000'003 + word;
  }
  return "trained " + std::to_string(bits) + (values[0] != 0 ? "" : " to nothing");
}

inline std::string trained_values(zero_group *group) {
  int64_t rank = 0;
  ZERO_TRAINED(zero_group_rank(group, &rank));
  if (std::string wrong = check_sums(group); !wrong.empty()) return wrong;
  zero_group *part = nullptr;
  ZERO_TRAINED(zero_group_split(group, 0, 0, &part));
  if (std::string wrong = check_sums(part); !wrong.empty()) return wrong;
  zero_group_release(part);
  zero_config *config = nullptr;
  ZERO_TRAINED(zero_config_create(&config));
  ZERO_TRAINED(zero_config_set_i64(config, ZERO_KEY_STAGE, 2));
  zero_optimizer *optimizer = nullptr;
  ZERO_TRAINED(zero_optimizer_create(group, config, &optimizer));
  zero_config_release(config);
  std::string text = train_optimizer(optimizer, rank);
  zero_optimizer_release(optimizer);
  return text;
}

}  // namespace zero::test
