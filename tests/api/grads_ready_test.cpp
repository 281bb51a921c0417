/// @file Passes gradients of many parameters in one call: the results have the bits of single
/// calls, and a call that fails stops at its first bad entry. Knows only the public API.
#include "api_world.h"
#include "tests/group/thread_ranks.h"

#include <unistd.h>

#include <numeric>
#include <vector>

namespace zero::test::grads_ready_test {
namespace {

constexpr int64_t kRanks = 3;
constexpr int64_t kSteps = 3;
constexpr int64_t kTied = 4;  // tied to parameter 0
const std::vector<int64_t> kCounts = {600, 0, 7, 1031, 600, 1};

enum class Calls { single, bulk, bulk_acquired };

zero_config *new_config(int32_t key, int64_t value) {
  zero_config *config = nullptr;
  ZERO_EXPECT_OK(zero_config_create(&config));
  ZERO_EXPECT_OK(zero_config_set_i64(config, key, value));
  return config;
}

/// An optimizer after begin, with parameters that are zero.
zero_optimizer *new_optimizer(zero_group *group, int64_t stage) {
  zero_config *config = new_config(ZERO_KEY_STAGE, stage);
  ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_BUCKET_BYTES, 1024));
  zero_optimizer *optimizer = nullptr;
  ZERO_EXPECT_OK(zero_optimizer_create(group, config, &optimizer));
  zero_config_release(config);
  zero_config *tied = new_config(ZERO_KEY_TIED_TO, 0);
  for (int64_t id = 0; id < std::ssize(kCounts); ++id) {
    int64_t given = -1;
    const std::string name = "p" + std::to_string(id);
    ZERO_EXPECT_OK(zero_optimizer_add_param(optimizer, id == kTied ? tied : nullptr, name.c_str(), ZERO_DTYPE_F32,
                                            &kCounts[static_cast<size_t>(id)], 1, &given));
  }
  zero_config_release(tied);
  ZERO_EXPECT_OK(zero_optimizer_seal(optimizer));
  ZERO_EXPECT_OK(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  return optimizer;
}

std::vector<float> gradient(int64_t rank, int64_t step, int64_t id) {
  std::vector<float> values(static_cast<size_t>(kCounts[static_cast<size_t>(id)]));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((static_cast<int64_t>(i) * 131 + id * 31 + step * 17 + rank * 7) % 257 - 128) / 100;
  }
  return values;
}

/// Copies a gradient into the optimizer's memory. In a call, NULL stands for such a gradient.
const void *place(zero_optimizer *optimizer, int64_t id, const std::vector<float> &values) {
  void *data = nullptr;
  int64_t accumulate = -1;
  ZERO_EXPECT_OK(zero_optimizer_grad_acquire(optimizer, id, nullptr, &data, &accumulate));
  EXPECT_EQ(0, accumulate);
  if (!values.empty()) std::memcpy(data, values.data(), values.size() * sizeof(float));
  return nullptr;
}

/// Passes all gradients of a step, the last tensor first. A tied tensor may be acquired under one
/// name only.
void give_gradients(zero_optimizer *optimizer, int64_t rank, int64_t step, Calls calls) {
  std::vector<int64_t> ids(kCounts.size());
  std::iota(ids.rbegin(), ids.rend(), 0);
  std::vector<std::vector<float>> values;
  std::vector<const void *> grads;
  for (const int64_t id : ids) {
    values.push_back(gradient(rank, step, id));
    const bool acquired = calls == Calls::bulk_acquired && id != kTied && id != 0 && (id + step) % 2 == 0;
    grads.push_back(acquired ? place(optimizer, id, values.back()) : values.back().data());
  }
  if (calls != Calls::single) {
    ZERO_EXPECT_OK(zero_optimizer_grads_ready(optimizer, ids.data(), std::ssize(ids), grads.data(), nullptr));
    return;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    ZERO_EXPECT_OK(zero_optimizer_grad_ready(optimizer, ids[i], grads[i], 0, std::ssize(values[i]), nullptr));
  }
}

std::vector<float> read_params(zero_optimizer *optimizer) {
  std::vector<float> all;
  for (int64_t id = 0; id < std::ssize(kCounts); ++id) {
    std::vector<float> values(static_cast<size_t>(kCounts[static_cast<size_t>(id)]));
    ZERO_EXPECT_OK(zero_optimizer_read(optimizer, id, ZERO_SLOT_PARAM, 0, values.data(), std::ssize(values), nullptr));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<float> train(int64_t stage, Calls calls) {
  static int64_t worlds = 0;
  const std::string name = "grads_ready." + std::to_string(::getpid()) + "." + std::to_string(++worlds);
  std::vector<std::vector<float>> params(kRanks);
  run_thread_ranks(kRanks, [&](int64_t rank) {
    zero_group *group = nullptr;
    ZERO_EXPECT_OK(zero_group_create_local(name.c_str(), rank, kRanks, nullptr, &group));
    zero_optimizer *optimizer = new_optimizer(group, stage);
    for (int64_t step = 0; step < kSteps; ++step) {
      zero_step_result result;
      ZERO_EXPECT_OK(zero_step_result_init(&result, sizeof result));
      give_gradients(optimizer, rank, step, calls);
      ZERO_EXPECT_OK(zero_optimizer_step(optimizer, nullptr, &result));
      EXPECT_EQ(0, result.unfilled_count);
    }
    params[static_cast<size_t>(rank)] = read_params(optimizer);
    zero_optimizer_release(optimizer);
    zero_group_release(group);
  });
  for (const std::vector<float> &one : params) EXPECT_EQ(one, params[0]);
  return params[0];
}

class GradsReady : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, GradsReady, testing::Range<int64_t>(0, 4));

TEST_P(GradsReady, HasTheBitsOfSingleCalls) {
  const std::vector<float> expected = train(GetParam(), Calls::single);
  EXPECT_NE(expected, std::vector<float>(expected.size(), 0.0F));
  EXPECT_EQ(expected, train(GetParam(), Calls::bulk));
  EXPECT_EQ(expected, train(GetParam(), Calls::bulk_acquired));
}

class GradsReadyAlone : public testing::TestWithParam<int64_t> {
 protected:
  ~GradsReadyAlone() override {
    zero_optimizer_release(optimizer);
    zero_group_release(group);
  }

  int32_t give(const std::vector<int64_t> &ids, const std::vector<const void *> &grads) {
    return zero_optimizer_grads_ready(optimizer, ids.data(), std::ssize(ids), grads.empty() ? nullptr : grads.data(), nullptr);
  }

  /// Makes a step and returns the number of its elements without a gradient.
  int64_t unfilled() {
    zero_step_result result;
    ZERO_EXPECT_OK(zero_step_result_init(&result, sizeof result));
    ZERO_EXPECT_OK(zero_optimizer_step(optimizer, nullptr, &result));
    return result.unfilled_count;
  }

  zero_group *group = solo_group();
  zero_optimizer *optimizer = new_optimizer(group, GetParam());
  std::vector<float> ones = std::vector<float>(1031, 1.0F);
};
INSTANTIATE_TEST_SUITE_P(Stage, GradsReadyAlone, testing::Range<int64_t>(0, 4));

constexpr int64_t kWhole = 600 + 7 + 1031 + 1;

TEST_P(GradsReadyAlone, EndsAtTheFirstErrorAndNamesItsPosition) {
  const void *one = ones.data();
  EXPECT_TRUE(failed_with(give({3, 6, 2}, {one, one, one}), ZERO_E_INVALID_ARGUMENT, "ids[1] is 6: "));
  EXPECT_TRUE(failed_with(give({3}, {one}), ZERO_E_STATE, "ids[0] is 3: "));  // ready since the failed call
  ZERO_EXPECT_OK(give({2}, {one}));                                           // not reached by that call
  EXPECT_EQ(unfilled(), kWhole - 1031 - 7);
}

TEST_P(GradsReadyAlone, NoParameterOccursTwice) {
  const void *one = ones.data();
  EXPECT_TRUE(failed_with(give({2, 5, 2}, {one, one, one}), ZERO_E_STATE, "ids[2] is 2: "));
  EXPECT_EQ(unfilled(), kWhole - 7 - 1);
}

TEST_P(GradsReadyAlone, WithoutAddressesAllAreAcquired) {
  EXPECT_TRUE(failed_with(give({2}, {}), ZERO_E_STATE, "zero_optimizer_grad_acquire"));
  for (const int64_t id : {2, 5}) place(optimizer, id, std::vector<float>(static_cast<size_t>(kCounts[static_cast<size_t>(id)]), 1.0F));
  EXPECT_TRUE(failed_with(give({2, 3, 5}, {}), ZERO_E_STATE, "ids[1] is 3: "));
  ZERO_EXPECT_OK(give({5}, {}));
  EXPECT_EQ(unfilled(), kWhole - 7 - 1);
}

TEST_P(GradsReadyAlone, NoneIsAllowed) {
  ZERO_EXPECT_OK(give({}, {}));
  ZERO_EXPECT_OK(zero_optimizer_grads_ready(optimizer, nullptr, 0, nullptr, nullptr));
  EXPECT_EQ(unfilled(), kWhole);
}

TEST_P(GradsReadyAlone, NamesOfATiedTensorAreAddedUp) {
  ZERO_EXPECT_OK(give({kTied, 0}, {ones.data(), ones.data()}));
  ZERO_EXPECT_OK(zero_optimizer_reduce(optimizer, nullptr, nullptr));
  std::vector<float> sums(600);
  ZERO_EXPECT_OK(zero_optimizer_read(optimizer, 0, ZERO_SLOT_GRAD, 0, sums.data(), 600, nullptr));
  EXPECT_EQ(sums, std::vector<float>(600, 2.0F));
}

}  // namespace
}  // namespace zero::test::grads_ready_test
