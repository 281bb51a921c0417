/// @file Models, recipes and manners by chance.
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace zero::test {

Model random_model(uint64_t seed, int64_t ranks, int64_t most) {
  std::mt19937_64 random(seed);
  Model model;
  model.seed = seed;
  model.ranks = ranks;
  const auto tensors = static_cast<int64_t>(random() % 40) + 1;
  std::uniform_real_distribution<double> exponent(0, std::log2(static_cast<double>(most)));
  int64_t total = 0;
  for (int64_t i = 0; i < tensors; ++i) {
    int64_t count = random() % 12 == 0 ? 0 : static_cast<int64_t>(std::exp2(exponent(random)));
    count = std::min(count, most - total);
    total += count;
    model.counts.push_back(count);
  }
  static constexpr const char *kAlgorithms[] = {"adamw", "adam", "sgd", "sgd", "sgd"};
  const size_t which = random() % 5;
  model.algorithm = kAlgorithms[which];
  model.momentum = which >= 3 ? 0.9 : 0;
  model.nesterov = which == 4 ? 1 : 0;
  model.weight_decay = random() % 3 == 0 ? 0 : 0.01;
  model.divisor = static_cast<int64_t>(random() % 3);
  static constexpr double kUnits[] = {1, 1e-3, 4096};
  model.weight_unit = kUnits[random() % 3];
  return model;
}

Recipe random_recipe(uint64_t seed, const std::string &algorithm) {
  std::mt19937_64 random(seed ^ 0x5ec1);
  const auto one_in = [&random](uint64_t n) { return random() % n == 0; };
  static constexpr DType kDTypes[] = {DType::f32, DType::bf16, DType::bf16, DType::f16};
  static constexpr int64_t kGrads[] = {0, 0, ZERO_DTYPE_F32, ZERO_DTYPE_BF16};
  Recipe recipe;
  recipe.dtype = kDTypes[random() % 4];
  recipe.mixed = one_in(3);
  recipe.grad = kGrads[random() % 4];
  recipe.master = static_cast<int64_t>(random() % (recipe.dtype == DType::bf16 ? 3 : 2));
  if (algorithm != "sgd" && one_in(2)) recipe.first_moment = one_in(2) ? DType::bf16 : DType::f8e4m3;
  if (algorithm != "sgd" && one_in(2)) recipe.second_moment = one_in(2) ? DType::bf16 : DType::f8ue5m3;
  recipe.stochastic = one_in(3);
  if (one_in(3)) recipe.clip_norm = 0.5;
  if (recipe.clip_norm == 0 && one_in(3)) recipe.clip_value = 0.01;
  recipe.loss_scale = one_in(2) ? 1 : 16;
  static const std::vector<int32_t> kMicroSteps[] = {{}, {}, {1, 0}, {1, 1, 0}, {2, 0}, {2, 2}, {1, 2, 1, 0}, {1, 1}, {2, 1, 2}};
  recipe.micro_steps = kMicroSteps[random() % 9];
  recipe.accumulates_in_f32 = one_in(2);
  recipe.average = one_in(4);
  recipe.sets = static_cast<int64_t>(random() % 3) + 1;
  recipe.frozen_every = one_in(4) ? 3 : 0;
  recipe.untouched = one_in(3);
  recipe.unfilled_every = one_in(3) ? 2 : 0;
  recipe.gather_below = one_in(3) ? 500 : 0;
  recipe.overflow_step = one_in(4) ? 1 : -1;
  recipe.coded = recipe.master == ZERO_MASTER_F32 && one_in(2);
  return recipe;
}

Manner random_manner(uint64_t seed, int64_t ranks) {
  std::mt19937_64 random(seed);
  static constexpr int64_t kBuckets[] = {0, 1024, 4096, 65'536, 1 << 20, 26'214'400};
  Manner manner;
  manner.stage = static_cast<int64_t>(random() % 4);
  manner.bucket_nbytes = kBuckets[random() % std::size(kBuckets)];
  manner.overlap = random() % 2 == 0;
  manner.caller_memory = random() % 2 == 0;
  manner.by_ranges = random() % 3 == 0;
  manner.threads = static_cast<int64_t>(random() % 3) + 1;
  // The same pattern of ready gradients on all ranks, or another on each: then the pool grows.
  manner.ready_seed = random() % 2 == 0 ? 0 : random() | 1;
  manner.order_seed = random() % 3 == 0 ? random() | 1 : 0;
  manner.source = static_cast<int32_t>(random() % 3);
  if (random() % 3 == 0) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      manner.shard_weights += (rank > 0 ? "," : "") + std::to_string(rank == 0 ? 1 : random() % 4);
  }
  manner.norm = random() % 2 == 0;
  manner.one_copy = random() % 3 == 0;
  manner.splits = random() % 3 == 0;
  const int64_t param_ranks = static_cast<int64_t>(random() % static_cast<uint64_t>(ranks)) + 1;
  if (ranks % param_ranks == 0) manner.param_ranks = param_ranks;
  return manner;
}

Outcome expect_same_in_every_manner(const std::shared_ptr<Group> &group, const Model &model, uint64_t seed, int64_t manners) {
  Outcome expected = train(group, model, Manner{});
  for (int64_t index = 0; index < manners; ++index) {
    Manner manner = random_manner(seed + static_cast<uint64_t>(index), model.recipe.replica_ranks);
    if (index < 4) manner.stage = index;
    Outcome outcome = train(group, model, manner);
    if (!manner.norm && model.recipe.clip_norm == 0) outcome.norms = expected.norms;
    EXPECT_EQ(differing(expected, outcome), 0) << "rank " << group->rank() << "\n" << model.text() << "\n" << manner.text();
  }
  return expected;
}

}  // namespace zero::test
