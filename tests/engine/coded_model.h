/// @file Models whose replicas send codes, for tests of codes and of residuals.
#pragma once

#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace zero::test {

inline constexpr std::array<int64_t, 3> kCodes = {ZERO_CODE_F8, ZERO_CODE_I8, ZERO_CODE_I4};

struct CodedWorld {
  int64_t ranks;
  int64_t replica_ranks;
};

/// Tensors of more and of fewer elements than a line has.
inline Model coded_model(const CodedWorld &world, int64_t grad_code) {
  Model model;
  model.seed = static_cast<uint64_t>(world.ranks * 10 + grad_code);
  model.ranks = world.ranks;
  model.counts = {3000, 17, 0, 1024, 1, 257, 255, 256, 700};
  model.recipe.replica_ranks = world.replica_ranks;
  model.recipe.grad_code = grad_code;
  return model;
}

/// What Optimizer::create says of these keys.
inline void expect_refused(const std::shared_ptr<Group> &group, const std::vector<std::pair<int32_t, int64_t>> &keys, int32_t code,
                           const char *words) {
  Config config;
  for (const auto &[key, value] : keys) EXPECT_TRUE(config.set_i64(key, value).ok());
  std::shared_ptr<Optimizer> optimizer;
  const Status status = Optimizer::create(group, config, &optimizer);
  EXPECT_EQ(status.code(), code);
  EXPECT_TRUE(contains(status, words)) << status.text();
}

}  // namespace zero::test
