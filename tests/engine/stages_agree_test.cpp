/// @file Bit-identity: what decides where numbers lie and when they move must not decide the numbers.
#include "group/collectives.h"
#include "tests/algorithms.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>

namespace zero::test::stages_agree_test {
namespace {

const int64_t kModels = few_tests() ? 8 : 24;
const int64_t kRecipes = few_tests() ? 6 : 60;

struct Count {
  int64_t combinations = 0;
  int64_t differing = 0;
};

/// Ranks on a host, by chance. Mostly one host.
int64_t random_per_host(uint64_t seed) { return static_cast<int64_t>(std::array{0, 0, 2, 0, 4, 3}[seed % 6]); }

/// Several replicas of a power of two of ranks, where the number of ranks allows it.
void share_among_replicas(Manner &manner, int64_t ranks, uint64_t seed) {
  const int64_t most = ranks & -ranks;
  int64_t chosen = int64_t{1} << (seed % 3);
  while (chosen > most || chosen == ranks) chosen /= 2;
  if (chosen == 0) return;
  manner.replica_ranks = chosen;
  if (manner.shard_weights.empty()) return;
  manner.shard_weights = "1";
  for (int64_t rank = 1; rank < chosen; ++rank) manner.shard_weights += "," + std::to_string((seed + static_cast<uint64_t>(rank)) % 4);
}

/// One copy needs one host.
Manner random_manner_for(const Group &group, const Model &model, uint64_t seed, int64_t index) {
  Manner manner = random_manner(seed * 1000 + static_cast<uint64_t>(index), model.ranks);
  manner.stage = index < 4 ? index : manner.stage;
  manner.one_copy = manner.one_copy && group.place().host_count == 1;
  if (index % 3 == 2) share_among_replicas(manner, model.ranks, seed + static_cast<uint64_t>(index));
  return manner;
}

/// Trains one model in `manners` ways and compares all of them with the reference; norms with each other.
Count compare_manners(const Model &model, uint64_t seed, int64_t manners) {
  const Outcome expected = reference_training(model);
  std::atomic<int64_t> differing_bits{0};
  run_hosts(model.ranks, random_per_host(seed), [&](const std::shared_ptr<Group> &group) {
    std::vector<double> norms;
    for (int64_t i = 0; i < manners; ++i) {
      const Manner manner = random_manner_for(*group, model, seed, i);
      Outcome outcome = train(group, model, manner);
      if (!manner.norm) outcome.norms.clear();
      if (norms.empty()) norms = outcome.norms;
      Outcome wanted = expected;
      if (manner.norm) wanted.norms = norms;
      wanted.slots = outcome.slots;
      wanted.scales = outcome.scales;
      const int64_t different = differing(wanted, outcome) + outcome.unfilled;
      differing_bits += different;
      EXPECT_EQ(different, 0) << "rank " << group->rank() << "\n" << model.text() << "\n" << manner.text();
      if (different != 0) return;
    }
  });
  return {manners, differing_bits.load()};
}

TEST(StagesAgreeBitForBit, RandomModelsInRandomManners) {
  const int64_t models = full_tests() ? 200 : kModels;
  constexpr int64_t kManners = 11;
  Count sum;
  for (int64_t i = 0; i < models; ++i) {
    const int64_t ranks = i % 8 + 1;
    const auto seed = static_cast<uint64_t>(i) + 1;
    const int64_t most = full_tests() && i % 4 == 0 ? int64_t{1} << 18 : int64_t{1} << 14;
    const Count count = compare_manners(random_model(seed, ranks, most), seed, kManners);
    sum.combinations += count.combinations;
    sum.differing += count.differing;
    if (count.differing != 0) break;
  }
  std::printf("combinations compared: %lld, differing elements: %lld\n", static_cast<long long>(sum.combinations),
              static_cast<long long>(sum.differing));
}

/// Trains one model with a recipe in `manners` ways and compares all of them with the first: stage 0, one bucket, one thread.
Count compare_recipes(const Model &model, uint64_t seed, int64_t manners) {
  std::atomic<int64_t> differing_bits{0};
  run_hosts(model.ranks, random_per_host(seed), [&](const std::shared_ptr<Group> &group) {
    const Outcome expected = train(group, model, Manner{});
    for (int64_t i = 0; i < manners; ++i) {
      const Manner manner = random_manner_for(*group, model, seed, i);
      Outcome outcome = train(group, model, manner);
      // Clipping needs the norm, whoever asked.
      if (!manner.norm && model.recipe.clip_norm == 0) outcome.norms = expected.norms;
      const int64_t different = differing(expected, outcome) + (expected.unfilled != outcome.unfilled ? 1 : 0);
      differing_bits += different;
      EXPECT_EQ(different, 0) << "rank " << group->rank() << "\n" << model.text() << "\n" << manner.text();
      if (different != 0) return;
    }
  });
  return {manners, differing_bits.load()};
}

Model random_recipe_model(uint64_t seed, int64_t ranks, int64_t most) {
  const Names more = all_names({"sgd", "adam", "adamw"});  // which random_model draws
  Model model = random_model(seed, ranks, most);
  if (seed % 2 == 0) model.algorithm = more[seed / 2 % more.size()];
  model.recipe = random_recipe(seed, model.algorithm);
  if (seed % 4 == 0) {
    model.recipe.tied = true;
    model.counts.push_back(model.counts.front());
  }
  model.steps = 4;
  return model;
}

TEST(StagesAgreeBitForBit, RandomRecipesInRandomManners) {
  const int64_t models = full_tests() ? 1000 : kRecipes;
  constexpr int64_t kManners = 10;
  Count sum;
  for (int64_t i = 0; i < models; ++i) {
    const auto seed = static_cast<uint64_t>(i) + 20'001;
    const int64_t most = full_tests() && i % 4 == 0 ? int64_t{1} << 16 : int64_t{1} << 13;
    const Count count = compare_recipes(random_recipe_model(seed, i % 8 + 1, most), seed, kManners);
    sum.combinations += count.combinations;
    sum.differing += count.differing;
    if (count.differing != 0) break;
  }
  std::printf("combinations with recipes compared: %lld, differing: %lld\n", static_cast<long long>(sum.combinations),
              static_cast<long long>(sum.differing));
}

/// Some replicas lie on one host, others on two, and so do ranks with the same shard.
TEST(StagesAgreeBitForBit, ReplicasOverHostsOfDifferentSizes) {
  for (const int64_t ranks : {4, 6, 8}) {
    for (const int64_t per_host : {2, 3, 4}) {
      const Model model = random_model(static_cast<uint64_t>(700 + ranks), ranks, 1 << 10);
      run_hosts(ranks, per_host, [&](const std::shared_ptr<Group> &group) {
        const Outcome expected = train(group, model, Manner{});
        for (int64_t stage = 0; stage < 4; ++stage) {
          Manner manner;
          manner.stage = stage;
          manner.replica_ranks = stage % 2 == 0 ? 2 : ranks == 8 ? 4 : 1;
          EXPECT_EQ(differing(expected, train(group, model, manner)), 0) << "ranks " << ranks << " per host " << per_host;
        }
      });
    }
  }
}

/// Sharded within replicas and summed over them, with whatever recipes have: clipping, overflows, weights, frozen and tied tensors.
TEST(StagesAgreeBitForBit, ReplicasStayAlikeForManySteps) {
  const int64_t models = full_tests() ? 500 : few_tests() ? 2 : 12;
  for (int64_t i = 0; i < models; ++i) {
    const auto seed = static_cast<uint64_t>(i) + 60'001;
    Model model = random_recipe_model(seed, std::array{2, 4, 8, 6}[i % 4], 1 << 9);
    model.steps = full_tests() ? 200 : 60;
    run_hosts(model.ranks, random_per_host(seed), [&](const std::shared_ptr<Group> &group) {
      Manner manner = random_manner_for(*group, model, seed, 4 + i % 4);
      share_among_replicas(manner, model.ranks, seed);
      const Outcome outcome = train(group, model, manner);
      std::vector<std::byte> first = outcome.slots;
      OperationQueue queue;
      expect_ok(queue.run(broadcast(*group, first.data(), std::ssize(first), DType::u8, 0)), "broadcast");
      EXPECT_EQ(outcome.slots, first) << "rank " << group->rank() << "\n" << model.text() << "\n" << manner.text();
    });
  }
}

TEST(StagesAgreeBitForBit, LargeModels) {
  const int64_t models = full_tests() ? 20 : 1;
  const int64_t most = int64_t{1} << (few_tests() ? 18 : 21);
  for (int64_t i = 0; i < models; ++i) {
    Model model = random_model(static_cast<uint64_t>(9000 + i), i % 4 + 1, most);
    model.counts.push_back(most / 2 + 77 * i);
    const Count count = compare_manners(model, static_cast<uint64_t>(9000 + i), 4);
    EXPECT_EQ(count.differing, 0);
  }
}

}  // namespace
}  // namespace zero::test::stages_agree_test
