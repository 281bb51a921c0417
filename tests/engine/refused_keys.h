/// @file Keys that Optimizer::create refuses, and its words.
#pragma once

#include "engine/optimizer/optimizer.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace zero::test {

using WholeKeys = std::vector<std::pair<int32_t, int64_t>>;
using RealKeys = std::vector<std::pair<int32_t, double>>;

inline void expect_refused(const std::shared_ptr<Group> &group, const WholeKeys &keys, int32_t code, const char *words,
                           const RealKeys &reals = {}) {
  Config config;
  for (const auto &[key, value] : keys) EXPECT_TRUE(config.set_i64(key, value).ok());
  for (const auto &[key, value] : reals) EXPECT_TRUE(config.set_f64(key, value).ok());
  std::shared_ptr<Optimizer> optimizer;
  const Status status = Optimizer::create(group, config, &optimizer);
  EXPECT_EQ(status.code(), code) << status.text();
  EXPECT_TRUE(contains(status, words)) << status.text();
}

struct Refused {
  WholeKeys keys;
  RealKeys reals;
  int32_t code;
  const char *words;
};

/// `first`: keys that come before those of the case.
inline void expect_refused(const std::shared_ptr<Group> &group, WholeKeys first, const Refused &refused) {
  first.insert(first.end(), refused.keys.begin(), refused.keys.end());
  expect_refused(group, first, refused.code, refused.words, refused.reals);
}

}  // namespace zero::test
