/// @file Config: the key table's bounds, types and defaults, and values set and read.
#include "core/config.h"

#include <zero/dtype.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace zero::config_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Config, EveryKeyIsListedOnceWithItsName) {
  int listed = 0;
  for (int32_t key = -1000; key < 2000; ++key) {
    const KeyInfo *info = find_key(key);
    if (info == nullptr) continue;
    ++listed;
    EXPECT_EQ(info->key, key);
    EXPECT_EQ(std::string(info->name).substr(0, 9), "ZERO_KEY_");
  }
  EXPECT_EQ(listed, static_cast<int>(all_keys().size()));
  EXPECT_EQ(listed, 109);
}

TEST(Config, UnsetKeysHaveTheirDefaults) {
  const Config config;
  EXPECT_TRUE(config.empty());
  for (const KeyInfo &info : all_keys()) {
    EXPECT_FALSE(config.is_set(info.key)) << info.name;
    if (info.type == KeyType::i64) {
      EXPECT_EQ(config.i64(info.key), info.default_i64) << info.name;
    }
    if (info.type == KeyType::f64) {
      EXPECT_EQ(config.f64(info.key), info.default_f64) << info.name;
    }
    if (info.type == KeyType::str) {
      EXPECT_EQ(config.str(info.key), "") << info.name;
    }
  }
}

TEST(Config, I64KeysTakeTheirBoundsAndNothingBeyond) {
  for (const KeyInfo &info : all_keys()) {
    if (info.type != KeyType::i64 || info.key >= ZERO_KEY_STEP_COUNT) continue;
    Config config;
    for (const int64_t value : {info.min_i64, info.max_i64, info.default_i64}) {
      EXPECT_TRUE(config.set_i64(info.key, value).ok()) << info.name << " " << value;
      EXPECT_EQ(config.i64(info.key), value);
    }
    ASSERT_TRUE(config.set_i64(info.key, info.max_i64).ok());
    for (const int64_t value : {info.min_i64 - 1, info.max_i64 + 1, INT64_MIN, INT64_MAX}) {
      const Status status = config.set_i64(info.key, value);
      EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT) << info.name << " " << value;
      EXPECT_NE(std::string(status.text()).find(info.name), std::string::npos);
      EXPECT_NE(std::string(status.text()).find(std::to_string(value)), std::string::npos);
    }
    EXPECT_EQ(config.i64(info.key), info.max_i64) << "a refused value changed the config";
    EXPECT_TRUE(config.is_set(info.key));
    EXPECT_FALSE(config.empty());
  }
}

TEST(Config, BucketsHaveALeastSizeOrFollowTheModel) {
  Config config;
  for (const int64_t value : {int64_t{0}, int64_t{1024}}) EXPECT_TRUE(config.set_i64(ZERO_KEY_BUCKET_BYTES, value).ok());
  for (const int64_t value : {int64_t{1}, int64_t{1023}}) {
    const Status status = config.set_i64(ZERO_KEY_BUCKET_BYTES, value);
    EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(status.text()), "ZERO_KEY_BUCKET_BYTES is " + std::to_string(value) + ", but must be 0 or at least 1024");
  }
  EXPECT_EQ(config.i64(ZERO_KEY_BUCKET_BYTES), 1024);
}

TEST(Config, KeysWithChoicesTakeThoseAndNameThem) {
  int keys = 0;
  for (const KeyInfo &info : all_keys()) {
    if (info.choices.empty()) continue;
    ++keys;
    Config config;
    const auto listed = [&info](int64_t value) {
      return std::any_of(info.choices.begin(), info.choices.end(), [&](const Choice &c) { return c.value == value; });
    };
    EXPECT_TRUE(listed(info.default_i64)) << info.name;
    for (int64_t value = info.min_i64; value <= info.max_i64; ++value) {
      const Status status = config.set_i64(info.key, value);
      EXPECT_EQ(status.code(), listed(value) ? ZERO_OK : ZERO_E_INVALID_ARGUMENT) << info.name << " " << value;
      EXPECT_EQ(config.i64(info.key) == value, listed(value)) << info.name << " " << value;
      for (const Choice &choice : info.choices) {
        EXPECT_EQ(std::string(status.text()).find(choice.name) != std::string::npos, !listed(value)) << info.name << " " << value;
      }
    }
  }
  EXPECT_EQ(keys, 19);
  Config config;
  EXPECT_STREQ(config.set_i64(ZERO_KEY_FIRST_MOMENT_DTYPE, ZERO_DTYPE_F16).text(),
               "ZERO_KEY_FIRST_MOMENT_DTYPE is 3, but must be ZERO_DTYPE_F32 (1), ZERO_DTYPE_BF16 (4) or ZERO_DTYPE_F8_E4M3 (50)");
  EXPECT_STREQ(choice_name(ZERO_KEY_MASTER, 2), "ZERO_MASTER_REMAINDER");
  EXPECT_STREQ(config.set_i64(ZERO_KEY_SEED, -1).text(), "ZERO_KEY_SEED is -1, but must be in 0 .. 2^62");
  EXPECT_STREQ(config.set_f64(ZERO_KEY_LOSS_SCALE_GROWTH, 0).text(), "ZERO_KEY_LOSS_SCALE_GROWTH is 0, but must be in 1 .. 2^30");
}

TEST(Config, TakesNoScalarsOfARunningOptimizer) {
  for (const int32_t key : {ZERO_KEY_STEP_COUNT, ZERO_KEY_SKIPPED_COUNT, ZERO_KEY_GROWTH_COUNT, ZERO_KEY_OVERFLOW_COUNT}) {
    Config config;
    const Status status = config.set_i64(key, 3);
    EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED);
    EXPECT_NE(std::string(status.text()).find("zero_optimizer_set_i64"), std::string::npos) << status.text();
    EXPECT_TRUE(config.empty());
  }
}

TEST(Config, F64KeysTakeTheirBoundsAndNothingBeyond) {
  for (const KeyInfo &info : all_keys()) {
    if (info.type != KeyType::f64) continue;
    Config config;
    for (const double value : {info.min_f64, info.max_f64}) {
      EXPECT_TRUE(config.set_f64(info.key, value).ok()) << info.name << " " << value;
      EXPECT_EQ(config.f64(info.key), value);
    }
    const double below = std::nextafter(info.min_f64, -kInfinity);
    const double above = std::nextafter(info.max_f64, kInfinity);
    for (const double value : {below, above, -kInfinity, kInfinity, std::nan("")}) {
      const Status status = config.set_f64(info.key, value);
      EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT) << info.name << " " << value;
      EXPECT_NE(std::string(status.text()).find(info.name), std::string::npos);
    }
    EXPECT_EQ(config.f64(info.key), info.max_f64);
    EXPECT_FALSE(config.empty());
    EXPECT_TRUE(config.is_set(info.key));
  }
}

TEST(Config, BetasStayBelowOne) {
  Config config;
  EXPECT_EQ(config.set_f64(ZERO_KEY_BETA1, 1.0).code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_TRUE(config.set_f64(ZERO_KEY_BETA1, std::nextafter(1.0, 0.0)).ok());
}

TEST(Config, NesterovIsZeroOrOne) {
  Config config;
  const Status status = config.set_f64(ZERO_KEY_NESTEROV, 0.5);
  EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_STREQ(status.text(), "ZERO_KEY_NESTEROV is 0.5, but must be 0 or 1");
}

TEST(Config, StringsAreCopiedUpTo4095Bytes) {
  Config config;
  std::string value(4095, 'w');
  EXPECT_TRUE(config.set_str(ZERO_KEY_SHARD_WEIGHTS, value.c_str()).ok());
  EXPECT_EQ(config.str(ZERO_KEY_SHARD_WEIGHTS), value);
  EXPECT_TRUE(config.is_set(ZERO_KEY_SHARD_WEIGHTS));
  EXPECT_FALSE(config.empty());
  value += 'w';
  EXPECT_EQ(config.set_str(ZERO_KEY_SHARD_WEIGHTS, value.c_str()).code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_EQ(config.set_str(ZERO_KEY_SHARD_WEIGHTS, nullptr).code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_EQ(config.str(ZERO_KEY_SHARD_WEIGHTS).size(), 4095U);
}

TEST(Config, AValueOfAnotherTypeIsRefusedWithBothTypesNamed) {
  Config config;
  EXPECT_STREQ(config.set_f64(ZERO_KEY_STAGE, 1).text(), "ZERO_KEY_STAGE is a key of type i64, but was given a value of type f64");
  EXPECT_STREQ(config.set_i64(ZERO_KEY_LR, 1).text(), "ZERO_KEY_LR is a key of type f64, but was given a value of type i64");
  EXPECT_STREQ(config.set_i64(ZERO_KEY_ALGORITHM, 1).text(), "ZERO_KEY_ALGORITHM is a key of type str, but was given a value of type i64");
  EXPECT_EQ(config.set_str(ZERO_KEY_STAGE, "1").code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_TRUE(config.empty());
}

TEST(Config, UnknownKeysAreUnsupportedNotIgnored) {
  Config config;
  for (const int32_t key : {0, -1, 99, 199, 499, 1000, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(config.set_i64(key, 1).code(), ZERO_E_UNSUPPORTED) << key;
    EXPECT_EQ(config.set_f64(key, 1).code(), ZERO_E_UNSUPPORTED) << key;
    EXPECT_EQ(config.set_str(key, "1").code(), ZERO_E_UNSUPPORTED) << key;
  }
  EXPECT_TRUE(config.empty());
}

}  // namespace
}  // namespace zero::config_test
