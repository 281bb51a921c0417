/// @file Fragments that replicas bring together in turn, with a delay and a mix: the bits of a plain program, skips, and manners that do
/// not matter.
#include "tests/engine/fragment_models.h"
#include "tests/engine/fragment_rule.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/ring_model.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <vector>

namespace zero::test::fragments_test {
namespace {

TEST(Fragments, HaveTheBitsOfAPlainProgram) {
  std::mt19937_64 random(2051);
  size_t next = 0;
  for (int64_t round = 0; round < (full_tests() ? 20 : few_tests() ? 1 : 2); ++round) {
    for (const FragmentWorld &world : kFragmentWorlds) {
      for (int64_t stage = 0; stage < 4; ++stage) {
        Model model = fragment_model(world, kTurns[next++ % std::size(kTurns)]);
        model.counts.push_back(static_cast<int64_t>(random() % 3000) + 1);
        model.counts.push_back(static_cast<int64_t>(random() % 1000) * 2 + 1);
        model.seed = random();
        model.recipe.sync_after = static_cast<int64_t>(random() % 3);
        model.recipe.frozen_every = random() % 4 == 0 ? 4 : 0;
        Manner manner;
        manner.stage = stage;
        manner.overlap = random() % 2 == 0;
        manner.norm = random() % 2 == 0;
        manner.bucket_nbytes = random() % 2 == 0 ? 4096 : 26'214'400;
        run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { follow_fragments(group, model, manner); });
      }
    }
  }
}

/// One replica overflows in one step of a period: before, at and after the turn of a fragment, and while its exchange is under way. It
/// alone skips that step, and the clock goes on.
TEST(Fragments, TakeTheirTurnsAfterSkippedSteps) {
  for (const Turns &turns : {Turns{4, 2, 0, 0}, Turns{6, 3, 1, 0.5}, Turns{6, 2, 2, 0.25}}) {
    for (int64_t step = 0; step < turns.period; ++step) {
      const FragmentWorld &world = kFragmentWorlds[static_cast<size_t>(step) % std::size(kFragmentWorlds)];
      Model model = fragment_model(world, turns);
      model.recipe.loss_scale = 4;
      model.recipe.overflow_step = 1000;  // so that the scale is dynamic
      Manner manner;
      manner.stage = (step + world.replicas) % 4;
      manner.overlap = step % 2 == 0;
      run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
        follow_fragments(group, model, manner, {step, step % world.replicas});
      });
    }
  }
}

/// A part that is worked on at once has 2^20 elements.
TEST(Fragments, MayBeTensorsOfSeveralParts) {
  for (const int64_t delay : {0, 1}) {
    Model model = fragment_model({2, 1}, {4, 2, delay, 0});
    model.counts = {257, (int64_t{1} << 20) + 300, 17, 1};
    model.steps = 5;
    Manner manner;
    manner.overlap = true;
    run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { follow_fragments(group, model, manner); });
  }
}

/// The recipe is the same; where shards lie and how data moves is not. All slots are compared, of trainings that end while an exchange may
/// be under way.
TEST(Fragments, HaveTheSameBitsInEveryManner) {
  const int64_t models = full_tests() ? 120 : few_tests() ? 4 : 10;
  for (int64_t i = 0; i < models; ++i) {
    const auto seed = static_cast<uint64_t>(i) + 1;
    const FragmentWorld &world = kFragmentWorlds[static_cast<size_t>(i) % std::size(kFragmentWorlds)];
    const int64_t ranks = world.replicas * world.replica_ranks;
    std::mt19937_64 random(seed);
    Model model = random_model(seed + 700, ranks, 1 << 12);
    // Some replica would have no weight at all in some step.
    if (model.divisor == ZERO_DIVISOR_WEIGHTS) model.divisor = ZERO_DIVISOR_RANKS;
    model.recipe = random_recipe(seed, model.algorithm);
    if (model.recipe.master == ZERO_MASTER_NONE) model.recipe.master = ZERO_MASTER_F32;
    model.recipe.replica_ranks = world.replica_ranks;
    set_turns(model, kTurns[static_cast<size_t>(i) % std::size(kTurns)]);
    model.recipe.sync_fragments = std::min(model.recipe.sync_fragments, trained_tensors(model));
    while (model.recipe.sync_period % model.recipe.sync_fragments != 0) --model.recipe.sync_fragments;
    model.recipe.sync_code = static_cast<int64_t>(random() % 4);
    model.recipe.sync_after = i % 3;
    model.steps = 9;
    run_world(ranks, [&](const std::shared_ptr<Group> &group) { (void)expect_same_in_every_manner(group, model, seed * 1000); });
  }
}

float mixed(float own, float result, double mix) { return own * static_cast<float>(mix) + result * static_cast<float>(1 - mix); }

/// Values of one tensor, by replica.
struct Kept {
  std::vector<std::vector<float>> masters;
  std::vector<std::vector<float>> averages;
  std::vector<float> anchor;
};

void expect_mixed(Optimizer &optimizer, const Model &model, int64_t id, const Kept &before, bool turns) {
  const auto replica = static_cast<size_t>(optimizer.group()->rank() / model.recipe.replica_ranks);
  const auto replicas = std::ssize(before.masters);
  const auto mean_of = [&](const auto &get) { return tree_sum(0, replicas, get) / static_cast<float>(replicas); };
  std::vector<float> masters = before.masters[replica];
  std::vector<float> averages = before.averages[replica];
  std::vector<float> anchor = before.anchor;
  for (size_t k = 0; k < anchor.size() && turns; ++k) {
    anchor[k] -= mean_of([&](int64_t other) { return before.anchor[k] - before.masters[static_cast<size_t>(other)][k]; });
    masters[k] = mixed(masters[k], anchor[k], model.recipe.sync_mix);
    const float mean = mean_of([&](int64_t other) { return before.averages[static_cast<size_t>(other)][k]; });
    averages[k] = mixed(averages[k], mean, model.recipe.sync_mix);
  }
  EXPECT_EQ(differing(trained_values(optimizer, model, id), masters), 0) << "tensor " << id << "\n" << model.text();
  EXPECT_EQ(differing(read_tensor(optimizer, model, id, ZERO_SLOT_AVERAGE), averages), 0) << "tensor " << id << "\n" << model.text();
  EXPECT_EQ(differing(read_tensor(optimizer, model, id, ZERO_SLOT_ANCHOR), anchor), 0) << "tensor " << id << "\n" << model.text();
}

/// The steps of a turn have rate 0, so they change nothing else.
void expect_mixed_turn(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner) {
  const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
  ASSERT_NE(optimizer, nullptr);
  const FragmentRule rule(model);
  (void)train_step(*optimizer, model, manner, 0);
  std::vector<Kept> before;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const auto all_of = [&](const std::vector<float> &mine) { return of_all_replicas(*group, mine, model.recipe.replica_ranks); };
    before.push_back({all_of(trained_values(*optimizer, model, id)), all_of(read_tensor(*optimizer, model, id, ZERO_SLOT_AVERAGE)),
                      read_tensor(*optimizer, model, id, ZERO_SLOT_ANCHOR)});
  }
  EXPECT_NE(before[1].masters[0], before[1].masters[1]);
  expect_ok(optimizer->set_f64(0, ZERO_KEY_LR, 0), "set_f64");
  expect_ok(optimizer->set_f64(0, ZERO_KEY_AVERAGE_DECAY, 1), "set_f64");
  for (int64_t step = 1; step <= 1 + model.recipe.sync_delay; ++step)
    EXPECT_EQ(train_step(*optimizer, model, manner, step).synced, step == 1 + model.recipe.sync_delay ? 1 : 0);
  for (int64_t id = 0; id < model.tensors(); ++id)
    expect_mixed(*optimizer, model, id, before[static_cast<size_t>(id)], rule.fragment(id) == 1);
  expect_same_on_all_ranks(*optimizer);
}

TEST(Fragments, MixMastersAndAverages) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (const int64_t delay : {0, 1}) {
      for (const int64_t kind : {0, 1, 2}) {
        Model model = fragment_model({3, 2}, {4, 2, delay, 0.25});
        model.counts = {700, 1024, 257, 17};
        model.recipe.coded = kind == 0;
        model.recipe.dtype = kind == 0 ? DType::f32 : DType::bf16;
        if (kind == 0) model.counts.pop_back();  // it would have no master
        if (kind == 2) model.recipe.master = ZERO_MASTER_REMAINDER;
        model.recipe.average = true;
        Manner manner;
        manner.stage = stage;
        manner.overlap = stage % 2 == 0;
        run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { expect_mixed_turn(group, model, manner); });
      }
    }
  }
}

}  // namespace
}  // namespace zero::test::fragments_test
