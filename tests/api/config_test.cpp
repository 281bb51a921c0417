/// @file zero/config.h.
#include "api_world.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

namespace zero::test::config_test {
namespace {

/// Every key that the library knows.
std::vector<int32_t> known_keys() {
  std::vector<int32_t> keys;
  zero_key_bounds bounds;
  EXPECT_EQ(ZERO_OK, zero_key_bounds_init(&bounds, sizeof bounds));
  for (int32_t key = 0; key < 1000; ++key) {
    if (zero_config_bounds(key, &bounds) == ZERO_OK) keys.push_back(key);
  }
  return keys;
}

zero_key_bounds bounds_of(int32_t key) {
  zero_key_bounds bounds;
  EXPECT_EQ(ZERO_OK, zero_key_bounds_init(&bounds, sizeof bounds));
  EXPECT_EQ(ZERO_OK, zero_config_bounds(key, &bounds)) << last_text();
  return bounds;
}

class Config : public testing::Test {
 protected:
  void SetUp() override { ZERO_ASSERT_OK(zero_config_create(&config)); }
  void TearDown() override { zero_config_release(config); }
  zero_config *config = nullptr;
};

TEST_F(Config, BoundsAreInclusiveAndEnforced) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<int32_t> keys = known_keys();
  EXPECT_EQ(ZERO_KEY_SERVER_PERIOD, keys.empty() ? 0 : keys.back());
  for (const int32_t key : keys) {
    SCOPED_TRACE(key);
    const zero_key_bounds bounds = bounds_of(key);
    EXPECT_EQ(sizeof bounds, bounds.struct_size);
    if (key >= ZERO_KEY_STEP_COUNT && key <= ZERO_KEY_OVERFLOW_COUNT) {
      EXPECT_TRUE(failed_with(zero_config_set_i64(config, key, bounds.min_i64), ZERO_E_UNSUPPORTED, "running optimizer"));
    } else if (bounds.type == 1) {
      ZERO_EXPECT_OK(zero_config_set_i64(config, key, bounds.min_i64));
      ZERO_EXPECT_OK(zero_config_set_i64(config, key, bounds.max_i64));
      ZERO_EXPECT_OK(zero_config_set_i64(config, key, bounds.default_i64));
      EXPECT_TRUE(
          failed_with(zero_config_set_i64(config, key, bounds.min_i64 - 1), ZERO_E_INVALID_ARGUMENT, std::to_string(bounds.min_i64 - 1)));
      EXPECT_TRUE(
          failed_with(zero_config_set_i64(config, key, bounds.max_i64 + 1), ZERO_E_INVALID_ARGUMENT, std::to_string(bounds.max_i64 + 1)));
    } else if (bounds.type == 2) {
      ZERO_EXPECT_OK(zero_config_set_f64(config, key, bounds.min_f64));
      ZERO_EXPECT_OK(zero_config_set_f64(config, key, bounds.max_f64));
      ZERO_EXPECT_OK(zero_config_set_f64(config, key, bounds.default_f64));
      for (const double bad :
           {std::nextafter(bounds.min_f64, -infinity), std::nextafter(bounds.max_f64, infinity), std::nan(""), -infinity, infinity}) {
        EXPECT_TRUE(failed_with(zero_config_set_f64(config, key, bad), ZERO_E_INVALID_ARGUMENT, "must be in")) << bad;
      }
    } else {
      EXPECT_EQ(3, bounds.type);
      ZERO_EXPECT_OK(zero_config_set_str(config, key, ""));
      ZERO_EXPECT_OK(zero_config_set_str(config, key, std::string(4095, 'x').c_str()));
      EXPECT_TRUE(failed_with(zero_config_set_str(config, key, std::string(4096, 'x').c_str()), ZERO_E_INVALID_ARGUMENT, "4095"));
    }
  }
  std::printf("keys = %zu\n", keys.size());
}

TEST_F(Config, AKeyOfAnotherTypeIsAnError) {
  EXPECT_TRUE(failed_with(zero_config_set_i64(config, ZERO_KEY_LR, 1), ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_LR is a key of type f64"));
  EXPECT_TRUE(failed_with(zero_config_set_f64(config, ZERO_KEY_ALGORITHM, 1), ZERO_E_INVALID_ARGUMENT, "of type str"));
  EXPECT_TRUE(failed_with(zero_config_set_str(config, ZERO_KEY_STAGE, "1"), ZERO_E_INVALID_ARGUMENT, "of type i64"));
}

TEST_F(Config, UnknownKeysAreNeverIgnored) {
  for (const int32_t key : {0, -1, 99, 110, 604, 999, INT32_MAX, INT32_MIN}) {
    const std::string named = "key " + std::to_string(key);
    EXPECT_TRUE(failed_with(zero_config_set_i64(config, key, 0), ZERO_E_UNSUPPORTED, named));
    EXPECT_TRUE(failed_with(zero_config_set_f64(config, key, 0), ZERO_E_UNSUPPORTED, named));
    EXPECT_TRUE(failed_with(zero_config_set_str(config, key, ""), ZERO_E_UNSUPPORTED, named));
    zero_key_bounds bounds;
    ZERO_EXPECT_OK(zero_key_bounds_init(&bounds, sizeof bounds));
    EXPECT_TRUE(failed_with(zero_config_bounds(key, &bounds), ZERO_E_UNSUPPORTED, named));
    EXPECT_EQ(0, bounds.type);
  }
}

TEST_F(Config, NesterovIsZeroOrOne) {
  EXPECT_TRUE(failed_with(zero_config_set_f64(config, ZERO_KEY_NESTEROV, 0.5), ZERO_E_INVALID_ARGUMENT, "0.5"));
}

/// Hyper-parameters of every algorithm as zero/config.h states them; kNone: the algorithm has no
/// such one.
TEST(Hyperparameters, BeginWithTheDefaultsThatTheManualStates) {
  constexpr double kNone = -1;
  const struct {
    const char *algorithm;
    double defaults[12];  // by key, from ZERO_KEY_LR to ZERO_KEY_AVERAGE_DECAY
  } rows[] = {
      // lr, momentum, dampening, nesterov, beta1, beta2, epsilon, weight_decay, lr_decay,
      // initial_accumulator, newton_schulz_steps, average
      {"sgd", {1e-3, 0, 0, 0, kNone, kNone, kNone, 0, kNone, kNone, kNone, 0.999}},
      {"adam", {1e-3, kNone, kNone, kNone, 0.9, 0.999, 1e-8, 0, kNone, kNone, kNone, 0.999}},
      {"adamw", {1e-3, kNone, kNone, kNone, 0.9, 0.999, 1e-8, 0.01, kNone, kNone, kNone, 0.999}},
      {"adagrad", {1e-2, kNone, kNone, kNone, kNone, kNone, 1e-10, 0, 0, 0, kNone, 0.999}},
      {"lion", {1e-4, kNone, kNone, kNone, 0.9, 0.99, kNone, 0, kNone, kNone, kNone, 0.999}},
      {"lamb", {1e-3, kNone, kNone, kNone, 0.9, 0.999, 1e-6, 0.01, kNone, kNone, kNone, 0.999}},
      {"muon", {1e-3, 0.95, kNone, 1, kNone, kNone, 1e-7, 0.1, kNone, kNone, 5, 0.999}},
      {"custom", {1e-3, 0, 0, 0, 0.9, 0.999, 1e-8, 0, 0, 0, 5, 0.999}},
  };
  zero_group *group = solo_group();
  for (const auto &row : rows) {
    zero_config *config = nullptr;
    zero_optimizer *optimizer = nullptr;
    ZERO_ASSERT_OK(zero_config_create(&config));
    ZERO_ASSERT_OK(zero_config_set_str(config, ZERO_KEY_ALGORITHM, row.algorithm));
    ZERO_ASSERT_OK(zero_optimizer_create(group, config, &optimizer));
    for (int32_t i = 0; i < 12; ++i) {
      double value = kNone;
      const int32_t status = zero_optimizer_get_f64(optimizer, 0, ZERO_KEY_LR + i, &value);
      EXPECT_EQ(row.defaults[i] == kNone ? ZERO_E_UNSUPPORTED : ZERO_OK, status) << row.algorithm << ", key " << ZERO_KEY_LR + i;
      EXPECT_EQ(row.defaults[i], value) << row.algorithm << ", key " << ZERO_KEY_LR + i;
    }
    zero_optimizer_release(optimizer);
    zero_config_release(config);
  }
  zero_group_release(group);
}

void *hook_alloc(uint64_t, uint64_t, void *) { return nullptr; }
void hook_free(void *, uint64_t, void *) {}

TEST_F(Config, AHookHasBothOrNeither) {
  EXPECT_TRUE(
      failed_with(zero_config_set_allocator(config, hook_alloc, nullptr, nullptr, nullptr), ZERO_E_INVALID_ARGUMENT, "free_fn is NULL"));
  EXPECT_TRUE(
      failed_with(zero_config_set_allocator(config, nullptr, hook_free, nullptr, nullptr), ZERO_E_INVALID_ARGUMENT, "alloc is NULL"));
  ZERO_EXPECT_OK(zero_config_set_allocator(config, hook_alloc, hook_free, nullptr, nullptr));
  ZERO_EXPECT_OK(zero_config_set_allocator(config, nullptr, nullptr, nullptr, nullptr));
}

/// An older and a newer caller's idea of a struct: never more is written than it says.
TEST_F(Config, ResultStructsAreWrittenUpToTheCallersSize) {
  struct Newer {
    zero_key_bounds known;
    uint64_t appended;
    uint64_t guard;
  };
  Newer newer;
  newer.guard = 0xa5a5a5a5a5a5a5a5;
  newer.appended = 1;
  ZERO_ASSERT_OK(zero_key_bounds_init(&newer.known, sizeof(zero_key_bounds) + 8));
  EXPECT_EQ(0U, newer.appended);
  ZERO_ASSERT_OK(zero_config_bounds(ZERO_KEY_STAGE, &newer.known));
  EXPECT_EQ(sizeof(zero_key_bounds) + 8, newer.known.struct_size);
  EXPECT_EQ(3, newer.known.max_i64);
  EXPECT_EQ(0U, newer.appended);
  EXPECT_EQ(0xa5a5a5a5a5a5a5a5, newer.guard);
}

TEST_F(Config, StructsOfAnotherSizeAreRejected) {
  for (const uint64_t nbytes : {uint64_t{0}, uint64_t{8}, uint64_t{56}, uint64_t{65}, uint64_t{4104}, ~uint64_t{0}}) {
    zero_key_bounds bounds;
    std::memset(static_cast<void *>(&bounds), 0x5a, sizeof bounds);
    const zero_key_bounds before = bounds;
    EXPECT_TRUE(failed_with(zero_key_bounds_init(&bounds, nbytes), ZERO_E_INVALID_ARGUMENT, std::to_string(nbytes)));
    EXPECT_EQ(0, std::memcmp(&before, &bounds, sizeof bounds));
    bounds.struct_size = nbytes;
    EXPECT_TRUE(failed_with(zero_config_bounds(ZERO_KEY_STAGE, &bounds), ZERO_E_INVALID_ARGUMENT, std::to_string(nbytes)));
    EXPECT_EQ(before.type, bounds.type);
  }
}

/// Here because no other test of this program loads the module.
TEST(Library, AModuleThatCannotBeLoadedIsAnAnswerAndNoError) {
  ::setenv("ZERO_MPI_MODULE", "/no/such/module.so", 1);
  ::setenv("ZERO_CUDA_MODULE", "/no/such/devices.so", 1);
  ::setenv("ZERO_NCCL_MODULE", "/no/such/nccl.so", 1);
  zero_config_release(reinterpret_cast<zero_config *>(uintptr_t{2}));
  const std::string before = last_text();
  EXPECT_EQ(zero_has_feature(ZERO_FEATURE_MPI), 0);
  EXPECT_EQ(zero_has_feature(ZERO_FEATURE_CUDA), 0);
  EXPECT_EQ(zero_has_feature(ZERO_FEATURE_NCCL), 0);
  EXPECT_EQ(last_text(), before);
  std::array<char, 4096> text{};
  ZERO_EXPECT_OK(zero_describe_library(text.data(), static_cast<int64_t>(text.size()), nullptr));
  EXPECT_NE(std::string(text.data()).find("MPI module: not loaded: "), std::string::npos) << text.data();
  EXPECT_NE(std::string(text.data()).find("/no/such/module.so"), std::string::npos) << text.data();
  EXPECT_NE(std::string(text.data()).find("; bytes in quarantine: 0\n"), std::string::npos) << text.data();
  EXPECT_NE(std::string(text.data()).find("CUDA module: not loaded: "), std::string::npos) << text.data();
  EXPECT_NE(std::string(text.data()).find("NCCL module: not loaded: "), std::string::npos) << text.data();
  EXPECT_NE(std::string(text.data()).find("/no/such/devices.so"), std::string::npos) << text.data();
}

}  // namespace
}  // namespace zero::test::config_test
