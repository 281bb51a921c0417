/// @file Every exported function, every argument, misused: the right code, a text that names what
/// was given, outputs untouched, no crash.
#include "misuse.h"

#include <unistd.h>

#include <fstream>
#include <random>
#include <set>

namespace zero::test::misuse_test {
namespace {

std::set<std::string> exported_functions() {
  std::set<std::string> names;
  std::ifstream file(ZERO_SYMBOLS_FILE);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') names.insert(line.substr(0, line.find(' ')));
  }
  return names;
}

TEST(Misuse, EveryArgumentOfEveryFunctionIsChecked) {
  Rows rows;
  add_config_rows(rows);
  add_group_rows(rows);
  add_buffer_rows(rows);
  add_optimizer_rows(rows);
  add_training_rows(rows);
  add_checkpoint_rows(rows);
  add_save_rows(rows);
  add_server_rows(rows);
  add_stats_rows(rows);
  add_other_rows(rows);

  Bench bench;
  std::set<std::string> covered;
  for (const Row &row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(covered.insert(row.name).second) << "two rows";
    row.run(bench);
  }
  const std::set<std::string> exported = exported_functions();
  std::printf("functions covered = %zu, functions exported = %zu, misuses = %lld, judged wrong = %lld\n", covered.size(), exported.size(),
              static_cast<long long>(bench.calls), static_cast<long long>(bench.failures));
  EXPECT_EQ(exported, covered);

  // After all that the objects still work.
  ZERO_EXPECT_OK(zero_group_barrier(bench.world.group));
  ZERO_EXPECT_OK(zero_group_status(bench.pair.rank[0]));
  ZERO_EXPECT_OK(zero_buffer_write(bench.world.buffer, 0, bench.data, World::kCount, nullptr));
  ZERO_EXPECT_OK(zero_optimizer_step(bench.world.running, nullptr, nullptr));
}

TEST(Misuse, RandomHandlesAreAlwaysTurnedAway) {
  World world;
  std::mt19937_64 random(4711);
  int64_t lookups = 0;
  for (; lookups < 1'000'000; ++lookups) {
    const uint64_t word = random();
    int64_t out = -7;
    ASSERT_EQ(ZERO_E_BAD_HANDLE, zero_group_rank(reinterpret_cast<zero_group *>(static_cast<uintptr_t>(word)), &out)) << word;
    ASSERT_EQ(-7, out);
  }
  std::printf("random handles = %lld\n", static_cast<long long>(lookups));
}

class WrongState : public testing::Test {
 protected:
  World world;
  float data[World::kCount] = {};
  void *address = &world;
  int64_t number = -7;
};

TEST_F(WrongState, BeforeSealOnlyBuildingWorks) {
  zero_optimizer *optimizer = world.building;
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_step(optimizer, nullptr, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_reduce(optimizer, nullptr, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_apply(optimizer, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_gather(optimizer, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_param_acquire(optimizer, 0, nullptr, 0, nullptr, &address)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_param_release(optimizer, 0)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_grad_acquire(optimizer, 0, nullptr, &address, &number)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_grad_ready(optimizer, 0, data, 0, World::kCount, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_grads_ready(optimizer, nullptr, 0, nullptr, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_view_count(optimizer, &number)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_read(optimizer, 0, ZERO_SLOT_PARAM, 0, data, 1, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_write(optimizer, 0, ZERO_SLOT_PARAM, 0, data, 1, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_micro_step(optimizer, ZERO_MICRO_STEP_LAST, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_init_param(optimizer, 0, ZERO_INITIALISER_CONSTANT, 0, 0, 0)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_module_buffer(optimizer, 0, &address, &number)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_sync_module_buffers(optimizer, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_slot_count(optimizer, 0, &number)) << last_text();
  EXPECT_EQ(&world, address);
  EXPECT_EQ(-7, number);
}

TEST_F(WrongState, AfterSealNothingIsAdded) {
  const int64_t shape = 1;
  const int64_t order = 0;
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_add_param(world.running, nullptr, "late", ZERO_DTYPE_F32, &shape, 1, &number)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_set_order(world.running, &order, 1)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_add_set(world.running, nullptr, &number)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_set_model_group(world.running, world.group)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_set_gather_order(world.running, &order, 1)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_add_module_buffer(world.running, "late", ZERO_DTYPE_F32, &shape, 1, ZERO_SYNC_NONE, &number))
      << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_seal(world.running)) << last_text();
  EXPECT_EQ(-7, number);
}

TEST_F(WrongState, AStepNeedsBegin) {
  zero_optimizer *sealed = world.new_optimizer();
  ZERO_ASSERT_OK(zero_optimizer_seal(sealed));
  EXPECT_TRUE(failed_with(zero_optimizer_step(sealed, nullptr, nullptr), ZERO_E_STATE, "begin"));
  EXPECT_TRUE(failed_with(zero_optimizer_reduce(sealed, nullptr, nullptr), ZERO_E_STATE, "begin"));
  zero_optimizer_release(sealed);
}

TEST_F(WrongState, SplitStepsKeepTheirOrder) {
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_apply(world.running, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_gather(world.running, nullptr)) << last_text();
  ZERO_ASSERT_OK(zero_optimizer_reduce(world.running, nullptr, nullptr));
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_reduce(world.running, nullptr, nullptr)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_step(world.running, nullptr, nullptr)) << last_text();
  ZERO_ASSERT_OK(zero_optimizer_apply(world.running, nullptr));
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_apply(world.running, nullptr)) << last_text();
  ZERO_ASSERT_OK(zero_optimizer_gather(world.running, nullptr));
}

TEST_F(WrongState, WhatIsNotAcquiredCannotBeReleased) {
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_param_release(world.running, 0)) << last_text();
  EXPECT_EQ(ZERO_E_STATE, zero_buffer_whole_release(world.buffer)) << last_text();
  void *whole = nullptr;
  ZERO_ASSERT_OK(zero_buffer_whole_acquire(world.buffer, nullptr, &whole));
  EXPECT_EQ(ZERO_E_STATE, zero_buffer_whole_acquire(world.buffer, nullptr, &address)) << last_text();
  EXPECT_EQ(&world, address);
  ZERO_EXPECT_OK(zero_buffer_whole_release(world.buffer));
}

TEST_F(WrongState, GradientsBecomeReadyOnce) {
  ZERO_ASSERT_OK(zero_optimizer_grad_ready(world.running, 0, data, 0, 4, nullptr));
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_grad_ready(world.running, 0, data, 3, 2, nullptr)) << last_text();
  ZERO_ASSERT_OK(zero_optimizer_grad_ready(world.running, 0, data, 4, 4, nullptr));
  EXPECT_EQ(ZERO_E_STATE, zero_optimizer_grad_acquire(world.running, 0, nullptr, &address, &number)) << last_text();
  ZERO_ASSERT_OK(zero_optimizer_step(world.running, nullptr, nullptr));
}

TEST_F(WrongState, ARequestGivesWhatItMakesOnce) {
  zero_group *group = reinterpret_cast<zero_group *>(&world);
  zero_group *const before = group;
  zero_buffer *buffer = nullptr;
  EXPECT_TRUE(failed_with(zero_request_group(world.request, &group), ZERO_E_STATE, "makes no group"));
  EXPECT_TRUE(failed_with(zero_request_buffer(world.split_request, &buffer), ZERO_E_STATE, "makes no buffer"));
  EXPECT_EQ(before, group);
  ZERO_ASSERT_OK(zero_request_group(world.split_request, &group));
  zero_group_release(group);
  EXPECT_TRUE(failed_with(zero_request_group(world.split_request, &group), ZERO_E_STATE, "taken out of this request before"));
  ZERO_ASSERT_OK(zero_request_buffer(world.buffer_request, &buffer));
  zero_buffer_release(buffer);
  EXPECT_TRUE(failed_with(zero_request_buffer(world.buffer_request, &buffer), ZERO_E_STATE, "taken out of this request before"));
}

TEST_F(WrongState, ARequestUnderWayGivesNothing) {
  TwoRanks pair(("libzero-misuse-underway-" + std::to_string(::getpid())).c_str(), 400);
  zero_request *request = nullptr;
  ZERO_ASSERT_OK(zero_group_split_async(pair.rank[0], 0, 0, &request));
  zero_group *group = nullptr;
  EXPECT_TRUE(failed_with(zero_request_group(request, &group), ZERO_E_STATE, "has not ended"));
  int64_t done = -7;
  ZERO_EXPECT_OK(zero_request_test(request, &done));
  EXPECT_EQ(0, done);
  // Nobody else comes: the release waits for the deadline, not longer.
  zero_request_release(request);
  EXPECT_TRUE(failed_with(zero_group_status(pair.rank[0]), ZERO_E_TIMEOUT, "split"));
}

}  // namespace
}  // namespace zero::test::misuse_test
