/// @file Rounds of replicas with their neighbours: the bits of a plain program, closed forms,
/// skips.
#include "tests/engine/plain_replicas.h"
#include "tests/engine/ring_model.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace zero::test::neighbours_test {
namespace {

/// With its neighbours, in rising order.
std::set<int64_t> ring_of(int64_t replica, int64_t replicas) {
  return {replica, (replica + 1) % replicas, (replica + replicas - 1) % replicas};
}

using Values = std::vector<float>;

/// As replicas.h says, one addition after another.
Values mixed(const std::vector<Values> &replicas, int64_t replica) {
  Values sums;
  const std::set<int64_t> ring = ring_of(replica, std::ssize(replicas));
  for (size_t k = 0; k < replicas[0].size(); ++k) {
    float sum = 0;
    bool first = true;
    for (const int64_t other : ring)
      sum = std::exchange(first, false) ? replicas[static_cast<size_t>(other)][k] : sum + replicas[static_cast<size_t>(other)][k];
    sums.push_back(sum / static_cast<float>(ring.size()));
  }
  return sums;
}

/// Those of one tensor.
class Plain : public PlainReplicas {
 public:
  using PlainReplicas::PlainReplicas;

  void make_round() {
    const std::vector<Values> before = all();
    for (size_t replica = 0; replica < before.size(); ++replica) all()[replica] = mixed(before, static_cast<int64_t>(replica));
  }
  /// Of the change of a replica since the beginning.
  double squares(size_t replica) const {
    double sum = 0;
    for (size_t k = 0; k < first().size(); ++k) sum += std::pow(static_cast<double>(first()[k]) - all()[replica][k], 2);
    return sum;
  }
};

double mean_norm(const std::vector<Plain> &tensors, int64_t replicas) {
  double sum = 0;
  for (int64_t replica = 0; replica < replicas; ++replica) {
    double squares = 0;
    for (const Plain &tensor : tensors) squares += tensor.squares(static_cast<size_t>(replica));
    sum += std::sqrt(squares);
  }
  return sum / static_cast<double>(replicas);
}

/// Steps and rounds of one rank beside those of the plain program. The bits are the same after each
/// of them.
void follow(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner, const Skip &skip) {
  const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
  ASSERT_NE(optimizer, nullptr);
  const int64_t replicas = model.ranks / model.recipe.replica_ranks;
  const int64_t replica = group->rank() / model.recipe.replica_ranks;
  std::vector<Plain> tensors;
  for (int64_t id = 0; id < model.tensors(); ++id) tensors.emplace_back(model, id);
  double loss_scale = model.recipe.loss_scale;
  for (int64_t step = 0; step < model.steps; ++step) {
    const bool skips = step == skip.step && replica == skip.replica;
    const bool due = (step + 1) % kRingPeriod == 0;
    const zero_step_result result =
        plain_step(*optimizer, model, step, loss_scale, skips && group->rank() % model.recipe.replica_ranks == 0);
    loss_scale = result.loss_scale;
    EXPECT_EQ(result.skipped, skips ? 1 : 0);
    EXPECT_EQ(result.synced, due ? 1 : 0);
    for (Plain &tensor : tensors) tensor.step(step, skip);
    const double before = mean_norm(tensors, replicas);
    for (Plain &tensor : tensors) {
      if (due) tensor.make_round();
    }
    EXPECT_NEAR(result.spread, due ? mean_norm(tensors, replicas) / before : 0, 1e-5);
    for (int64_t id = 0; id < model.tensors(); ++id) {
      ASSERT_EQ(differing(read_tensor(*optimizer, model, id, ZERO_SLOT_PARAM), tensors[static_cast<size_t>(id)].values(replica)), 0)
          << "rank " << group->rank() << " step " << step << " tensor " << id << "\n"
          << model.text() << manner.text();
    }
    if (!due) continue;
    for (const Values &scale : of_all_ranks(*group, {static_cast<float>(loss_scale)})) EXPECT_EQ(scale[0], static_cast<float>(loss_scale));
  }
}

TEST(Neighbours, HaveTheBitsOfAPlainProgram) {
  std::mt19937_64 random(2041);
  for (int64_t round = 0; round < (full_tests() ? 10 : 1); ++round) {
    for (const RingWorld &world : kRingWorlds) {
      for (int64_t stage = 0; stage < 4; ++stage) {
        Model model = ring_model(world, {0, 1, 255, 256, 257, 17});
        model.counts.push_back(static_cast<int64_t>(random() % 3000));
        model.counts.push_back(static_cast<int64_t>(random() % 1000) * 2 + 1);
        model.seed = random();
        model.algorithm = "sgd";
        model.weight_decay = 0;
        Manner manner;
        manner.stage = stage;
        manner.overlap = random() % 2 == 0;
        manner.norm = random() % 2 == 0;
        manner.bucket_nbytes = random() % 2 == 0 ? 4096 : 26'214'400;
        run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { follow(group, model, manner, {}); });
      }
    }
  }
}

/// One replica overflows in one step of a period, also the one that ends with a round: it alone
/// skips that step, and takes part in the round. All have one loss scale afterwards.
TEST(Neighbours, SkipByThemselvesAndMakeTheRound) {
  for (const RingWorld &world : kRingWorlds) {
    for (int64_t step = 0; step < kRingPeriod; ++step) {
      Model model = ring_model(world, {700, 17});
      model.algorithm = "sgd";
      model.weight_decay = 0;
      model.recipe.loss_scale = 4;
      model.recipe.overflow_step = 1000;  // so that the scale is dynamic
      Manner manner;
      manner.stage = (step + world.replicas) % 4;
      run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { follow(group, model, manner, {step, step % world.replicas}); });
    }
  }
}

/// A piece that travels at once is 2^18 elements, and a part that is worked on 2^20.
TEST(Neighbours, AverageTensorsOfManyPieces) {
  Model model = ring_model({3, 1}, {(int64_t{1} << 20) + (int64_t{1} << 18) + 257});
  model.algorithm = "sgd";
  model.weight_decay = 0;
  model.steps = kRingPeriod;
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { follow(group, model, Manner{}, {}); });
}

/// One step of rate 1, after which replicas differ by a wave of so many periods around the ring.
void part_as_a_wave(Optimizer &optimizer, const Model &model, int64_t waves) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(waves * optimizer.group()->rank()) / static_cast<double>(model.ranks);
  Values gradient;
  for (int64_t k = 0; k < model.counts[0]; ++k)
    gradient.push_back(static_cast<float>(std::cos(angle) * (1 + static_cast<double>(k) / 300)));
  expect_ok(optimizer.set_f64(0, ZERO_KEY_LR, 1), "set_f64");
  expect_ok(optimizer.grad_ready(0, gradient.data(), 0, std::ssize(gradient)), "grad_ready");
  expect_ok(run_task(optimizer, optimizer.step(nullptr)), "step");
  expect_ok(optimizer.set_f64(0, ZERO_KEY_LR, 0), "set_f64");
}

/// The factor (1 + 2 cos(2 pi j / F)) / 3 belongs to waves of j periods around a ring of F
/// replicas. Parameters are below 4.
TEST(Neighbours, KeepTheMeanAndShrinkWavesByTheirEigenvalues) {
  constexpr int64_t kRounds = 50;
  constexpr double kUnit = 0x1p-22;  // of rounding, of values from 2 to 4
  for (const int64_t replicas : {2, 3, 4, 5, 8}) {
    for (int64_t waves = 1; waves <= replicas / 2; ++waves) {
      Model model = ring_model({replicas, 1}, {300});
      model.algorithm = "sgd";
      model.weight_decay = 0;
      model.recipe.sync_period = 2;
      const double angle = 2 * std::numbers::pi * static_cast<double>(waves) / static_cast<double>(replicas);
      const double factor = replicas == 2 ? 0 : (1 + 2 * std::cos(angle)) / 3;
      run_world(replicas, [&](const std::shared_ptr<Group> &group) {
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, Manner{});
        ASSERT_NE(optimizer, nullptr);
        part_as_a_wave(*optimizer, model, waves);
        const auto means = [&](const Values &mine) {
          std::vector<double> sums(mine.size());
          for (const Values &values : of_all_ranks(*group, mine)) {
            for (size_t k = 0; k < sums.size(); ++k) sums[k] += static_cast<double>(values[k]) / static_cast<double>(replicas);
          }
          return sums;
        };
        const Values first = read_tensor(*optimizer, model, 0, ZERO_SLOT_PARAM);
        const std::vector<double> mean = means(first);
        for (int64_t round = 1; round <= kRounds; ++round) {
          int64_t synced = 0;
          for (int64_t step = 0; step < model.recipe.sync_period && synced == 0; ++step) {
            synced = plain_step(*optimizer, model, 1, 1, false).synced;
          }
          ASSERT_EQ(synced, 1) << replicas << " replicas, round " << round;
          const Values values = read_tensor(*optimizer, model, 0, ZERO_SLOT_PARAM);
          const std::vector<double> now = means(values);
          const double bound = 2 * kUnit * static_cast<double>(round);
          for (size_t k = 0; k < values.size(); ++k) {
            ASSERT_NEAR(now[k], mean[k], bound) << replicas << " replicas, round " << round;
            const double expected = std::pow(factor, static_cast<double>(round)) * (first[k] - mean[k]);
            ASSERT_NEAR(values[k] - mean[k], expected, bound) << replicas << " replicas, " << waves << " waves, round " << round;
          }
        }
      });
    }
  }
}

/// A step of rate 0 that ends with a round changes nothing else.
void expect_mixed_values(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner) {
  const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
  ASSERT_NE(optimizer, nullptr);
  for (int64_t step = 0; step + 1 < kRingPeriod; ++step) (void)train_step(*optimizer, model, manner, step);
  const int64_t replica = group->rank() / model.recipe.replica_ranks;
  const auto all_of = [&](const Values &mine) { return of_all_replicas(*group, mine, model.recipe.replica_ranks); };
  std::vector<Values> masters;
  std::vector<Values> averages;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    masters.push_back(mixed(all_of(trained_values(*optimizer, model, id)), replica));
    averages.push_back(mixed(all_of(read_tensor(*optimizer, model, id, ZERO_SLOT_AVERAGE)), replica));
  }
  expect_ok(optimizer->set_f64(0, ZERO_KEY_LR, 0), "set_f64");
  expect_ok(optimizer->set_f64(0, ZERO_KEY_AVERAGE_DECAY, 1), "set_f64");
  EXPECT_EQ(train_step(*optimizer, model, manner, kRingPeriod - 1).synced, 1);
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const auto at = static_cast<size_t>(id);
    EXPECT_EQ(differing(trained_values(*optimizer, model, id), masters[at]), 0) << "tensor " << id << "\n" << model.text();
    EXPECT_EQ(differing(read_tensor(*optimizer, model, id, ZERO_SLOT_AVERAGE), averages[at]), 0) << "tensor " << id << "\n" << model.text();
    if (model.recipe.master == ZERO_MASTER_REMAINDER || model.recipe.coded) continue;
    std::vector<std::byte> params(masters[at].size() * static_cast<size_t>(dtype_nbytes(model.recipe.dtype)));
    expect_ok(run_task(*optimizer, optimizer->read(id, ZERO_SLOT_PARAM, 0, params.data(), std::ssize(masters[at]))), "read");
    EXPECT_EQ(params, encode(masters[at], model.recipe.dtype)) << "tensor " << id << "\n" << model.text();
  }
  expect_same_on_all_ranks(*optimizer);
}

TEST(Neighbours, AverageMastersAndAverages) {
  for (const RingWorld &world : kRingWorlds) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      for (const DType dtype : {DType::bf16, DType::f16}) {
        Model model = ring_model(world, {700, 17, 0, 257});
        model.recipe.dtype = dtype;
        model.recipe.average = true;
        if (dtype == DType::bf16 && stage % 2 == 1) model.recipe.master = ZERO_MASTER_REMAINDER;
        Manner manner;
        manner.stage = stage;
        run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { expect_mixed_values(group, model, manner); });
      }
    }
  }
}

TEST(Neighbours, AverageMastersOf8BitParameters) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    Model model = ring_model({4, 2}, {700, 1024, 257});
    model.recipe.coded = true;
    model.recipe.average = true;
    Manner manner;
    manner.stage = stage;
    run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { expect_mixed_values(group, model, manner); });
  }
}

/// A round sends parameters in full within a replica.
TEST(Neighbours, AverageMastersThatParametersFollowByDifferences) {
  for (const int64_t stage : {1, 2}) {
    for (const int64_t code : {ZERO_CODE_F8, ZERO_CODE_I4}) {
      Model model = ring_model({4, 2}, {3000, 17, 257});
      model.recipe.gather_code = code;
      model.recipe.average = true;
      Manner manner;
      manner.stage = stage;
      run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { expect_mixed_values(group, model, manner); });
    }
  }
}

/// The recipe is the same; where shards lie and how data moves is not.
TEST(Neighbours, HaveTheSameBitsInEveryManner) {
  const int64_t models = full_tests() ? 100 : few_tests() ? 4 : 8;
  for (int64_t i = 0; i < models; ++i) {
    const auto seed = static_cast<uint64_t>(i) + 1;
    const RingWorld &world = kRingWorlds[static_cast<size_t>(i) % std::size(kRingWorlds)];
    const int64_t ranks = world.replicas * world.replica_ranks;
    Model model = random_model(seed + 900, ranks, 1 << 12);
    // Some replica would have no weight at all in some step.
    if (model.divisor == ZERO_DIVISOR_WEIGHTS) model.divisor = ZERO_DIVISOR_RANKS;
    model.recipe = random_recipe(seed, model.algorithm);
    if (model.recipe.master == ZERO_MASTER_NONE) model.recipe.master = ZERO_MASTER_F32;
    model.recipe.replica_ranks = world.replica_ranks;
    model.recipe.sync_period = 2;
    model.recipe.sync_after = i % 2;
    model.recipe.ring = true;
    model.steps = 7;
    run_world(ranks, [&](const std::shared_ptr<Group> &group) { (void)expect_same_in_every_manner(group, model, seed * 1000); });
  }
}

}  // namespace
}  // namespace zero::test::neighbours_test
