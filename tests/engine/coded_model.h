/// @file Models whose replicas send codes, for tests of codes and of residuals.
#pragma once

#include "tests/engine/rank_worlds.h"
#include "tests/engine/refused_keys.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace zero::test {

inline constexpr std::array<int64_t, 3> kCodes = {ZERO_CODE_F8, ZERO_CODE_I8, ZERO_CODE_I4};

struct CodedWorld {
  int64_t ranks;
  int64_t replica_ranks;
};

/// Tensors of more and of fewer elements than a line has.
inline Model coded_model(const CodedWorld &world, int64_t grad_code) {
  Model model;
  model.seed = static_cast<uint64_t>(world.ranks * 10 + grad_code);
  model.ranks = world.ranks;
  model.counts = {3000, 17, 0, 1024, 1, 257, 255, 256, 700};
  model.recipe.replica_ranks = world.replica_ranks;
  model.recipe.grad_code = grad_code;
  return model;
}

/// A run in which a step is skipped goes on as one that never made it. `in_full`: the number of a step that, where it is skipped, is one
/// in full.
inline void expect_skipped_steps_leave_nothing(const Model &plain, const std::string &what, int64_t in_full = -1) {
  constexpr int64_t kSteps = 5;
  for (int64_t skipped = 0; skipped <= kSteps; ++skipped) {
    Model model = plain;
    if (skipped % 2 == 1) model.recipe.micro_steps = {ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LAST};
    run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
      Manner manner;
      manner.stage = skipped % 4;
      const auto run = [&](int64_t overflow) {
        Model with = model;
        if (skipped == in_full && overflow >= 0) with.recipe.flush_period = in_full + 1;
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, with, manner);
        const auto micro_steps = std::max<int64_t>(std::ssize(model.recipe.micro_steps), 1);
        for (int64_t step = 0; step <= kSteps; ++step) {
          if (step == skipped && overflow < 0) continue;
          Model now = model;
          now.recipe.overflow_step = step == overflow ? step * micro_steps : -1;
          const zero_step_result result = train_step(*optimizer, now, manner, step);
          EXPECT_EQ(result.skipped, step == overflow ? 1 : 0) << "step " << step << " " << what;
        }
        return read_slot(*optimizer, model, ZERO_SLOT_PARAM);
      };
      EXPECT_EQ(differing(run(skipped), run(-1)), 0) << "step " << skipped << " " << what;
    });
  }
}

/// Loss scales that change from step to step leave the bits of one that stays.
inline void expect_loss_scale_followed(const Model &plain, const std::string &what) {
  run_world(plain.ranks, [&](const std::shared_ptr<Group> &group) {
    Manner manner;
    manner.stage = 2;
    const auto run = [&](const std::vector<double> &scales) {
      const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, plain, manner);
      for (int64_t step = 0; step < std::ssize(scales); ++step) {
        Model now = plain;
        now.recipe.loss_scale = scales[static_cast<size_t>(step)];
        expect_ok(optimizer->set_f64(0, ZERO_KEY_LOSS_SCALE, now.recipe.loss_scale), "set_f64");
        (void)train_step(*optimizer, now, manner, step);
      }
      return read_slot(*optimizer, plain, ZERO_SLOT_PARAM);
    };
    EXPECT_EQ(differing(run({1, 1, 1, 1, 1}), run({4, 1024, 1024, 2, 1})), 0) << what;
  });
}

}  // namespace zero::test
