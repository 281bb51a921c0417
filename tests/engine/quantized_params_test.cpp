/// @file 8-bit parameters: what the caller sees of them, what ranks hold and send, and what they refuse.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/kernels/storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace zero::test::quantized_params_test {
namespace {

constexpr int64_t kCount = 5000;  ///< not whole lines
constexpr int64_t kSmall = 100;

Model model_of(int64_t ranks, DType dtype = DType::bf16) {
  Model model;
  model.ranks = ranks;
  model.counts = {kCount, kSmall, 0, 256, 20'000};
  model.recipe.dtype = dtype;
  model.recipe.coded = true;
  return model;
}

Manner manner_of(int64_t stage) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 8192;
  return manner;
}

/// The values of the codes without a sign, ascending: by the format's definition.
std::vector<double> code_values() {
  std::vector<double> values;
  for (int code = 0; code < 0x7f; ++code) values.push_back(kernels::test::f8_value(DType::f8e4m3, static_cast<uint8_t>(code)));
  return values;
}

/// The value of the code that is nearest, an even one where two are.
double nearest_code(double wanted) {
  static const std::vector<double> values = code_values();
  const auto above = std::lower_bound(values.begin() + 1, values.end() - 1, wanted);
  const double closer = std::fabs(above[-1] - wanted) - std::fabs(*above - wanted);
  return closer > 0 || (closer == 0 && (above - values.begin()) % 2 == 0) ? *above : above[-1];
}

/// The values that codes of `values` stand for, in float64 by the format's definition.
std::vector<float> coded_values(const std::vector<float> &values) {
  std::vector<float> result;
  for (size_t begin = 0; begin < values.size(); begin += kLine) {
    const size_t end = std::min(begin + kLine, values.size());
    float most = 0;
    for (size_t i = begin; i < end; ++i) most = std::max(most, std::fabs(values[i]));
    const float scale = most / 448;
    for (size_t i = begin; i < end; ++i) {
      const double code = nearest_code(std::fabs(values[i]) * (1 / scale));
      result.push_back(static_cast<float>(std::copysign(code, values[i]) * scale));
    }
  }
  return result;
}

std::vector<float> acquired(Optimizer &optimizer, const Model &model, int64_t id) {
  void *data = nullptr;
  EXPECT_TRUE(run_task(optimizer, optimizer.param_acquire(id, nullptr, 0, &data)).ok());
  std::vector<float> values = decode(data, model.dtype(id), model.counts[static_cast<size_t>(id)]);
  EXPECT_TRUE(optimizer.param_release(id).ok());
  return values;
}

std::vector<float> masters(Optimizer &optimizer, int64_t id, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  const Status status = run_task(optimizer, optimizer.read(id, ZERO_SLOT_MASTER, 0, values.data(), count));
  EXPECT_TRUE(status.ok()) << status.text();
  return values;
}

void expect_codes_of_masters(Optimizer &optimizer, const Model &model, int64_t id) {
  const std::vector<float> exact = coded_values(masters(optimizer, id, model.counts[static_cast<size_t>(id)]));
  const std::vector<float> wanted = decode(encode(exact, model.dtype(id)).data(), model.dtype(id), std::ssize(exact));
  EXPECT_EQ(differing(acquired(optimizer, model, id), wanted), 0) << "tensor " << id;
}

class QuantizedParams : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(StageRanks, QuantizedParams, testing::Combine(testing::Range<int64_t>(0, 4), testing::Values(1, 2, 3)));

TEST_P(QuantizedParams, AreTheCodesOfTheirMastersFromTheFirstValuesOn) {
  const auto [stage, ranks] = GetParam();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const int32_t source : {ZERO_SOURCE_LOCAL, ZERO_SOURCE_ROOT, ZERO_SOURCE_SHARDS}) {
      const Model model = model_of(ranks, dtype);
      Manner manner = manner_of(stage);
      manner.source = source;
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = begun_optimizer(group, model, manner);
        for (int64_t step = 0; step < 3; ++step) {
          for (const int64_t id : {0, 3, 4}) expect_codes_of_masters(*optimizer, model, id);
          (void)train_step(*optimizer, model, manner, step);
        }
      });
    }
  }
}

TEST_P(QuantizedParams, BeginWithMastersAsTheyWereWritten) {
  const auto [stage, ranks] = GetParam();
  const Model model = model_of(ranks, DType::f32);
  run_world(ranks, [&, stage = stage](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner_of(stage));
    begin_training(*optimizer, model, manner_of(stage));
    std::vector<float> given;
    for (int64_t i = 0; i < kCount; ++i) given.push_back(first_value_at(model, 0, i));
    EXPECT_EQ(differing(masters(*optimizer, 0, kCount), given), 0);
  });
}

TEST_P(QuantizedParams, TakeInitialisersWithEveryRankFillingItsOwnPart) {
  const auto [stage, ranks] = GetParam();
  const Model model = model_of(ranks);
  run_world(ranks, [&, stage = stage](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner_of(stage));
    for (int64_t id = 0; id < model.tensors(); ++id) ASSERT_TRUE(optimizer->init_param(id, ZERO_INITIALISER_NORMAL, 0, 0.02, 7).ok());
    ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
    for (const int64_t id : {0, 3, 4}) expect_codes_of_masters(*optimizer, model, id);
    zero_verify_result result{};
    ASSERT_TRUE(run_task(*optimizer, optimizer->verify(&result)).ok());
    EXPECT_EQ(result.found, ZERO_FINDING_NONE);
  });
}

/// 700 elements are three lines; writing one code moves the masters of its line and of no other.
TEST_P(QuantizedParams, MastersFollowCodesThatWereWritten) {
  const auto [stage, ranks] = GetParam();
  const Model model = model_of(ranks);
  run_world(ranks, [&, stage = stage](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner_of(stage));
    begin_training(*optimizer, model, manner_of(stage));
    const std::vector<float> before = masters(*optimizer, 0, kCount);
    const std::vector<float> seen = acquired(*optimizer, model, 0);
    const uint8_t one = 0x38;  // 1.0
    const int64_t mine = group->rank() == 0 ? 1 : 0;
    ASSERT_TRUE(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_PARAM, 300, &one, mine)).ok());
    zero_verify_result result{};
    EXPECT_EQ(run_task(*optimizer, optimizer->verify(&result)).code(), ZERO_E_STATE);
    ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
    const std::vector<float> after = masters(*optimizer, 0, kCount);
    float scale = 0;
    ASSERT_TRUE(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_PARAM_SCALE, 1, &scale, 1)).ok());
    for (size_t i = 0; i < after.size(); ++i) {
      const float wanted = i == 300 ? scale : i / 256 == 1 ? seen[i] : before[i];
      EXPECT_NEAR(after[i], wanted, i / 256 == 1 ? std::fabs(wanted) / 128 : 0) << i;  // what is seen is rounded to bf16
    }
  });
}

/// Line 0 gets codes and a scale of its own, line 1 codes that its scale was not made for; others are as masters were encoded.
void write_lines(Optimizer &optimizer) {
  const int64_t all = optimizer.group()->rank() == 0 ? 1 : 0;
  std::vector<uint8_t> codes;
  for (int i = 0; i < 2 * kLine; ++i) codes.push_back(static_cast<uint8_t>(i * 7 % 0x50 | (i % 3 == 0 ? 0x80 : 0)));
  const float scale = 0.37F;
  ASSERT_TRUE(run_task(optimizer, optimizer.write(0, ZERO_SLOT_PARAM, 0, codes.data(), all * std::ssize(codes))).ok());
  ASSERT_TRUE(run_task(optimizer, optimizer.write(0, ZERO_SLOT_PARAM_SCALE, 0, &scale, all)).ok());
  ASSERT_TRUE(run_task(optimizer, optimizer.begin(ZERO_SOURCE_SHARDS)).ok());
}

std::vector<std::vector<std::byte>> saved(Optimizer &optimizer, int64_t id) {
  std::vector<std::vector<std::byte>> slots;
  int64_t count = 0;
  EXPECT_TRUE(optimizer.slot_count(id, &count).ok());
  for (int64_t i = 0; i < count; ++i) {
    SlotInfo info{};
    EXPECT_TRUE(optimizer.slot(id, i, &info).ok());
    slots.emplace_back(static_cast<size_t>(info.count * dtype_nbytes(info.dtype)));
    EXPECT_TRUE(run_task(optimizer, optimizer.read(id, info.number, 0, slots.back().data(), info.count)).ok());
  }
  return slots;
}

void restore(Optimizer &optimizer, int64_t id, const std::vector<std::vector<std::byte>> &slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    SlotInfo info{};
    EXPECT_TRUE(optimizer.slot(id, static_cast<int64_t>(i), &info).ok());
    const int64_t mine = optimizer.group()->rank() == 0 ? info.count : 0;
    EXPECT_TRUE(run_task(optimizer, optimizer.write(id, info.number, 0, slots[i].data(), mine)).ok());
  }
}

TEST_P(QuantizedParams, ComeBackFromShardsAsTheyWereSaved) {
  const auto [stage, ranks] = GetParam();
  const Model model = model_of(ranks);
  run_world(ranks, [&, stage = stage](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner_of(stage));
    write_lines(*optimizer);
    for (int64_t step = 0; step < 2; ++step) {
      const auto again = make_optimizer(group, model, manner_of(stage));
      for (int64_t id = 0; id < model.tensors(); ++id) restore(*again, id, saved(*optimizer, id));
      ASSERT_TRUE(run_task(*again, again->begin(ZERO_SOURCE_SHARDS)).ok());
      for (int64_t id = 0; id < model.tensors(); ++id) {
        EXPECT_TRUE(saved(*again, id) == saved(*optimizer, id)) << "tensor " << id << " step " << step;
        EXPECT_EQ(differing(acquired(*again, model, id), acquired(*optimizer, model, id)), 0) << "tensor " << id << " step " << step;
      }
      (void)train_step(*optimizer, model, manner_of(stage), step);
    }
  });
}

TEST_P(QuantizedParams, AreHeldAndSentAsOneByteAndAScalePerLine) {
  const auto [stage, ranks] = GetParam();
  Model model = model_of(ranks);
  model.counts = {25'600, 51'200};
  run_world(ranks, [&, stage = stage, ranks = ranks](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner_of(stage));
    begin_training(*optimizer, model, manner_of(stage));
    constexpr int64_t kAll = 76'800;
    MemoryUse param{};
    ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_PARAM, &param).ok());
    const int64_t own = owned_count(*optimizer);
    const int64_t held = stage == 3 && ranks > 1 ? own : kAll;
    EXPECT_EQ(param.formula_nbytes, held + held / 64);
    (void)train_step(*optimizer, model, manner_of(stage), 0);
    const int64_t before = optimizer->traffic(OperationKind::all_gather).sent_nbytes;
    (void)train_step(*optimizer, model, manner_of(stage), 1);
    (void)acquired(*optimizer, model, 0);
    (void)acquired(*optimizer, model, 1);
    if (stage == 0) return;  // gathers gradients instead
    EXPECT_EQ(optimizer->traffic(OperationKind::all_gather).sent_nbytes - before, (ranks - 1) * (own + own / 64));
  });
}

TEST_P(QuantizedParams, AreEncodedAnewWhenAnAlgorithmOfTheCallersOwnHasChangedTheirMasters) {
  const auto [stage, ranks] = GetParam();
  Model model = model_of(ranks);
  model.algorithm = "custom";
  run_world(ranks, [&, stage = stage](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner_of(stage));
    begin_training(*optimizer, model, manner_of(stage));
    give_gradients(*optimizer, model, manner_of(stage), 0);
    ASSERT_TRUE(run_task(*optimizer, optimizer->reduce(nullptr)).ok());
    int64_t views = 0;
    ASSERT_TRUE(optimizer->view_count(&views).ok());
    for (int64_t i = 0; i < views; ++i) {
      View view{};
      ASSERT_TRUE(optimizer->view(i, ZERO_SLOT_MASTER, &view).ok());
      auto *values = static_cast<float *>(view.data);
      for (int64_t k = 0; k < view.count; ++k) values[k] = static_cast<float>(view.offset + k) / 1024 - 3;
    }
    ASSERT_TRUE(run_task(*optimizer, optimizer->gather()).ok());
    for (const int64_t id : {0, 3, 4}) {
      expect_codes_of_masters(*optimizer, model, id);
      EXPECT_EQ(masters(*optimizer, id, 256).back(), 255.0F / 1024 - 3);
    }
  });
}

TEST_P(QuantizedParams, OfForwardOnlyUseKeepNothingElse) {
  const auto [stage, ranks] = GetParam();
  Model model = model_of(ranks);
  model.recipe.frozen_every = 1;
  run_world(ranks, [&, stage = stage](const std::shared_ptr<Group> &group) {
    for (const int32_t source : {ZERO_SOURCE_LOCAL, ZERO_SOURCE_ROOT, ZERO_SOURCE_SHARDS}) {
      Manner manner = manner_of(stage);
      manner.source = source;
      const auto optimizer = begun_optimizer(group, model, manner);
      MemoryUse state{};
      ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_STATE, &state).ok());
      EXPECT_EQ(state.formula_nbytes, 0);
      for (const int64_t id : {0, 3, 4}) {
        std::vector<float> given;
        for (int64_t i = 0; i < model.counts[static_cast<size_t>(id)]; ++i) given.push_back(first_value_at(model, id, i));
        const std::vector<float> exact = coded_values(decode(encode(given, DType::bf16).data(), DType::bf16, std::ssize(given)));
        const std::vector<float> wanted = decode(encode(exact, DType::bf16).data(), DType::bf16, std::ssize(exact));
        EXPECT_EQ(differing(acquired(*optimizer, model, id), wanted), 0) << "tensor " << id;
      }
    }
  });
}

TEST_P(QuantizedParams, AreReleasedBeforeAStepAndEditedByRangeOnly) {
  const auto [stage, ranks] = GetParam();
  const Model model = model_of(ranks);
  run_world(ranks, [&, stage = stage](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner_of(stage));
    begin_training(*optimizer, model, manner_of(stage));
    void *data = nullptr;
    ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data)).ok());
    EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_STATE);
    EXPECT_EQ(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).code(), ZERO_E_STATE);
    ASSERT_TRUE(optimizer->param_release(0).ok());
    EXPECT_EQ(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)).code(), ZERO_E_STATE);
    EXPECT_EQ(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_ROOT)).code(), ZERO_E_STATE);
    EXPECT_EQ(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).code(), ZERO_OK);
  });
}

TEST(QuantizedParams, MayBeChosenForEachParameter) {
  for (const int64_t all : {int64_t{0}, int64_t{ZERO_DTYPE_F8_E4M3}}) {
    run_world(2, [all](const std::shared_ptr<Group> &group) {
      Config config;
      Config other;
      ASSERT_TRUE(config.set_i64(ZERO_KEY_PARAM_DTYPE, all).ok() && config.set_i64(ZERO_KEY_STAGE, 2).ok());
      ASSERT_TRUE(other.set_i64(ZERO_KEY_PARAM_DTYPE, ZERO_DTYPE_F8_E4M3 - all).ok());
      std::shared_ptr<Optimizer> optimizer;
      ASSERT_TRUE(Optimizer::create(group, config, &optimizer).ok());
      const int64_t counts[] = {5120, 2560};
      int64_t id = 0;
      ASSERT_TRUE(optimizer->add_param(nullptr, "as all", ZERO_DTYPE_BF16, &counts[0], 1, &id).ok());
      ASSERT_TRUE(optimizer->add_param(&other, "other", ZERO_DTYPE_BF16, &counts[1], 1, &id).ok());
      ASSERT_TRUE(group->queue()->run(optimizer->seal()).ok());
      MemoryUse param{};
      ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_PARAM, &param).ok());
      const int64_t coded = all != 0 ? counts[0] : counts[1];
      EXPECT_EQ(param.formula_nbytes, coded + coded / 64 + 2 * (counts[0] + counts[1] - coded));
    });
  }
}

TEST(QuantizedParams, NeedAnF32Master) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const auto refused = [&](int32_t dtype, int64_t param_dtype, int64_t master) {
      Config config;
      EXPECT_TRUE(config.set_i64(ZERO_KEY_PARAM_DTYPE, param_dtype).ok());
      EXPECT_TRUE(config.set_i64(ZERO_KEY_MASTER, master).ok());
      std::shared_ptr<Optimizer> optimizer;
      const Status created = Optimizer::create(group, config, &optimizer);
      if (!created.ok()) return created.code();
      int64_t id = 0;
      const int64_t count = 1000;
      return optimizer->add_param(nullptr, "p", dtype, &count, 1, &id).code();
    };
    EXPECT_EQ(refused(ZERO_DTYPE_BF16, ZERO_DTYPE_F8_E4M3, ZERO_MASTER_F32), ZERO_OK);
    EXPECT_EQ(refused(ZERO_DTYPE_BF16, ZERO_DTYPE_F8_E4M3, ZERO_MASTER_NONE), ZERO_E_UNSUPPORTED);
    EXPECT_EQ(refused(ZERO_DTYPE_BF16, ZERO_DTYPE_F8_E4M3, ZERO_MASTER_REMAINDER), ZERO_E_UNSUPPORTED);
    EXPECT_EQ(refused(ZERO_DTYPE_F32, ZERO_DTYPE_F8_E4M3, ZERO_MASTER_F32), ZERO_OK);
  });
}

}  // namespace
}  // namespace zero::test::quantized_params_test
