/// @file Tensors that steps leave untouched: updates take the number of the tensor's own update, as
/// in PyTorch, and averages move.
#include "tests/algorithms.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/untouched.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace zero::test::untouched_test {
namespace {

class Untouched : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, Untouched, testing::Range<int64_t>(0, 4));

/// A model in a storage by chance. Norms depend on all tensors, and random numbers on the run's
/// step, so that it has neither.
Model model_by_chance(const char *algorithm, int64_t ranks, uint64_t seed) {
  Model model;
  model.seed = seed;
  model.ranks = ranks;
  model.counts = {700, 31, 0, 1300, 256};
  model.algorithm = algorithm;
  model.steps = 12;
  model.divisor = seed % 2 == 0 ? ZERO_DIVISOR_RANKS : ZERO_DIVISOR_ONE;
  if (model.algorithm == "sgd") model.momentum = 0.9;
  if (model.algorithm == "sgd") model.hyper = {{ZERO_KEY_DAMPENING, 0.5}};
  if (model.algorithm == "adagrad") model.hyper = {{ZERO_KEY_LR_DECAY, 0.1}};
  model.recipe = random_recipe(seed, model.algorithm);
  model.recipe.stochastic = false;
  model.recipe.clip_norm = 0;
  model.recipe.loss_scale = 1;
  model.recipe.overflow_step = -1;
  model.recipe.sets = 1;
  model.recipe.average = false;
  model.recipe.frozen_every = 0;
  model.recipe.untouched = true;
  return model;
}

/// Each tensor ends as in an optimizer of its own that steps only when a rank fills the tensor.
TEST_P(Untouched, TensorsThatStayUntouchedForAWhileHaveTheBitsOfTensorsAlone) {
  int64_t cases = 0;
  for (const char *algorithm : all_names()) {
    for (const int64_t ranks : {1, 2, 3}) {
      const uint64_t seed = static_cast<uint64_t>(++cases * 4 + GetParam());
      const Model model = model_by_chance(algorithm, ranks, seed);
      Model lone = model;
      lone.recipe.untouched = false;
      Manner manner = random_manner(seed, ranks);
      manner.stage = GetParam();
      const Manner other = random_manner(seed + 1000, ranks);
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const auto together = begin_with(group, model, manner, {0, 1, 2, 3, 4});
        std::vector<std::shared_ptr<Optimizer>> alone;
        std::vector<int64_t> updates(model.counts.size());
        for (int64_t id = 0; id < model.tensors(); ++id) alone.push_back(begin_with(group, lone, other, {id}));
        for (int64_t step = 0; step < model.steps; ++step) {
          for (int64_t id = model.tensors() - 1; id >= 0; --id) {
            const int64_t who = filler(model, step, id);
            if (who == kNobody || model.counts[static_cast<size_t>(id)] == 0) continue;
            if (gives(*together, who)) give(*alone[static_cast<size_t>(id)], lone, step, id, 0);
            finish_step(*alone[static_cast<size_t>(id)], other.splits && step % 2 == 0);
            ++updates[static_cast<size_t>(id)];
          }
          for (int64_t id = model.tensors() - 1; id >= 0; --id) {
            if (gives(*together, filler(model, step, id))) give(*together, model, step, id, id);
          }
          finish_step(*together, manner.splits && step % 2 == 1);
        }
        for (int64_t id = 0; id < model.tensors(); ++id) {
          EXPECT_EQ(bytes_of(*together, id), bytes_of(*alone[static_cast<size_t>(id)], 0)) << id << " " << model.text() << manner.text();
          const bool is_empty = model.counts[static_cast<size_t>(id)] == 0;
          EXPECT_TRUE(is_empty || updates_of(*together, id) == updates[static_cast<size_t>(id)]) << id;
        }
        expect_same_on_all_ranks(*together);
      }, manner.threads);
    }
  }
}

/// The formulas of torch.optim and of LAMB in float64, as one tensor's own steps.
struct InFloat64 {
  const Model &model;
  std::vector<double> param, first, second;
  int64_t updates = 0;

  double hyper(int32_t key, double otherwise) const {
    for (const auto &[number, value] : model.hyper) {
      if (number == key) return value;
    }
    return otherwise;
  }

  void update(const std::vector<double> &gradient) {
    constexpr double kRate = 0.01;
    const std::string &name = model.algorithm;
    const double decay = model.weight_decay;
    const auto t = static_cast<double>(++updates);
    std::vector<double> direction(param.size());
    for (size_t i = 0; i < param.size(); ++i) {
      double g = gradient[i];
      if (name == "sgd" || name == "adam" || name == "adagrad") g += decay * param[i];
      if (name == "adamw") param[i] *= 1 - kRate * decay;
      if (name == "sgd") {
        first[i] = updates == 1 ? g : 0.9 * first[i] + (1 - hyper(ZERO_KEY_DAMPENING, 0)) * g;
        param[i] -= kRate * first[i];
      } else if (name == "adagrad") {
        second[i] += g * g;
        param[i] -= kRate / (1 + (t - 1) * hyper(ZERO_KEY_LR_DECAY, 0)) * g / (std::sqrt(second[i]) + 1e-10);
      } else {
        first[i] = 0.9 * first[i] + 0.1 * g;
        second[i] = 0.999 * second[i] + 0.001 * g * g;
        const double epsilon = name == "lamb" ? 1e-6 : 1e-8;
        direction[i] = first[i] / (1 - std::pow(0.9, t)) / (std::sqrt(second[i] / (1 - std::pow(0.999, t))) + epsilon);
        if (name == "lamb") direction[i] += decay * param[i];
      }
    }
    if (name == "sgd" || name == "adagrad") return;
    double ratio = 1;
    if (name == "lamb") ratio = norm_of(param) / norm_of(direction);
    for (size_t i = 0; i < param.size(); ++i) param[i] -= kRate * ratio * direction[i];
  }

  static double norm_of(const std::vector<double> &values) {
    double squares = 0;
    for (const double value : values) squares += value * value;
    return std::sqrt(squares);
  }
};

/// The rules that depend on the number of updates. A tensor of few updates among many steps.
TEST_P(Untouched, RulesFollowPyTorchsFormulasInFloat64) {
  for (const char *algorithm : {"sgd", "adam", "adamw", "adagrad", "lamb"}) {
    for (const int64_t ranks : {1, 3}) {
      Model model;
      model.seed = 77;
      model.ranks = ranks;
      model.counts = {300, 40};
      model.algorithm = algorithm;
      model.divisor = ZERO_DIVISOR_RANKS;
      model.recipe.untouched = true;
      if (model.algorithm == "sgd") model.momentum = 0.9;
      if (model.algorithm == "sgd") model.hyper = {{ZERO_KEY_DAMPENING, 0.5}};
      if (model.algorithm == "adagrad") model.hyper = {{ZERO_KEY_LR_DECAY, 0.1}};
      Manner manner;
      manner.stage = GetParam();
      manner.norm = ranks == 3;
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = begin_with(group, model, manner, {0, 1});
        InFloat64 expected{model, {}, std::vector<double>(40), std::vector<double>(40)};
        for (int64_t k = 0; k < 40; ++k) expected.param.push_back(first_value_at(model, 1, k));
        for (int64_t step = 0; step < 60; ++step) {
          give(*optimizer, model, step, 0, 0);
          if (step % 13 == 7 || step > 54) {
            give(*optimizer, model, step, 1, 1);
            std::vector<double> gradient(40);
            for (int64_t rank = 0; rank < ranks; ++rank) {
              for (int64_t k = 0; k < 40; ++k)
                gradient[static_cast<size_t>(k)] += gradient_at(model, step, rank, 1, k) / static_cast<double>(ranks);
            }
            expected.update(gradient);
          }
          finish_step(*optimizer, step % 2 == 1);
        }
        EXPECT_EQ(updates_of(*optimizer, 1), expected.updates);
        EXPECT_EQ(updates_of(*optimizer, 0), 60);
        const std::vector<float> params = read_entries<float>(*optimizer, 1, ZERO_SLOT_PARAM, 40);
        for (size_t k = 0; k < 40; ++k) EXPECT_NEAR(params[k], expected.param[k], 2e-6) << algorithm << " element " << k;
      });
    }
  }
}

/// With a constant gradient AdamW moves by the rate in every update, whichever step of the run it
/// is.
TEST_P(Untouched, AFirstGradientInStep1001MovesByTheRate) {
  constexpr double kRate = 0.01;
  for (const int64_t ranks : {1, 2}) {
    Model model;
    model.ranks = ranks;
    model.counts = {1, 1};
    model.weight_decay = 0;
    model.recipe.untouched = true;
    Manner manner;
    manner.stage = GetParam();
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begin_with(group, model, manner, {0, 1});
      const float gradient = 0.25F;
      for (int64_t step = 1; step < 1001 + 20; ++step) {
        expect_ok(optimizer->grad_ready(0, &gradient, 0, 1), "grad_ready");
        const float before = read_entries<float>(*optimizer, 1, ZERO_SLOT_PARAM, 1)[0];
        if (step > 1000) expect_ok(optimizer->grad_ready(1, &gradient, 0, 1), "grad_ready");
        finish_step(*optimizer, false);
        const float after = read_entries<float>(*optimizer, 1, ZERO_SLOT_PARAM, 1)[0];
        ASSERT_NEAR((before - after) / kRate, step > 1000 ? 1.0 : 0.0, 1e-4) << "step " << step;
      }
      EXPECT_EQ(updates_of(*optimizer, 1), 20);
    });
  }
}

/// What averages follow: the parameter as it is updated.
std::vector<float> followed(Optimizer &optimizer, const Model &model, int64_t id) {
  const int64_t count = model.counts[static_cast<size_t>(id)];
  const bool is_wide = model.dtype(id) == DType::f32 && !model.coded(id);
  if (is_wide) return read_entries<float>(optimizer, id, ZERO_SLOT_PARAM, count);
  if (model.recipe.master == ZERO_MASTER_F32) return read_entries<float>(optimizer, id, ZERO_SLOT_MASTER, count);
  const auto halves = read_entries<uint16_t>(optimizer, id, ZERO_SLOT_PARAM, count);
  if (model.recipe.master == ZERO_MASTER_NONE) return decode(halves.data(), model.dtype(id), count);
  std::vector<float> joined(static_cast<size_t>(count));
  const auto lower = read_entries<uint16_t>(optimizer, id, ZERO_SLOT_MASTER, count);
  kernels::supported().front()->join(joined.data(), halves.data(), lower.data(), count);
  return joined;
}

/// By its rule, whatever becomes of the tensor.
TEST_P(Untouched, AveragesMoveInEveryStepThatIsApplied) {
  constexpr double kDecay = 0.75;
  int64_t cases = 0;
  for (const char *algorithm : all_names()) {
    for (int64_t form = 0; form < 5; ++form) {
      Model model;
      model.seed = 40 + static_cast<uint64_t>(++cases);
      model.ranks = cases % 3 + 1;
      model.counts = {700, 31, 1300, 256};
      model.algorithm = algorithm;
      model.momentum = model.algorithm == "sgd" ? 0.9 : 0;
      model.hyper = {{ZERO_KEY_AVERAGE_DECAY, kDecay}};
      model.recipe.untouched = true;
      model.recipe.average = true;
      model.recipe.coded = form == 1;
      if (form >= 2) model.recipe.dtype = DType::bf16;
      if (form >= 2) model.recipe.master = form - 2;
      Manner manner = random_manner(model.seed, model.ranks);
      manner.stage = GetParam();
      run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = begin_with(group, model, manner, {0, 1, 2, 3});
        std::vector<std::vector<float>> averages;
        for (int64_t id = 0; id < model.tensors(); ++id)
          averages.push_back(read_entries<float>(*optimizer, id, ZERO_SLOT_AVERAGE, model.counts[static_cast<size_t>(id)]));
        for (int64_t step = 0; step < 8; ++step) {
          // Of step 5 nothing becomes at all, in step 6 nobody gives anything.
          const float infinity = std::numeric_limits<float>::infinity();
          const std::vector<std::byte> bad = encode(std::vector<float>(31, infinity), model.grad_dtype(1));
          if (step == 5) expect_ok(optimizer->grad_ready(1, bad.data(), 0, 31), "grad_ready");
          for (int64_t id = 0; id < model.tensors() && step < 5; ++id) {
            if (gives(*optimizer, filler(model, step, id))) give(*optimizer, model, step, id, id);
          }
          finish_step(*optimizer, manner.splits && step % 2 == 1);
          for (int64_t id = 0; id < model.tensors(); ++id) {
            std::vector<float> &expected = averages[static_cast<size_t>(id)];
            const std::vector<float> kept = followed(*optimizer, model, id);
            for (size_t i = 0; i < expected.size() && step != 5; ++i)
              expected[i] = std::fma(static_cast<float>(1 - kDecay), kept[i] - expected[i], expected[i]);
            const auto actual = read_entries<float>(*optimizer, id, ZERO_SLOT_AVERAGE, std::ssize(expected));
            EXPECT_EQ(differing(actual, expected), 0) << "step " << step << " tensor " << id << " " << model.text() << manner.text();
          }
        }
        expect_same_on_all_ranks(*optimizer);
      }, manner.threads);
    }
  }
}

/// An average of 0 comes near a parameter of 1 within 5000 steps, three of which fill the tensor.
TEST(UntouchedTensors, AveragesOfTensorsThatAreSeldomFilledComeToTheirParameters) {
  Model model;
  model.counts = {1};
  model.weight_decay = 0;
  model.hyper = {{ZERO_KEY_LR, 0}};
  model.recipe.untouched = true;
  model.recipe.average = true;
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begin_with(group, model, Manner{}, {0});
    const float one = 1;
    const float nothing = 0;
    expect_ok(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_PARAM, 0, &one, 1)), "write");
    expect_ok(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_AVERAGE, 0, &nothing, 1)), "write");
    expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
    for (int64_t step = 0; step < 5000; ++step) {
      if (step % 2000 == 0) expect_ok(optimizer->grad_ready(0, &one, 0, 1), "grad_ready");
      finish_step(*optimizer, false);
    }
    EXPECT_EQ(updates_of(*optimizer, 0), 3);
    EXPECT_NEAR(read_entries<float>(*optimizer, 0, ZERO_SLOT_AVERAGE, 1)[0], 1 - std::pow(0.999, 5000), 1e-4);
  });
}

}  // namespace
}  // namespace zero::test::untouched_test
