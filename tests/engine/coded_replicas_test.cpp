/// @file What replicas send to one another as codes: the same bits however data moves, within the bounds of the codes, at their size.
#include "group/collectives.h"
#include "tests/engine/coded_model.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace zero::test::coded_replicas_test {
namespace {

using World = CodedWorld;
constexpr std::array<World, 5> kWorlds = {{{2, 1}, {4, 2}, {4, 1}, {6, 2}, {8, 4}}};

Model model_of(const World &world, int64_t grad_code, int64_t sync_code, int64_t period) {
  Model model = coded_model(world, grad_code);
  model.recipe.sync_code = sync_code;
  model.recipe.sync_period = period;
  return model;
}

/// Of rank 0.
template <class Value>
std::vector<Value> of_first(Group &group, std::vector<Value> values) {
  OperationQueue queue;
  expect_ok(queue.run(broadcast(group, values.data(), static_cast<int64_t>(values.size() * sizeof(Value)), DType::u8, 0)), "broadcast");
  return values;
}

TEST(CodedReplicas, HaveTheSameBitsInEveryMannerAndOnAllRanks) {
  const int64_t manners = full_tests() ? 16 : few_tests() ? 2 : 5;
  for (const World &world : kWorlds) {
    for (const int64_t code : kCodes) {
      for (const int64_t period : {1, 2}) {
        Model model = model_of(world, period == 1 ? code : int64_t{ZERO_CODE_NONE}, period == 1 ? int64_t{ZERO_CODE_NONE} : code, period);
        model.steps = 4;
        model.recipe.clip_norm = period == 1 ? 0.5 : 0;
        model.recipe.overflow_step = period == 1 ? 2 : -1;
        if (code == ZERO_CODE_I8) model.recipe.dtype = DType::bf16;
        run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
          const Outcome expected = train(group, model, Manner{});
          EXPECT_EQ(expected.skipped, period == 1 ? 1 : 0);
          if (period == 1) {
            EXPECT_EQ(of_first(*group, expected.slots), expected.slots);
          }
          for (int64_t index = 0; index < manners; ++index) {
            Manner manner = random_manner(static_cast<uint64_t>(code * 100 + period * 10 + index), world.replica_ranks);
            if (index < 4) manner.stage = index;
            Outcome outcome = train(group, model, manner);
            if (!manner.norm && model.recipe.clip_norm == 0) outcome.norms = expected.norms;
            ASSERT_EQ(differing(expected, outcome), 0) << "rank " << group->rank() << "\n" << model.text() << "\n" << manner.text();
          }
        });
      }
    }
  }
}

/// One step of gradient descent, with codes and without. Sums over a replica have an error of the code each, and so does the mean.
TEST(CodedReplicas, MoveWithinTheBoundsOfTheCode) {
  for (const World &world : kWorlds) {
    for (const int64_t code : kCodes) {
      Model plain = model_of(world, ZERO_CODE_NONE, ZERO_CODE_NONE, 1);
      plain.algorithm = "sgd";
      plain.weight_decay = 0;
      Model coded = plain;
      coded.recipe.grad_code = code;
      run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
        Manner manner;
        manner.stage = code;
        const auto step = [&](const Model &model) {
          const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
          (void)train_step(*optimizer, model, manner, 0);
          return read_slot(*optimizer, model, ZERO_SLOT_PARAM);
        };
        const std::vector<float> without = step(plain);
        const std::vector<float> with = step(coded);
        ASSERT_EQ(with.size(), without.size());
        double largest = 0;
        int64_t changed = 0;
        for (size_t i = 0; i < with.size(); ++i) {
          largest = std::max(largest, std::abs(static_cast<double>(with[i]) - without[i]));
          changed += with[i] != without[i] ? 1 : 0;
        }
        // Gradients are below 1, and so are their means; the rate is 0.01.
        const double quantum = code == ZERO_CODE_I4 ? 1.0 / 14 : code == ZERO_CODE_I8 ? 1.0 / 254 : 1.0 / 16;
        EXPECT_LE(largest, 0.01 * 2.1 * quantum);
        EXPECT_GT(changed, 1000);
        // Tensors of fewer than 256 elements travel in full.
        size_t at = 0;
        for (const int64_t count : plain.counts) {
          for (int64_t k = 0; k < count && count < 256; ++k)
            EXPECT_EQ(with[at + static_cast<size_t>(k)], without[at + static_cast<size_t>(k)]);
          at += static_cast<size_t>(count);
        }
      });
    }
  }
}

TEST(CodedReplicas, SendTheBytesOfTheFormula) {
  for (const World &world : kWorlds) {
    for (const int64_t code : kCodes) {
      Model model = model_of(world, code, ZERO_CODE_NONE, 1);
      model.counts = {64 * 1024};
      model.algorithm = "sgd";
      Model plain = model;
      plain.recipe.grad_code = ZERO_CODE_NONE;
      run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
        Manner manner;
        manner.stage = 1;
        manner.norm = false;
        const auto sent = [&](const Model &each) {
          const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, each, manner);
          int64_t before = 0;
          int64_t after = 0;
          const auto add = [&](int64_t &sum) {
            for (const OperationKind kind : {OperationKind::reduce_scatter, OperationKind::all_gather})
              sum += optimizer->traffic(kind).sent_nbytes;
          };
          add(before);
          (void)train_step(*optimizer, each, manner, 0);
          add(after);
          return after - before;
        };
        const int64_t own = model.counts[0] / world.replica_ranks;
        const int64_t replicas = world.ranks / world.replica_ranks;
        const int64_t line_nbytes = code == ZERO_CODE_I4 ? 132 : 260;
        const double saved = 2.0 * static_cast<double>(replicas - 1) / static_cast<double>(replicas) *
                             static_cast<double>(own * 4 - own / 256 * line_nbytes);
        // Parts are whole lines, so that those of ranks differ by one.
        EXPECT_NEAR(static_cast<double>(sent(plain) - sent(model)), saved, 4096) << "code " << code;
      });
    }
  }
}

/// As replicas.h says.
TEST(CodedReplicas, TellTheirBytesAndTakeTheMemoryOfTheFormula) {
  for (const int64_t period : {1, 2}) {
    Model model = model_of({4, 2}, period == 1 ? ZERO_CODE_I8 : ZERO_CODE_NONE, period == 1 ? ZERO_CODE_NONE : ZERO_CODE_I8, period);
    model.counts = {2 << 20};
    model.recipe.dtype = DType::bf16;
    model.algorithm = "sgd";
    run_world(4, [&](const std::shared_ptr<Group> &group) {
      Manner manner;
      manner.stage = 1;
      const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
      ASSERT_NE(optimizer, nullptr);
      for (int64_t step = 0; step < 2; ++step) (void)train_step(*optimizer, model, manner, step);
      const int64_t own = model.counts[0] / 2;
      const std::string told =
          "this rank sends " + std::string(period == 1 ? "at most " : "about ") + std::to_string(own / 256 * 260) + " bytes";
      EXPECT_NE(optimizer->describe().find(told), std::string::npos) << optimizer->describe();
      MemoryUse workspace{};
      expect_ok(optimizer->memory(ZERO_MEMORY_WORKSPACE, &workspace), "memory");
      EXPECT_LE(workspace.peak_nbytes, (period == 1 ? 4 * own : 4 << 20) + (6 << 20));
    });
  }
}

TEST(CodedReplicas, WithoutEffectAreRefusedByName) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    expect_refused(group, {{ZERO_KEY_GRAD_CODE, ZERO_CODE_I8}}, ZERO_E_INVALID_ARGUMENT,
                   "ZERO_KEY_GRAD_CODE is ZERO_CODE_I8, but no gradients travel between replicas");
    expect_refused(group, {{ZERO_KEY_REPLICA_RANKS, 1}, {ZERO_KEY_SYNC_PERIOD, 4}, {ZERO_KEY_GRAD_CODE, ZERO_CODE_F8}},
                   ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_GRAD_CODE is ZERO_CODE_F8");
    expect_refused(group, {{ZERO_KEY_REPLICA_RANKS, 1}, {ZERO_KEY_SYNC_CODE, ZERO_CODE_I4}}, ZERO_E_INVALID_ARGUMENT,
                   "ZERO_KEY_SYNC_CODE is ZERO_CODE_I4, but has no effect");
  });
}

}  // namespace
}  // namespace zero::test::coded_replicas_test
