/// @file 1-bit Adam: the configs and calls that are refused, by name.
#include "tests/engine/freeze_rule.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace zero::test::code_freeze_limits_test {
namespace {

constexpr SparseCode kSign{.number = ZERO_CODE_SIGN, .after = 3};

/// What gradients under way carry does not change behind them.
TEST(CodeFreezeLimits, RefusesCallsThatChangeWhatGradientsCarry) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const Model model = freeze_model({2, 1}, kSign);
    const Manner manner;
    const auto optimizer = begun_optimizer(group, model, manner);
    const Status micro = run_task(*optimizer, optimizer->micro_step(ZERO_MICRO_STEP_REDUCE));
    EXPECT_EQ(micro.code(), ZERO_E_UNSUPPORTED);
    EXPECT_TRUE(contains(micro, "ZERO_KEY_CODE_FREEZE is 1 and the kind is ZERO_MICRO_STEP_REDUCE")) << micro.text();
    const Status changed = optimizer->set_f64(0, ZERO_KEY_CODE_FREEZE, 0);
    EXPECT_EQ(changed.code(), ZERO_E_UNSUPPORTED);
    EXPECT_TRUE(contains(changed, "ZERO_KEY_CODE_FREEZE stays as the config")) << changed.text();
    give_gradients(*optimizer, model, manner, 0);
    const Status beta = optimizer->set_f64(0, ZERO_KEY_BETA1, 0.5);
    EXPECT_EQ(beta.code(), ZERO_E_STATE);
    EXPECT_TRUE(contains(beta, "with ZERO_KEY_CODE_FREEZE they carry first moments by ZERO_KEY_BETA1")) << beta.text();
    const float moment = 0;
    const Status written = run_task(*optimizer, optimizer->write(0, ZERO_SLOT_FIRST_MOMENT, 0, &moment, 1));
    EXPECT_EQ(written.code(), ZERO_E_STATE);
    EXPECT_TRUE(contains(written, "with ZERO_KEY_CODE_FREEZE they carry first moments")) << written.text();
    expect_ok(optimizer->set_f64(0, ZERO_KEY_LR, 0.5), "set_f64");
    expect_ok(run_task(*optimizer, optimizer->step(nullptr)), "step");
    expect_ok(optimizer->set_f64(0, ZERO_KEY_BETA1, 0.5), "set_f64");
  });
}

TEST(CodeFreezeLimits, IsRefusedByNameWhereItDoesNotWork) {
  const WholeKeys works = {{ZERO_KEY_REPLICA_RANKS, 1},
                           {ZERO_KEY_CODE_FREEZE, 1},
                           {ZERO_KEY_GRAD_CODE, ZERO_CODE_SIGN},
                           {ZERO_KEY_RESIDUAL, ZERO_RESIDUAL_F32},
                           {ZERO_KEY_CODE_AFTER, 2}};
  const std::vector<Refused> kRefused = {
      {{{ZERO_KEY_CODE_AFTER, 0}}, {}, ZERO_E_UNSUPPORTED, "ZERO_KEY_CODE_FREEZE is 1 and ZERO_KEY_CODE_AFTER is 0, but"},
      {{{ZERO_KEY_GRAD_CODE, ZERO_CODE_I8}, {ZERO_KEY_RESIDUAL, ZERO_RESIDUAL_NONE}},
       {},
       ZERO_E_UNSUPPORTED,
       "ZERO_KEY_CODE_FREEZE is 1 and ZERO_KEY_RESIDUAL is ZERO_RESIDUAL_NONE, but"},
      {{{ZERO_KEY_GRAD_CODE, ZERO_CODE_LOW_RANK}},
       {},
       ZERO_E_UNSUPPORTED,
       "ZERO_KEY_CODE_FREEZE is 1 and ZERO_KEY_GRAD_CODE is ZERO_CODE_LOW_RANK, but"},
      {{{ZERO_KEY_GRAD_CODE, ZERO_CODE_TOP}},
       {{ZERO_KEY_CODE_MOMENTUM, 0.5}},
       ZERO_E_UNSUPPORTED,
       "ZERO_KEY_CODE_FREEZE is 1 and ZERO_KEY_CODE_MOMENTUM is 0.5, but"},
      {{{ZERO_KEY_SYNC_PERIOD, 4}, {ZERO_KEY_SYNC_AFTER, 9}},
       {},
       ZERO_E_UNSUPPORTED,
       "ZERO_KEY_CODE_FREEZE is 1 and ZERO_KEY_SYNC_PERIOD is 4, but"},
      {{}, {{ZERO_KEY_CLIP_NORM, 1}}, ZERO_E_UNSUPPORTED, "ZERO_KEY_CODE_FREEZE is 1 and ZERO_KEY_CLIP_NORM is 1, but"},
      {{}, {{ZERO_KEY_CLIP_VALUE, 0.5}}, ZERO_E_UNSUPPORTED, "ZERO_KEY_CODE_FREEZE is 1 and ZERO_KEY_CLIP_VALUE is 0.5, but"},
      {{{ZERO_KEY_UNFILLED, ZERO_UNFILLED_UNTOUCHED}}, {}, ZERO_E_UNSUPPORTED, "ZERO_KEY_UNFILLED is ZERO_UNFILLED_UNTOUCHED"},
  };
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    for (const Refused &refused : kRefused) expect_refused(group, works, refused);
    expect_refused(group, {{ZERO_KEY_REPLICA_RANKS, 1}, {ZERO_KEY_CODE_FREEZE, 1}}, ZERO_E_INVALID_ARGUMENT,
                   "ZERO_KEY_CODE_FREEZE is 1, but has no effect while ZERO_KEY_GRAD_CODE is ZERO_CODE_NONE");
  });
}

TEST(CodeFreezeLimits, IsRefusedAtSealForOtherAlgorithmsAndMoments) {
  const auto expect_not_sealed = [](const Model &model, const char *words) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      std::shared_ptr<Optimizer> optimizer;
      expect_ok(Optimizer::create(group, make_config(model, Manner{}), &optimizer), "create");
      int64_t id = 0;
      const int64_t count = 300;
      expect_ok(optimizer->add_param(nullptr, "p", ZERO_DTYPE_F32, &count, 1, &id), "add_param");
      const Status status = optimizer->seal_queue()->run(optimizer->seal());
      EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED) << status.text();
      EXPECT_TRUE(contains(status, words)) << status.text();
    });
  };
  const Model works = freeze_model({2, 1}, kSign);
  for (const char *algorithm : {"sgd", "adagrad", "lion", "lamb", "custom"}) {
    Model model = works;
    model.algorithm = algorithm;
    const std::string words = "ZERO_KEY_CODE_FREEZE is 1 and ZERO_KEY_ALGORITHM of its set is \"" + model.algorithm + "\"";
    expect_not_sealed(model, words.c_str());
  }
  for (const DType dtype : {DType::bf16, DType::f8e4m3}) {
    Model model = works;
    model.recipe.first_moment = dtype;
    expect_not_sealed(model, "ZERO_KEY_CODE_FREEZE is 1 and ZERO_KEY_FIRST_MOMENT_DTYPE is");
  }
  for (const DType dtype : {DType::bf16, DType::f8ue5m3}) {
    Model model = works;
    model.recipe.second_moment = dtype;
    expect_not_sealed(model, "ZERO_KEY_CODE_FREEZE is 1 and ZERO_KEY_SECOND_MOMENT_DTYPE is");
  }
}

TEST(CodeFreezeLimits, MustBeWantedByAllRanks) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    Model model = freeze_model({2, 1}, kSign);
    if (group->rank() == 1) model.recipe.keys.pop_back();
    std::shared_ptr<Optimizer> optimizer;
    expect_ok(Optimizer::create(group, make_config(model, Manner{}), &optimizer), "create");
    const Status status = optimizer->seal_queue()->run(optimizer->seal());
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
    EXPECT_TRUE(contains(status, "ZERO_KEY_CODE_FREEZE")) << status.text();
  });
}

}  // namespace
}  // namespace zero::test::code_freeze_limits_test
