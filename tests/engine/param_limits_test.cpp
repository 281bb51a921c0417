/// @file Parameters over fewer ranks than states at their limits: copies that differ, lost ranks, bytes and memory of the formulas, and
/// what is refused.
#include "tests/engine/coded_model.h"
#include "tests/engine/counted_hook.h"
#include "tests/engine/param_worlds.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

namespace zero::test::param_limits_test {
namespace {

/// The copy of block 1's shard follows the own shard of block 0 in memory.
TEST(ParamLimits, VerifyFindsACopyThatDiffers) {
  for (const ParamWorld &world : {ParamWorld{4, 2}, ParamWorld{6, 2, 2}, ParamWorld{3, 1}}) {
    Model model = edge_model(world.ranks);
    model.counts = {256 * world.ranks * 3};
    run_hosts(world.ranks, world.per_host, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, spread_manner(world.param_ranks));
      (void)train_step(*optimizer, model, plain_manner(), 0);
      expect_same_on_all_ranks(*optimizer);
      View view{};
      expect_ok(optimizer->view(0, ZERO_SLOT_PARAM, &view), "view");
      if (group->rank() == 0) static_cast<uint32_t *>(view.data)[view.count + 5] ^= 1U;
      zero_verify_result result{};
      expect_ok(run_task(*optimizer, optimizer->verify(&result)), "verify");
      EXPECT_EQ(result.found, ZERO_FINDING_REPLICAS);
      EXPECT_EQ(result.chunk_count, 1);
      EXPECT_EQ(result.rank, 0);
      EXPECT_EQ(result.other_rank, world.ranks == 4 ? 2 : -1);  // of two copies, either may be wrong
      EXPECT_EQ(result.slot, ZERO_SLOT_PARAM);
      EXPECT_EQ(result.offset, view.count * world.param_ranks + 5);
      EXPECT_EQ(result.count, 1);
      (void)train_step(*optimizer, model, plain_manner(), 1);
      expect_same_on_all_ranks(*optimizer);
    });
  }
}

/// Rank 3 leaves: the rank that shares its block learns that when it acquires, the others in the next step. Shards stay readable.
TEST(ParamLimits, ARankThatLeavesEndsStepsAndShardsStay) {
  for (const int64_t per_host : {0, 2}) {
    const Model model = edge_model(4);
    run_hosts(4, per_host, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, spread_manner(2));
      (void)train_step(*optimizer, model, plain_manner(), 0);
      View view{};
      expect_ok(optimizer->view(0, ZERO_SLOT_PARAM, &view), "view");
      const auto *own = static_cast<const float *>(view.data);
      const std::vector<float> expected(own, own + view.count);
      if (group->rank() == 3) return;
      void *data = nullptr;
      Status status = run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data));
      EXPECT_TRUE(group->rank() != 2 || status.code() == ZERO_E_PEER_LEFT) << status.text();
      if (status.ok()) expect_ok(optimizer->param_release(0), "param_release");
      const std::vector<float> gradient(5000, 1);
      for (int64_t id = model.tensors() - 1; id >= 0 && status.ok(); --id)
        status = optimizer->grad_ready(id, gradient.data(), 0, model.counts[static_cast<size_t>(id)]);
      if (status.ok()) status = run_task(*optimizer, optimizer->step(nullptr));
      EXPECT_EQ(status.code(), ZERO_E_PEER_LEFT) << status.text();
      std::vector<float> read(expected.size());
      expect_ok(run_task(*optimizer, optimizer->read(view.param, ZERO_SLOT_PARAM, view.offset, read.data(), view.count)), "read");
      EXPECT_EQ(differing(read, expected), 0);
      status = run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data));
      EXPECT_TRUE(poisons_group(status.code())) << status.text();
    });
  }
}

/// A rank steps while the other of its block acquires: an error at once, not at the deadline.
TEST(ParamLimits, CallsThatDifferEndAtOnce) {
  run_world(4, [](const std::shared_ptr<Group> &group) {
    const Model model = edge_model(4);
    const auto optimizer = begun_optimizer(group, model, spread_manner(2));
    void *data = nullptr;
    Status status = group->rank() == 0 ? run_task(*optimizer, optimizer->step(nullptr))
                                       : run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data));
    if (group->rank() < 2) {
      EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
      return;
    }
    if (status.ok()) expect_ok(optimizer->param_release(0), "param_release");
    if (status.ok()) status = run_task(*optimizer, optimizer->step(nullptr));
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
  });
}

/// A block of 64 lines per rank, and what rank r holds of it.
struct Cut {
  int64_t own;
  int64_t held;
};

Cut cut_of(const ParamWorld &world, int64_t rank, int64_t count) {
  const Weights equal(world.ranks);
  const int64_t block = block_ranks(world);
  Cut cut{equal.shard({0, count}, rank).count(), 0};
  for (int64_t twin = rank % block; twin < world.ranks; twin += block) cut.held += equal.shard({0, count}, twin).count();
  return cut;
}

/// An update crosses to the other copies once, whatever the number of acquires, which stay in the block.
TEST(ParamLimits, SendsTheBytesOfTheFormula) {
  Every every(5);
  for (const ParamWorld &world : kParamWorlds) {
    for (int kind = 0; kind < 3; ++kind) {
      if (!every.next()) continue;
      Model model = edge_model(world.ranks);
      model.counts = {100 * 256 + 40};
      if (kind > 0) model.recipe.dtype = DType::bf16;
      model.recipe.coded = kind == 2;
      const auto nbytes = [&](int64_t count) { return kind == 2 ? count + (count + 255) / 256 * 4 : count * (kind == 1 ? 2 : 4); };
      // If some ranks of a gather share a host and others do not, ranks pass on what others sent.
      const bool in_host = world.per_host == 0;
      const bool block_in_host = in_host || world.per_host % block_ranks(world) == 0;
      const bool copies_apart = in_host || block_ranks(world) % world.per_host == 0;
      std::atomic<int64_t> acquired{0};
      std::atomic<int64_t> of_acquires{0};
      std::atomic<int64_t> crossed{0};
      std::atomic<int64_t> whole{0};
      run_hosts(world.ranks, world.per_host, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = begun_optimizer(group, model, spread_manner(world.param_ranks));
        const Cut cut = cut_of(world, group->rank(), model.counts[0]);
        const int64_t copies = world.ranks / block_ranks(world);
        const auto sent = [&] { return optimizer->traffic(OperationKind::all_gather).sent_nbytes; };
        for (int64_t step = 0; step < 2; ++step) {
          int64_t before = sent();
          for (int pass = 0; pass < 3; ++pass) (void)acquired_bytes(*optimizer, model, 0);
          const int64_t formula = 3 * (block_ranks(world) - 1) * nbytes(cut.held);
          EXPECT_TRUE(!block_in_host || sent() - before == formula) << sent() - before << " and not " << formula << " kind " << kind;
          acquired += sent() - before;
          of_acquires += formula;
          before = sent();
          (void)train_step(*optimizer, model, plain_manner(), step);
          EXPECT_TRUE(!copies_apart || sent() - before == (copies - 1) * nbytes(cut.own)) << "kind " << kind << " ranks " << world.ranks;
          if (step == 0) crossed += sent() - before;
          if (step == 0) whole += nbytes(cut.own);
        }
        const std::string told = "this rank sends " + std::to_string((copies - 1) * nbytes(cut.own)) + " bytes to the other copies";
        EXPECT_EQ(optimizer->describe().find(told) != std::string::npos, copies > 1) << optimizer->describe();
      });
      EXPECT_EQ(acquired, of_acquires);
      // Over all ranks: b P for each copy but the owner's.
      EXPECT_EQ(crossed, (world.ranks / block_ranks(world) - 1) * whole);
      EXPECT_GE(whole, nbytes(model.counts[0]));
      EXPECT_LE(whole, nbytes(model.counts[0]) + 4 * world.ranks);
    }
  }
}

std::shared_ptr<Optimizer> sealed_optimizer(const std::shared_ptr<Group> &group, const Config &config, int64_t count, Status *out) {
  std::shared_ptr<Optimizer> optimizer;
  *out = Optimizer::create(group, config, &optimizer);
  int64_t id = 0;
  if (out->ok()) *out = optimizer->add_param(nullptr, "w", ZERO_DTYPE_F32, &count, 1, &id);
  if (out->ok()) *out = optimizer->seal_queue()->run(optimizer->seal());
  return optimizer;
}

/// AdamW in f32: parameters over the ranks of a block, all else over all ranks.
TEST(ParamLimits, TakesTheMemoryOfTheFormulaAsTheHookSeesIt) {
  Every every(5);
  for (const ParamWorld &world : kParamWorlds) {
    if (!every.next()) continue;
    const int64_t count = 128 * 256 + 100;
    Model model = edge_model(world.ranks);
    model.counts = {count};
    run_hosts(world.ranks, world.per_host, [&](const std::shared_ptr<Group> &group) {
      CountedHook hook;
      Config config = make_config(model, spread_manner(world.param_ranks));
      config.hook = hook.table();
      {
        Status status;
        const auto optimizer = sealed_optimizer(group, config, count, &status);
        ASSERT_TRUE(status.ok()) << status.text();
        const auto use_of = [&](int32_t category) {
          MemoryUse use{};
          expect_ok(optimizer->memory(category, &use), "memory");
          return use;
        };
        const Cut cut = cut_of(world, group->rank(), count);
        const MemoryUse params = use_of(ZERO_MEMORY_PARAM);
        EXPECT_EQ(params.formula_nbytes, 4 * cut.held);
        EXPECT_EQ(params.now_nbytes, params.formula_nbytes + params.constant_nbytes);
        EXPECT_LE(params.constant_nbytes, 16 << 10);
        EXPECT_EQ(use_of(ZERO_MEMORY_GRAD).formula_nbytes, 4 * cut.own);
        EXPECT_EQ(use_of(ZERO_MEMORY_STATE).formula_nbytes, 8 * cut.own);
        begin_training(*optimizer, model, plain_manner());
        for (int64_t step = 0; step < 3; ++step) {
          (void)train_step(*optimizer, model, plain_manner(), step);
          (void)acquired_bytes(*optimizer, model, 0);
        }
        const MemoryUse total = use_of(ZERO_MEMORY_TOTAL);
        EXPECT_EQ(hook.nbytes(), total.now_nbytes - use_of(ZERO_MEMORY_STAGING).now_nbytes);
        EXPECT_LE(total.now_nbytes, total.formula_nbytes + total.constant_nbytes);
        EXPECT_EQ(optimizer->describe().find("p/R + (g + s)/N") != std::string::npos, block_ranks(world) < world.ranks);
      }
      EXPECT_EQ(hook.private_nbytes, 0);
      EXPECT_EQ(hook.shared_nbytes, 0);
    });
  }
}

/// Seal counts the copies: 4 ranks keep 16 bytes per element together, and 28 where each keeps all parameters.
TEST(ParamLimits, SealCountsTheCopies) {
  run_world(4, [](const std::shared_ptr<Group> &group) {
    constexpr int64_t kCount = 1'000'000;
    Model model;
    model.ranks = 4;
    model.counts = {kCount};
    // A bucket and a gathered tensor on each rank.
    const int64_t buffers = 4 * 2 * 4 * kCount;
    for (const auto &[param_ranks, most, fits] : {std::tuple{int64_t{0}, 22 * kCount, true},
                                                  {int64_t{1}, 22 * kCount, false},
                                                  {int64_t{2}, 22 * kCount, true},
                                                  {int64_t{1}, 34 * kCount, true}}) {
      Config config = make_config(model, spread_manner(param_ranks));
      expect_ok(config.set_i64(ZERO_KEY_MEMORY_LIMIT, most + buffers), "set_i64");
      Status status;
      (void)sealed_optimizer(group, config, kCount, &status);
      EXPECT_EQ(status.code(), fits ? ZERO_OK : ZERO_E_OUT_OF_MEMORY) << param_ranks << " " << status.text();
    }
  });
}

TEST(ParamLimits, IsRefusedWithBothKeysAndTheReason) {
  run_world(4, [](const std::shared_ptr<Group> &group) {
    for (const int64_t stage : {0, 1, 2}) {
      const std::string words = "ZERO_KEY_PARAM_RANKS is 2 and ZERO_KEY_STAGE " + std::to_string(stage) +
                                ", but in stages 0 to 2 every rank keeps whole parameters; use stage 3";
      expect_refused(group, {{ZERO_KEY_STAGE, stage}, {ZERO_KEY_PARAM_RANKS, 2}}, ZERO_E_UNSUPPORTED, words.c_str());
    }
    expect_refused(group, {{ZERO_KEY_STAGE, 3}, {ZERO_KEY_PARAM_RANKS, 3}}, ZERO_E_INVALID_ARGUMENT,
                   "ZERO_KEY_PARAM_RANKS makes parameters sharded over 3 ranks, but must divide the 4 ranks of a replica");
    expect_refused(group, {{ZERO_KEY_STAGE, 3}, {ZERO_KEY_PARAM_RANKS, 4}, {ZERO_KEY_REPLICA_RANKS, 2}}, ZERO_E_INVALID_ARGUMENT,
                   "sharded over 4 ranks, but must divide the 2 ranks of a replica (ZERO_KEY_REPLICA_RANKS)");
    expect_refused(group, {{ZERO_KEY_STAGE, 3}, {ZERO_KEY_PARAM_RANKS, 2}, {ZERO_KEY_TIER, ZERO_TIER_DEVICE}, {ZERO_KEY_DEVICE, 0}},
                   ZERO_E_UNSUPPORTED, "ZERO_KEY_PARAM_RANKS is 2 and ZERO_KEY_TIER ZERO_TIER_DEVICE");
    expect_refused(group, {{ZERO_KEY_STAGE, 3}, {ZERO_KEY_PARAM_RANKS, 2}, {ZERO_KEY_ONE_COPY, 1}}, ZERO_E_UNSUPPORTED,
                   "ZERO_KEY_ONE_COPY is 1 and ZERO_KEY_STAGE 3");
    expect_refused(group, {{ZERO_KEY_STAGE, 3}, {ZERO_KEY_PARAM_RANKS, 2}, {ZERO_KEY_GATHER_CODE, ZERO_CODE_I4}}, ZERO_E_UNSUPPORTED,
                   "ZERO_KEY_GATHER_CODE is ZERO_CODE_I4 and ZERO_KEY_STAGE 3");
  });
  run_hosts(3, 2, [](const std::shared_ptr<Group> &group) {
    if (group->rank() == 2) return;  // it is alone on its host, and all hosts might be like it
    expect_refused(group, {{ZERO_KEY_STAGE, 3}, {ZERO_KEY_PARAM_RANKS, -1}}, ZERO_E_UNSUPPORTED, "ZERO_KEY_PARAM_RANKS is -1, but rank");
  });
}

TEST(ParamLimits, SealNamesAValueThatDiffersBetweenRanks) {
  run_world(4, [](const std::shared_ptr<Group> &group) {
    Model model = edge_model(4);
    Status status;
    (void)sealed_optimizer(group, make_config(model, spread_manner(group->rank() == 3 ? 1 : 2)), 1000, &status);
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
    EXPECT_TRUE(contains(status, "rank 3 has ZERO_KEY_PARAM_RANKS = 1, rank 0 has ZERO_KEY_PARAM_RANKS = 2")) << status.text();
  });
}

}  // namespace
}  // namespace zero::test::param_limits_test
