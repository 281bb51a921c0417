/// @file Sealing models that are cut over ranks: what one half finds wrong reaches the other, and what a model group costs is counted.
#include "group/collectives.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace zero::test::model_group_seal_test {
namespace {

/// 2 data x 2 model: ranks 0 and 2 hold one half of the model, 1 and 3 the other.
struct Half {
  std::shared_ptr<Group> data;
  std::shared_ptr<Group> model;
  std::shared_ptr<Optimizer> optimizer;
};

/// Both halves of the model seal at the same time; what one half finds wrong must not leave the other waiting.
Status seal_half(const std::shared_ptr<Group> &world, const Config &config, const std::vector<int64_t> &shape, Half *out) {
  EXPECT_TRUE(world->queue()->run(split(*world, world->rank() % 2, world->rank(), &out->data)).ok());
  EXPECT_TRUE(world->queue()->run(split(*world, world->rank() / 2, world->rank(), &out->model)).ok());
  EXPECT_TRUE(Optimizer::create(out->data, config, &out->optimizer).ok());
  EXPECT_TRUE(out->optimizer->set_model_group(out->model).ok());
  int64_t id = 0;
  EXPECT_TRUE(out->optimizer->add_param(nullptr, "p", ZERO_DTYPE_F32, shape.data(), std::ssize(shape), &id).ok());
  return out->data->queue()->run(out->optimizer->seal());
}

TEST(ModelGroup, AHalfThatCannotSealTellsTheOther) {
  run_world(4, [](const std::shared_ptr<Group> &world) {
    const bool has_difference = world->rank() % 2 == 0;
    Half mine;
    const Status status = seal_half(world, Config(), {world->rank() == 2 ? 301 : 300}, &mine);
    EXPECT_EQ(status.code(), has_difference ? ZERO_E_MISMATCH : ZERO_E_PEER_FAILED) << status.text();
  });
}

void expect_usable_groups(const std::shared_ptr<Group> &world, const Half &mine) {
  for (const std::shared_ptr<Group> &group : {world, mine.data, mine.model}) {
    const Status status = group->queue()->run(barrier(*group));
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

TEST(ModelGroup, AHalfWhosePlanOrMemoryFailsLeavesAllGroupsUsable) {
  run_world(4, [](const std::shared_ptr<Group> &world) {
    Config config;
    ASSERT_TRUE(config.set_str(ZERO_KEY_ALGORITHM, "muon").ok());
    const bool fails = world->rank() % 2 == 0;
    Half mine;
    const Status status = seal_half(world, config, fails ? std::vector<int64_t>{5, 6, 7} : std::vector<int64_t>{5, 6}, &mine);
    EXPECT_EQ(status.code(), fails ? ZERO_E_UNSUPPORTED : ZERO_E_PEER_FAILED) << status.text();
    expect_usable_groups(world, mine);
  });
  run_world(4, [](const std::shared_ptr<Group> &world) {
    Config config;
    config.hook.alloc = [](uint64_t, uint64_t, void *) -> void * { return nullptr; };
    config.hook.free = [](void *, uint64_t, void *) {};
    if (world->rank() != 2) config.hook = {};
    Half mine;
    const Status status = seal_half(world, config, {2000}, &mine);
    const int32_t expected[] = {ZERO_E_PEER_FAILED, ZERO_OK, ZERO_E_OUT_OF_MEMORY, ZERO_OK};
    EXPECT_EQ(status.code(), expected[world->rank()]) << status.text();
    expect_usable_groups(world, mine);
  });
}

/// Without replicas the votes of the whole model are all there is.
TEST(ModelGroup, ItsMemoryAndVotesAreCounted) {
  run_world(2, [](const std::shared_ptr<Group> &world) {
    std::shared_ptr<Group> alone;
    ASSERT_TRUE(world->queue()->run(split(*world, world->rank(), 0, &alone)).ok());
    MemoryUse staging[2] = {};
    for (const bool cut : {false, true}) {
      std::shared_ptr<Optimizer> optimizer;
      ASSERT_TRUE(Optimizer::create(alone, Config(), &optimizer).ok());
      if (cut) {
        ASSERT_TRUE(optimizer->set_model_group(world).ok());
      }
      int64_t id = 0;
      const int64_t count = 10;
      const std::vector<float> ones(10, 1);
      ASSERT_TRUE(optimizer->add_param(nullptr, "p", ZERO_DTYPE_F32, &count, 1, &id).ok());
      ASSERT_TRUE(alone->queue()->run(optimizer->seal()).ok());
      ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_STAGING, &staging[cut ? 1 : 0]).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)).ok());
      ASSERT_TRUE(optimizer->grad_ready(id, ones.data(), 0, count).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
      EXPECT_EQ(optimizer->traffic(OperationKind::all_reduce).call_count, cut ? 1 : 0);
    }
    EXPECT_EQ(staging[1].now_nbytes - staging[0].now_nbytes, world->staging_nbytes());
  });
}

TEST(ModelGroup, HalvesThatClipDifferentlyAreFoundAtSeal) {
  run_world(4, [](const std::shared_ptr<Group> &world) {
    Config config;
    ASSERT_TRUE(config.set_f64(ZERO_KEY_CLIP_NORM, world->rank() % 2 == 0 ? 1 : 2).ok());
    Half mine;
    EXPECT_EQ(seal_half(world, config, {300}, &mine).code(), ZERO_E_MISMATCH);
  });
  run_world(4, [](const std::shared_ptr<Group> &world) {
    Config config;
    ASSERT_TRUE(config.set_f64(ZERO_KEY_LOSS_SCALE, world->rank() % 2 == 0 ? 16 : 32).ok());
    Half mine;
    EXPECT_EQ(seal_half(world, config, {300}, &mine).code(), ZERO_E_MISMATCH);
  });
}

/// Both would hold the same part of the model, and its norm would count it twice.
TEST(ModelGroup, ReplicasOfOneAnotherAreNoModelGroup) {
  run_world(3, [](const std::shared_ptr<Group> &world) {
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(world, Config(), &optimizer).ok());
    const Status same = optimizer->set_model_group(world);
    EXPECT_EQ(same.code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(same.text(), "is the group of the optimizer itself"), nullptr) << same.text();

    std::shared_ptr<Group> part;  // ranks 1 and 2, and rank 0 alone
    ASSERT_TRUE(world->queue()->run(split(*world, world->rank() == 0 ? 0 : 1, 0, &part)).ok());
    ASSERT_TRUE(optimizer->set_model_group(part).ok());
    int64_t id = 0;
    const int64_t count = 100;
    ASSERT_TRUE(optimizer->add_param(nullptr, "p", ZERO_DTYPE_F32, &count, 1, &id).ok());
    const Status sealed = world->queue()->run(optimizer->seal());
    EXPECT_FALSE(sealed.ok());
    EXPECT_NE(sealed.code(), ZERO_E_TIMEOUT) << sealed.text();
    if (world->rank() == 0) return;
    EXPECT_EQ(sealed.code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(sealed.text(), "ranks 0 and 1 of the model group belong to one group of an optimizer"), nullptr) << sealed.text();
  });
}

}  // namespace
}  // namespace zero::test::model_group_seal_test
