/// @file Layout: which tensors are stored alike and lie together, whatever the rank and the stage.
#include "layouts.h"

#include "core/partition.h"

#include <gtest/gtest.h>

namespace zero::test::layout_test {
namespace {

constexpr uint64_t kModels = 200;

/// What does not depend on who asks.
void expect_same_plan(const Layout &a, const Layout &b) {
  ASSERT_EQ(a.plan().bucket_count(), b.plan().bucket_count());
  EXPECT_EQ(a.plan().order(), b.plan().order());
  for (int64_t index = 0; index < a.plan().bucket_count(); ++index) {
    EXPECT_EQ(a.plan().bucket(index).flat, b.plan().bucket(index).flat);
    EXPECT_EQ(a.plan().bucket_cuts(index), b.plan().bucket_cuts(index));
  }
}

TEST(Layout, IsTheSameOnEveryRankAndInEveryStage) {
  for (uint64_t seed = 0; seed < kModels; ++seed) {
    const Model model = laid_out_model(seed);
    const Registered first(model, stage_of(0));
    const Layout expected = first.layout_of(0);
    for (int64_t rank = 1; rank < model.ranks; ++rank) expect_same_plan(expected, first.layout_of(rank));
    for (int64_t stage = 1; stage < 4; ++stage) {
      const Registered other(model, stage_of(stage));
      expect_same_plan(expected, other.layout_of(0));
    }
  }
}

TEST(Layout, TensorsThatShareABucketAreStoredAlike) {
  for (uint64_t seed = 0; seed < kModels; ++seed) {
    const Model model = laid_out_model(seed);
    const Registered registered(model, stage_of(0));
    const Layout layout = registered.layout_of(0);
    for (const PlannedBucket &bucket : layout.plan().buckets()) {
      for (const int64_t id : bucket.params) {
        EXPECT_EQ(&layout.format_of(id), &layout.format_in(bucket)) << model.text();
        EXPECT_EQ(layout.format_of(id).trains, !model.frozen(id)) << model.text();
        EXPECT_EQ(layout.format_of(id).coded(), model.coded(id)) << model.text();
        EXPECT_EQ(layout.format_of(id).value, model.dtype(id)) << model.text();
      }
    }
  }
}

TEST(Layout, SlotsOfATensorAreItsParameterScalesAndStates) {
  Model model;
  model.counts = {3000, 100};
  model.recipe.dtype = DType::bf16;
  model.recipe.first_moment = DType::f8e4m3;
  model.recipe.average = true;
  model.recipe.coded = true;
  const Registered registered(model, stage_of(0));
  const Layout layout = registered.layout_of(0);
  EXPECT_TRUE(layout.any_coded());
  const std::vector<SlotFormat> large = {{ZERO_SLOT_PARAM, DType::f8e4m3},        {ZERO_SLOT_PARAM_SCALE, DType::f32, kLine},
                                         {ZERO_SLOT_MASTER, DType::f32},          {ZERO_SLOT_AVERAGE, DType::f32},
                                         {ZERO_SLOT_FIRST_MOMENT, DType::f8e4m3}, {ZERO_SLOT_FIRST_SCALE, DType::f32, kLine},
                                         {ZERO_SLOT_SECOND_MOMENT, DType::f32}};
  const std::vector<SlotFormat> small = {{ZERO_SLOT_PARAM, DType::bf16},
                                         {ZERO_SLOT_MASTER, DType::f32},
                                         {ZERO_SLOT_AVERAGE, DType::f32},
                                         {ZERO_SLOT_FIRST_MOMENT, DType::f32},
                                         {ZERO_SLOT_SECOND_MOMENT, DType::f32}};
  EXPECT_EQ(layout.slots_of(0), large);
  EXPECT_EQ(layout.slots_of(1), small);
  model.recipe.untouched = true;
  const Registered counted(model, stage_of(0));
  std::vector<SlotFormat> with_count = small;
  with_count.push_back({ZERO_SLOT_UPDATE_COUNT, DType::i64, kPerTensor});
  EXPECT_EQ(counted.layout_of(0).slots_of(1), with_count);
}

TEST(Layout, MuonTakesMatricesOnly) {
  Model model;
  model.algorithm = "muon";
  model.counts = {};
  Registered registered(model, stage_of(0));
  const auto add = [&](const char *name, std::vector<int64_t> shape) {
    int64_t id = -1;
    ParamOptions options;
    options.precision = registered.settings.precision;
    ASSERT_TRUE(registered.params.add(name, ZERO_DTYPE_F32, shape.data(), std::ssize(shape), options, &id).ok());
  };
  add("square", {4, 4});
  EXPECT_TRUE(registered.layout_of(0).check_matrices().ok());
  add("bias", {4});
  const Status status = registered.layout_of(0).check_matrices();
  EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED);
  EXPECT_NE(std::string(status.text()).find("\"bias\" f32[4] has 1 dimension,"), std::string::npos) << status.text();
}

TEST(Params, NamesOfAnyBytesAreReadableInTexts) {
  Params params;
  const int64_t shape[] = {2, 3};
  int64_t id = -1;
  ASSERT_TRUE(params.add("a\n\x7f\"\\\xc3\xa9", ZERO_DTYPE_F32, shape, 2, {}, &id).ok());
  EXPECT_EQ(params[id].text(), "\"a\\x0a\\x7f\\\"\\\\\xc3\xa9\" f32[2, 3]");
  EXPECT_EQ(params[id].given_name, "a\n\x7f\"\\\xc3\xa9");
}

TEST(Params, DtypesThatAreRefusedNameThoseThatAreNot) {
  Params params;
  int64_t id = -1;
  const char *allowed = "must be ZERO_DTYPE_F32 (1), ZERO_DTYPE_F16 (3) or ZERO_DTYPE_BF16 (4)";
  constexpr int32_t kRefused[] = {ZERO_DTYPE_F64, ZERO_DTYPE_U8, ZERO_DTYPE_U16, ZERO_DTYPE_F8_E4M3, 0, 99};
  for (const int32_t dtype : kRefused) {
    const Status status = params.add("a", dtype, nullptr, 0, {}, &id);
    EXPECT_EQ(status.code(), dtype == ZERO_DTYPE_F64 || dtype == ZERO_DTYPE_U8 ? ZERO_E_UNSUPPORTED : ZERO_E_INVALID_ARGUMENT) << dtype;
    EXPECT_NE(std::string(status.text()).find(allowed), std::string::npos) << status.text();
  }
}

}  // namespace
}  // namespace zero::test::layout_test
