/// @file First values by initialisers: the same bits however a tensor is cut, and nothing beyond a rank's own part filled.
#include "kernels/initialise.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace zero::test::init_param_test {
namespace {

constexpr int64_t kSeed = 4711;
const std::vector<int64_t> kCounts = {4096, 100, 0, 3001, 255, 20'000};

struct Initial {
  int32_t initialiser;
  double a;
  double b;
};

/// Tensor i begins in its own way.
Initial initial_of(int64_t id) {
  static constexpr Initial kInitials[] = {{ZERO_INITIALISER_NORMAL, 0.25, 0.02}, {ZERO_INITIALISER_CONSTANT, 1.5, 0},
                                          {ZERO_INITIALISER_UNIFORM, -0.5, 0.5}, {ZERO_INITIALISER_UNIFORM, -0.0883, 0.0883},
                                          {ZERO_INITIALISER_NORMAL, 0, 1},       {ZERO_INITIALISER_NORMAL, 0, 0.02}};
  return kInitials[id];
}

/// The whole tensor at once, without an optimizer.
std::vector<float> expected_values(int64_t id) {
  std::vector<float> values(static_cast<size_t>(kCounts[static_cast<size_t>(id)]));
  const Initial initial = initial_of(id);
  kernels::initialise(values.data(), std::ssize(values), static_cast<kernels::Initialiser>(initial.initialiser), initial.a, initial.b,
                      kSeed, static_cast<uint64_t>(id), 0);
  return values;
}

std::vector<std::byte> read_bytes(Optimizer &optimizer, int64_t id, int32_t slot, DType dtype) {
  const int64_t count = kCounts[static_cast<size_t>(id)];
  std::vector<std::byte> bytes(static_cast<size_t>(count * dtype_nbytes(dtype)));
  EXPECT_TRUE(optimizer.queue()->run(optimizer.read(id, slot, 0, bytes.data(), count)).ok());
  return bytes;
}

bool same_bits(const std::vector<std::byte> &bytes, const std::vector<float> &values) {
  return bytes.size() == values.size() * sizeof(float) && (values.empty() || std::memcmp(bytes.data(), values.data(), bytes.size()) == 0);
}

/// Parameter and master of one tensor against the whole tensor's values; every rank also sees them through its address.
void expect_values(Optimizer &optimizer, const Recipe &recipe, int64_t id) {
  const std::vector<float> expected = expected_values(id);
  const std::vector<std::byte> param = read_bytes(optimizer, id, ZERO_SLOT_PARAM, recipe.dtype);
  const bool has_master = recipe.dtype != DType::f32 && recipe.master != ZERO_MASTER_NONE;
  if (has_master && recipe.master == ZERO_MASTER_REMAINDER) {
    const std::vector<std::byte> rest = read_bytes(optimizer, id, ZERO_SLOT_MASTER, DType::u16);
    std::vector<float> joined(expected.size());
    kernels::supported().front()->join(joined.data(), reinterpret_cast<const uint16_t *>(param.data()),
                                       reinterpret_cast<const uint16_t *>(rest.data()), std::ssize(joined));
    EXPECT_EQ(differing(joined, expected), 0) << id;
  } else {
    EXPECT_EQ(param, encode(expected, recipe.dtype)) << id;
    EXPECT_TRUE(!has_master || same_bits(read_bytes(optimizer, id, ZERO_SLOT_MASTER, DType::f32), expected)) << id;
  }
  void *data = nullptr;
  ASSERT_TRUE(optimizer.queue()->run(optimizer.param_acquire(id, nullptr, 0, &data)).ok());
  EXPECT_TRUE(param.empty() || std::memcmp(data, param.data(), param.size()) == 0) << id;
  EXPECT_TRUE(optimizer.param_release(id).ok());
}

void init_all(Optimizer &optimizer) {
  for (int64_t id = 0; id < std::ssize(kCounts); ++id) {
    const Initial initial = initial_of(id);
    const Status status = optimizer.init_param(id, initial.initialiser, initial.a, initial.b, kSeed);
    ASSERT_TRUE(status.ok()) << status.text();
  }
}

void expect_initialised(const std::shared_ptr<Group> &group, const Recipe &recipe, const Manner &manner) {
  Model model;
  model.ranks = group->size();
  model.counts = kCounts;
  model.recipe = recipe;
  const std::shared_ptr<Optimizer> optimizer = make_optimizer(group, model, manner);
  ASSERT_NE(optimizer, nullptr);
  init_all(*optimizer);
  ASSERT_TRUE(optimizer->queue()->run(optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
  MemoryUse pool{};
  ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_PARAM_POOL, &pool).ok());
  EXPECT_EQ(pool.peak_nbytes, 0) << "a whole tensor was made";
  for (int64_t id = 0; id < std::ssize(kCounts); ++id) expect_values(*optimizer, recipe, id);
  // Again, after a step has changed everything.
  train_step(*optimizer, model, manner, 0);
  init_all(*optimizer);
  ASSERT_TRUE(optimizer->queue()->run(optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
  for (int64_t id = 0; id < std::ssize(kCounts); ++id) expect_values(*optimizer, recipe, id);
}

TEST(Initialisers, GiveTheSameBitsAtAnyWorldSizeStageAndWeights) {
  struct Storage {
    DType dtype;
    int64_t master;
  };
  constexpr Storage kStorages[] = {{DType::f32, ZERO_MASTER_F32},        {DType::bf16, ZERO_MASTER_F32}, {DType::bf16, ZERO_MASTER_NONE},
                                   {DType::bf16, ZERO_MASTER_REMAINDER}, {DType::f16, ZERO_MASTER_F32},  {DType::f16, ZERO_MASTER_NONE}};
  Every every(5);
  int64_t runs = 0;
  for (const int64_t ranks : {1, 2, 3, 8}) {
    for (const Storage &storage : kStorages) {
      for (int64_t stage = 0; stage < 4; ++stage) {
        if (!every.next()) continue;
        Recipe recipe;
        recipe.dtype = storage.dtype;
        recipe.master = storage.master;
        recipe.frozen_every = storage.dtype == DType::f32 ? 5 : 0;  // what is frozen has no master
        recipe.gather_below = stage == 3 ? 200 : 0;
        Manner manner;
        manner.stage = stage;
        manner.bucket_nbytes = 16'384;
        manner.threads = stage % 2 + 1;
        const bool weighted = (stage + storage.master) % 2 == 1;
        if (weighted) manner.shard_weights = std::string("3,1,2,0,1,1,1,5").substr(0, static_cast<size_t>(2 * ranks - 1));
        SCOPED_TRACE(manner.text() + recipe.text());
        run_world(ranks, [&](const std::shared_ptr<Group> &group) { expect_initialised(group, recipe, manner); });
        ++runs;
      }
    }
  }
  std::printf("combinations of world size, stage and storage: %lld\n", static_cast<long long>(runs));
}

class BadInitialisers : public testing::Test {
 protected:
  void expect(int64_t id, int32_t initialiser, double a, double b, int32_t code, const char *named) {
    const Status status = optimizer->init_param(id, initialiser, a, b, 1);
    EXPECT_EQ(status.code(), code) << status.text();
    EXPECT_NE(std::string(status.text()).find(named), std::string::npos) << status.text();
  }
  std::shared_ptr<Optimizer> optimizer;
};

TEST_F(BadInitialisers, AreErrorsWithTheReason) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    Model model;
    model.counts = {10, 20, 10};
    model.recipe.dtype = DType::f16;
    model.recipe.tied = true;
    optimizer = make_optimizer(group, model, Manner{});
    expect(3, 0, 0, 0, ZERO_E_INVALID_ARGUMENT, "id is 3");
    expect(0, 3, 0, 0, ZERO_E_INVALID_ARGUMENT, "initialiser is 3");
    expect(0, -1, 0, 0, ZERO_E_INVALID_ARGUMENT, "initialiser is -1");
    expect(0, ZERO_INITIALISER_CONSTANT, kNan, 0, ZERO_E_INVALID_ARGUMENT, "a is nan");
    expect(0, ZERO_INITIALISER_CONSTANT, 0, kNan, ZERO_E_INVALID_ARGUMENT, "b nan");
    expect(0, ZERO_INITIALISER_UNIFORM, -kInfinity, 0, ZERO_E_INVALID_ARGUMENT, "a is -inf");
    expect(0, ZERO_INITIALISER_UNIFORM, 1, 0.1, ZERO_E_INVALID_ARGUMENT, "a is 1 and b 0.1, ");
    expect(0, ZERO_INITIALISER_NORMAL, 0, -1, ZERO_E_INVALID_ARGUMENT, "deviation");
    expect(0, ZERO_INITIALISER_CONSTANT, 65'505, 0, ZERO_E_INVALID_ARGUMENT, "65504");
    expect(0, ZERO_INITIALISER_NORMAL, 0, 8000, ZERO_E_INVALID_ARGUMENT, "65504");
    expect(2, ZERO_INITIALISER_CONSTANT, 1, 0, ZERO_E_INVALID_ARGUMENT, "\"p2\" is another name of \"p0\"");
    EXPECT_TRUE(optimizer->init_param(0, ZERO_INITIALISER_CONSTANT, 65'504, 0, 1).ok());
    std::shared_ptr<Optimizer> building;
    ASSERT_TRUE(Optimizer::create(group, Config(), &building).ok());
    EXPECT_EQ(building->init_param(0, ZERO_INITIALISER_CONSTANT, 0, 0, 1).code(), ZERO_E_STATE);
    optimizer.reset();
  });
}

}  // namespace
}  // namespace zero::test::init_param_test
