/// @file Parameters that are not all alike: sets, frozen and tied tensors, tensors that nobody filled, and moving averages.
#include "tests/algorithms.h"
#include "tests/engine/bounded_training.h"
#include "tests/engine/rank_worlds.h"

#include <zero/stats.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

namespace zero::test::param_sets_test {
namespace {

class ParamSetsStages : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, ParamSetsStages, testing::Range<int64_t>(0, 4));

/// A tensor as these tests register it.
struct Tensor {
  int64_t count;
  DType dtype;
  int64_t set = 0;
  bool frozen = false;
  int64_t tied_to = -1;
};

struct SetOf {
  const char *algorithm;
  double momentum;
};
constexpr SetOf kSets[] = {{"adamw", 0}, {"sgd", 0.9}, {"lion", 0}};

Config set_config(const SetOf &set) {
  Config config;
  EXPECT_TRUE(config.set_str(ZERO_KEY_ALGORITHM, set.algorithm).ok());
  if (set.momentum != 0) {
    EXPECT_TRUE(config.set_f64(ZERO_KEY_MOMENTUM, set.momentum).ok());
  }
  return config;
}

/// `sets` beyond the first are added; `names`, by tensor: what gradients and first values come from.
std::shared_ptr<Optimizer> make(const std::shared_ptr<Group> &group, Config config, const std::vector<SetOf> &sets,
                                const std::vector<Tensor> &tensors, const std::vector<int64_t> &names) {
  std::shared_ptr<Optimizer> optimizer;
  Status status = Optimizer::create(group, config, &optimizer);
  EXPECT_TRUE(status.ok()) << status.text();
  for (size_t i = 1; i < sets.size(); ++i) {
    int64_t set = 0;
    EXPECT_TRUE(optimizer->add_set(set_config(sets[i]), &set).ok());
    EXPECT_EQ(set, static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    Config options;
    int64_t id = 0;
    if (tensors[i].tied_to >= 0) {
      EXPECT_TRUE(options.set_i64(ZERO_KEY_TIED_TO, tensors[i].tied_to).ok());
    } else {
      EXPECT_TRUE(options.set_i64(ZERO_KEY_SET, tensors[i].set).ok());
      EXPECT_TRUE(options.set_i64(ZERO_KEY_FROZEN, tensors[i].frozen ? 1 : 0).ok());
    }
    const auto dtype = static_cast<int32_t>(tensors[i].dtype);
    status = optimizer->add_param(&options, ("p" + std::to_string(names[i])).c_str(), dtype, &tensors[i].count, 1, &id);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  status = group->queue()->run(optimizer->seal());
  EXPECT_TRUE(status.ok()) << status.text();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].tied_to >= 0) continue;
    std::vector<float> values;
    for (int64_t k = 0; k < tensors[i].count; ++k) values.push_back(first_value_at(Model{}, names[i], k));
    const std::vector<std::byte> bytes = encode(values, tensors[i].dtype);
    EXPECT_TRUE(run_task(*optimizer, optimizer->write(static_cast<int64_t>(i), ZERO_SLOT_PARAM, 0, bytes.data(), tensors[i].count)).ok());
  }
  EXPECT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
  return optimizer;
}

Config config_of(int64_t stage) {
  Config config;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGE, stage).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_BUCKET_BYTES, 1024).ok());
  return config;
}

std::vector<std::byte> gradient(const Optimizer &optimizer, const Tensor &tensor, int64_t name, int64_t step) {
  std::vector<float> values;
  for (int64_t k = 0; k < tensor.count; ++k) values.push_back(gradient_at(Model{}, step, optimizer.group()->rank(), name, k));
  return encode(values, tensor.dtype);
}

void give(Optimizer &optimizer, int64_t id, const Tensor &tensor, int64_t name, int64_t step) {
  const Status status = optimizer.grad_ready(id, gradient(optimizer, tensor, name, step).data(), 0, tensor.count);
  EXPECT_TRUE(status.ok()) << status.text();
}

zero_step_result step(Optimizer &optimizer) {
  zero_step_result result{};
  const Status status = run_task(optimizer, optimizer.step(&result));
  EXPECT_TRUE(status.ok()) << status.text();
  return result;
}

/// All slots of a tensor.
std::vector<std::byte> slots_of(Optimizer &optimizer, int64_t id) {
  std::vector<std::byte> all;
  int64_t slots = 0;
  EXPECT_TRUE(optimizer.slot_count(id, &slots).ok());
  for (int64_t index = 0; index < slots; ++index) {
    SlotInfo slot{};
    EXPECT_TRUE(optimizer.slot(id, index, &slot).ok());
    std::vector<std::byte> values(static_cast<size_t>(slot.count * dtype_nbytes(slot.dtype)));
    EXPECT_TRUE(run_task(optimizer, optimizer.read(id, slot.number, 0, values.data(), slot.count)).ok());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// Other values in every step and set; a key that the set's algorithm does not have is refused and changes nothing.
void change(Optimizer &optimizer, int64_t set, int64_t number, const char *algorithm, int64_t step) {
  const auto x = static_cast<double>(step * 7 + number * 3 + 1);
  const std::span<const int32_t> keys = kernels::find_algorithm(algorithm)->keys;
  const auto expected = [&](int32_t key) { return std::find(keys.begin(), keys.end(), key) != keys.end() ? ZERO_OK : ZERO_E_UNSUPPORTED; };
  EXPECT_TRUE(optimizer.set_f64(set, ZERO_KEY_LR, 0.01 / x).ok());
  EXPECT_TRUE(optimizer.set_f64(set, ZERO_KEY_WEIGHT_DECAY, step % 3 == 2 ? 0 : 0.003 * x).ok());
  EXPECT_EQ(optimizer.set_f64(set, ZERO_KEY_BETA1, 1 - 1 / (x + 1)).code(), expected(ZERO_KEY_BETA1));
  EXPECT_EQ(optimizer.set_f64(set, ZERO_KEY_BETA2, 1 - 0.1 / (x + 1)).code(), expected(ZERO_KEY_BETA2));
  EXPECT_EQ(optimizer.set_f64(set, ZERO_KEY_EPSILON, 1e-8 * x).code(), expected(ZERO_KEY_EPSILON));
  EXPECT_EQ(optimizer.set_f64(set, ZERO_KEY_MOMENTUM, 1 - 1 / (x + 1)).code(), expected(ZERO_KEY_MOMENTUM));
}

TEST_P(ParamSetsStages, SetsHaveTheBitsOfSeparateOptimizers) {
  std::vector<SetOf> sets = {kSets[0]};
  for (const char *name : elementwise_names()) sets.push_back({name, std::strcmp(name, "sgd") == 0 ? 0.9 : 0});
  const int64_t count = std::ssize(sets);
  std::vector<Tensor> tensors;
  std::vector<int64_t> names;
  for (int64_t i = 0; i < 18; ++i) {
    const int64_t counts[] = {300, 31, 700, 0, 90, 256, 1};
    tensors.push_back({counts[i % 7], i % 2 == 0 ? DType::f32 : DType::bf16, i * 5 % count});
    names.push_back(i);
  }
  for (const int64_t ranks : {1, 2, 3}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      Config config = set_config(kSets[0]);
      EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGE, GetParam()).ok());
      EXPECT_TRUE(config.set_i64(ZERO_KEY_BUCKET_BYTES, 1024).ok());
      const auto together = make(group, config, sets, tensors, names);
      for (int64_t at = 0; at < 5; ++at) {
        for (int64_t set = 0; set < count; ++set) change(*together, set, set, sets[static_cast<size_t>(set)].algorithm, at);
        for (int64_t id = 0; id < 18; ++id) give(*together, id, tensors[static_cast<size_t>(id)], id, at);
        step(*together);
      }
      for (int64_t set = 0; set < count; ++set) {
        const SetOf &alike = sets[static_cast<size_t>(set)];
        std::vector<Tensor> own;
        std::vector<int64_t> own_names;
        for (int64_t i = 0; i < 18; ++i) {
          if (tensors[static_cast<size_t>(i)].set != set) continue;
          own.push_back({tensors[static_cast<size_t>(i)].count, tensors[static_cast<size_t>(i)].dtype});
          own_names.push_back(i);
        }
        Config separate = set_config(alike);
        EXPECT_TRUE(separate.set_i64(ZERO_KEY_STAGE, (GetParam() + set) % 4).ok());
        const auto alone = make(group, separate, {alike}, own, own_names);
        for (int64_t at = 0; at < 5; ++at) {
          change(*alone, 0, set, alike.algorithm, at);
          for (size_t i = 0; i < own.size(); ++i) give(*alone, static_cast<int64_t>(i), own[i], own_names[i], at);
          step(*alone);
        }
        for (size_t i = 0; i < own.size(); ++i) {
          EXPECT_TRUE(slots_of(*together, own_names[i]) == slots_of(*alone, static_cast<int64_t>(i)))
              << alike.algorithm << " tensor " << own_names[i] << " ranks " << ranks;
        }
      }
    });
  }
}

TEST_P(ParamSetsStages, FrozenParametersStayAndCostOnlyThemselves) {
  const std::vector<Tensor> tensors = {{4096, DType::f32}, {8192, DType::f32, 0, true}, {2048, DType::bf16}, {1024, DType::bf16, 0, true}};
  for (const int64_t ranks : {1, 2, 4}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      Config config = config_of(GetParam());
      EXPECT_TRUE(config.set_i64(ZERO_KEY_AVERAGE, 1).ok());
      const auto optimizer = make(group, config, {kSets[0]}, tensors, {0, 1, 2, 3});
      const std::vector<std::byte> before[] = {slots_of(*optimizer, 1), slots_of(*optimizer, 3)};
      const std::vector<std::byte> moving = slots_of(*optimizer, 0);
      void *data = nullptr;
      int64_t accumulate = 0;
      for (int64_t at = 0; at < 3; ++at) {
        give(*optimizer, 0, tensors[0], 0, at);
        give(*optimizer, 2, tensors[2], 2, at);
        EXPECT_EQ(optimizer->grad_ready(1, gradient(*optimizer, tensors[1], 1, at).data(), 0, 8192).code(), ZERO_E_STATE);
        EXPECT_EQ(optimizer->grad_acquire(3, &data, &accumulate).code(), ZERO_E_STATE);
        EXPECT_EQ(step(*optimizer).unfilled_count, 0);
      }
      EXPECT_TRUE(before[0] == slots_of(*optimizer, 1));
      EXPECT_TRUE(before[1] == slots_of(*optimizer, 3));
      EXPECT_FALSE(moving == slots_of(*optimizer, 0));
      int64_t slots = 0;
      ASSERT_TRUE(optimizer->slot_count(1, &slots).ok());
      EXPECT_EQ(slots, 1);
      // Parameters 4 and 2 bytes; gradients 4 and 2; average and moments 12, and 4 for the master, where a parameter trains.
      const int64_t params = 4 * (4096 + 8192) + 2 * (2048 + 1024);
      const int64_t grads = 4 * 4096 + 2 * 2048;
      const int64_t states = 12 * 4096 + 16 * 2048;
      const auto part = [&](int64_t nbytes, int64_t from) { return GetParam() >= from ? nbytes / ranks : nbytes; };
      MemoryUse use{};
      ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_TOTAL, &use).ok());
      EXPECT_EQ(use.formula_nbytes, part(params, 3) + part(grads, 2) + part(states, 1));
      int64_t views = 0;
      ASSERT_TRUE(optimizer->view_count(&views).ok());
      for (int64_t i = 0; i < views; ++i) {
        View view{};
        ASSERT_TRUE(optimizer->view(i, ZERO_SLOT_PARAM, &view).ok());
        EXPECT_TRUE(view.param == 0 || view.param == 2);
      }
    });
  }
}

/// The gradient of a tied tensor is that of both names: as if the caller had added them on each rank, in the gradient's dtype.
TEST_P(ParamSetsStages, TiedTensorsAreUpdatedOnceWithTheSumOfBothGradients) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const int64_t ranks : {1, 2, 3}) {
      const std::vector<Tensor> tensors = {{300, dtype}, {700, dtype}, {300, dtype, 0, false, 0}};
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const auto tied = make(group, config_of(GetParam()), {kSets[0]}, tensors, {0, 1, 2});
        const auto added = make(group, config_of(GetParam()), {kSets[0]}, {tensors[0], tensors[1]}, {0, 1});
        for (int64_t at = 0; at < 4; ++at) {
          // Either name first; one of the gradients by pieces; once only one of the names.
          const std::vector<std::byte> first = gradient(*tied, tensors[0], 0, at);
          const std::vector<std::byte> last = gradient(*tied, tensors[2], 2, at);
          const int64_t half = 100 * dtype_nbytes(dtype);
          if (at % 2 == 0) give(*tied, 2, tensors[2], 2, at);
          ASSERT_TRUE(tied->grad_ready(0, first.data() + half, 100, 200).ok());
          ASSERT_TRUE(tied->grad_ready(0, first.data(), 0, 100).ok());
          if (at == 1) give(*tied, 2, tensors[2], 2, at);
          give(*tied, 1, tensors[1], 1, at);
          EXPECT_EQ(step(*tied).unfilled_count, 0);
          std::vector<float> sums = decode(first.data(), dtype, 300);
          const std::vector<float> others = decode(last.data(), dtype, 300);
          for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(nearest(sums[i] + (at == 3 ? 0 : others[i]), dtype));
          ASSERT_TRUE(added->grad_ready(0, encode(sums, dtype).data(), 0, 300).ok());
          give(*added, 1, tensors[1], 1, at);
          step(*added);
          EXPECT_TRUE(slots_of(*tied, 0) == slots_of(*added, 0)) << dtype_name(dtype) << " step " << at << " ranks " << ranks;
          EXPECT_TRUE(slots_of(*tied, 1) == slots_of(*added, 1));
          EXPECT_TRUE(slots_of(*tied, 2) == slots_of(*tied, 0));
        }
        MemoryUse a{};
        MemoryUse b{};
        ASSERT_TRUE(tied->memory(ZERO_MEMORY_TOTAL, &a).ok());
        ASSERT_TRUE(added->memory(ZERO_MEMORY_TOTAL, &b).ok());
        EXPECT_EQ(a.formula_nbytes, b.formula_nbytes);
        void *first = nullptr;
        void *second = nullptr;
        ASSERT_TRUE(run_task(*tied, tied->param_acquire(0, nullptr, 0, &first)).ok());
        ASSERT_TRUE(run_task(*tied, tied->param_acquire(2, nullptr, 0, &second)).ok());
        EXPECT_EQ(first, second);
        EXPECT_TRUE(tied->param_release(0).ok());
        EXPECT_TRUE(tied->param_release(2).ok());
      });
    }
  }
}

/// The address that one name gave is the caller's until all of it was given: another name's gradient would be written there.
TEST_P(ParamSetsStages, ATiedGradientThatIsBeingFilledIsNotOverwritten) {
  const std::vector<Tensor> tensors = {{300, DType::f32}, {300, DType::f32, 0, false, 0}};
  for (const int64_t ranks : {1, 2}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto tied = make(group, config_of(GetParam()), {kSets[0]}, tensors, {0, 1});
      const auto given = make(group, config_of(GetParam()), {kSets[0]}, tensors, {0, 1});
      const std::vector<std::byte> first = gradient(*tied, tensors[0], 0, 0);
      const std::vector<std::byte> other = gradient(*tied, tensors[1], 1, 0);
      void *data = nullptr;
      int64_t accumulate = 1;
      ASSERT_TRUE(tied->grad_acquire(0, &data, &accumulate).ok());
      EXPECT_EQ(accumulate, 0);
      std::memcpy(data, first.data(), first.size());
      for (const int64_t count : {300, 100}) EXPECT_EQ(tied->grad_ready(1, other.data(), 0, count).code(), ZERO_E_STATE);
      ASSERT_TRUE(tied->grad_ready(0, nullptr, 0, 300).ok());
      ASSERT_TRUE(tied->grad_ready(1, other.data(), 0, 300).ok());
      step(*tied);
      give(*given, 0, tensors[0], 0, 0);
      give(*given, 1, tensors[1], 1, 0);
      step(*given);
      EXPECT_TRUE(slots_of(*tied, 0) == slots_of(*given, 0));
    });
  }
}

/// One rank fills tensor 1 in step 1; nobody fills tensor 2 in steps 1 and 2.
void train_unfilled(Optimizer &optimizer, const std::vector<Tensor> &tensors, int64_t filler, bool explicit_zeros) {
  for (int64_t at = 0; at < 4; ++at) {
    const bool all = at == 0 || at == 3;
    give(optimizer, 0, tensors[0], 0, at);
    const bool mine = all || (at == 1 && optimizer.group()->rank() == filler);
    const std::vector<float> zeros(static_cast<size_t>(tensors[1].count));
    if (mine) {
      give(optimizer, 1, tensors[1], 1, at);
    } else if (explicit_zeros && at == 1) {
      EXPECT_TRUE(optimizer.grad_ready(1, encode(zeros, tensors[1].dtype).data(), 0, tensors[1].count).ok());
    }
    if (all) give(optimizer, 2, tensors[2], 2, at);
    step(optimizer);
  }
}

TEST_P(ParamSetsStages, WhatNobodyFilledStaysUntouchedOnAllRanksAndWhatOneRankFilledIsUpdatedOnAll) {
  int64_t cases = 0;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int64_t ranks : {1, 2, 3}) {
      for (int64_t filler = 0; filler < ranks; ++filler, ++cases) {
        const std::vector<Tensor> tensors = {{300, dtype}, {31, dtype}, {700, dtype}};
        run_world(ranks, [&](const std::shared_ptr<Group> &group) {
          Config config = config_of(GetParam());
          EXPECT_TRUE(config.set_i64(ZERO_KEY_UNFILLED, ZERO_UNFILLED_UNTOUCHED).ok());
          EXPECT_TRUE(config.set_i64(ZERO_KEY_AVERAGE, 1).ok());
          const auto untouched = make(group, config, {kSets[0]}, tensors, {0, 1, 2});
          const auto with_zeros = make(group, config, {kSets[0]}, tensors, {0, 1, 2});
          train_unfilled(*untouched, tensors, filler, false);
          train_unfilled(*with_zeros, tensors, filler, true);
          for (int64_t id = 0; id < 3; ++id) EXPECT_TRUE(slots_of(*untouched, id) == slots_of(*with_zeros, id)) << id;
          // Step by step: what is left out keeps every bit but those of its average.
          EXPECT_TRUE(config.set_i64(ZERO_KEY_AVERAGE, 0).ok());
          const auto watched = make(group, config, {kSets[0]}, tensors, {0, 1, 2});
          for (int64_t id = 0; id < 3; ++id) give(*watched, id, tensors[static_cast<size_t>(id)], id, 0);
          step(*watched);
          const std::vector<std::byte> before[] = {slots_of(*watched, 0), slots_of(*watched, 1), slots_of(*watched, 2)};
          give(*watched, 0, tensors[0], 0, 1);
          if (group->rank() == filler) give(*watched, 1, tensors[1], 1, 1);
          const zero_step_result result = step(*watched);
          EXPECT_EQ(result.unfilled_count, group->rank() == filler ? 700 : 731);
          EXPECT_FALSE(before[0] == slots_of(*watched, 0));
          EXPECT_FALSE(before[1] == slots_of(*watched, 1));
          EXPECT_TRUE(before[2] == slots_of(*watched, 2));
        });
      }
    }
  }
  std::printf("stage %lld: %lld cases\n", static_cast<long long>(GetParam()), static_cast<long long>(cases));
}

TEST_P(ParamSetsStages, MastersThatWereWrittenWaitForBeginWhereAStepLeavesTheirParameterUntouched) {
  const std::vector<Tensor> tensors = {{300, DType::bf16}, {531, DType::bf16}};
  for (const int64_t ranks : {1, 2, 3}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      Config config = config_of(GetParam());
      EXPECT_TRUE(config.set_i64(ZERO_KEY_UNFILLED, ZERO_UNFILLED_UNTOUCHED).ok());
      const auto optimizer = make(group, config, {kSets[0]}, tensors, {0, 1});
      const std::vector<float> written(531, 3);
      const int64_t mine = group->rank() == ranks - 1 ? 531 : 0;
      EXPECT_TRUE(run_task(*optimizer, optimizer->write(1, ZERO_SLOT_MASTER, 0, written.data(), mine)).ok());
      give(*optimizer, 0, tensors[0], 0, 0);
      step(*optimizer);
      EXPECT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
      std::vector<std::byte> values(531 * 2);
      EXPECT_TRUE(run_task(*optimizer, optimizer->read(1, ZERO_SLOT_PARAM, 0, values.data(), 531)).ok());
      EXPECT_TRUE(values == encode(written, DType::bf16)) << "ranks " << ranks;
    });
  }
}

TEST_P(ParamSetsStages, WhatNobodyFilledCountsAsZeroByDefault) {
  const std::vector<Tensor> tensors = {{300, DType::f32}, {31, DType::f32}, {700, DType::f32}};
  for (const int64_t ranks : {1, 3}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto left_out = make(group, config_of(GetParam()), {kSets[0]}, tensors, {0, 1, 2});
      const auto zeros = make(group, config_of(GetParam()), {kSets[0]}, tensors, {0, 1, 2});
      for (int64_t at = 0; at < 4; ++at) {
        const std::vector<float> nothing(700);
        for (int64_t id = 0; id < 3; ++id) {
          const bool filled = (at + id) % 3 != 1;
          const Tensor &tensor = tensors[static_cast<size_t>(id)];
          if (filled) give(*left_out, id, tensor, id, at);
          if (filled) give(*zeros, id, tensor, id, at);
          EXPECT_TRUE(filled || zeros->grad_ready(id, nothing.data(), 0, tensor.count).ok());
        }
        step(*left_out);
        step(*zeros);
        // Decay and moments still move it.
        for (int64_t id = 0; id < 3; ++id) EXPECT_TRUE(slots_of(*left_out, id) == slots_of(*zeros, id)) << at << " " << id;
      }
    });
  }
}

/// precision_test follows averages of every form; here each set has a decay of its own, which changes in each step. Differences from
/// float64: one difference, one constant and one sum in fp32 for each step.
TEST_P(ParamSetsStages, AveragesFollowFloat64WithTheDecayOfTheirSet) {
  const std::vector<Tensor> tensors = {{300, DType::f32, 0}, {700, DType::bf16, 1}, {31, DType::bf16, 2}};
  for (const int64_t ranks : {1, 2, 3}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      Config config = config_of(GetParam());
      EXPECT_TRUE(config.set_i64(ZERO_KEY_AVERAGE, 1).ok());
      const auto optimizer = make(group, config, {std::begin(kSets), std::end(kSets)}, tensors, {0, 1, 2});
      const auto read = [&](int64_t id, int32_t slot) {
        std::vector<float> values(static_cast<size_t>(tensors[static_cast<size_t>(id)].count));
        EXPECT_TRUE(run_task(*optimizer, optimizer->read(id, slot, 0, values.data(), static_cast<int64_t>(values.size()))).ok());
        return values;
      };
      std::vector<std::vector<Bounds>> averages(3);
      for (int64_t id = 0; id < 3; ++id) {
        for (const float value : read(id, ZERO_SLOT_AVERAGE)) averages[static_cast<size_t>(id)].push_back(Bounds::exactly(value));
        const std::vector<float> kept = read(id, id == 0 ? ZERO_SLOT_PARAM : ZERO_SLOT_MASTER);
        EXPECT_EQ(differing(kept, read(id, ZERO_SLOT_AVERAGE)), 0) << "averages begin with the parameter";
      }
      for (int64_t at = 0; at < 20; ++at) {
        for (int64_t id = 0; id < 3; ++id) {
          const double decay = at == 7 ? 1 : 0.5 + 0.1 * static_cast<double>(id) + 0.01 * static_cast<double>(at);
          EXPECT_TRUE(optimizer->set_f64(id, ZERO_KEY_AVERAGE_DECAY, decay).ok());
          give(*optimizer, id, tensors[static_cast<size_t>(id)], id, at);
        }
        step(*optimizer);
        for (int64_t id = 0; id < 3; ++id) {
          const double weight = at == 7 ? 0 : 0.5 - 0.1 * static_cast<double>(id) - 0.01 * static_cast<double>(at);
          const std::vector<float> kept = read(id, id == 0 ? ZERO_SLOT_PARAM : ZERO_SLOT_MASTER);
          const std::vector<float> got = read(id, ZERO_SLOT_AVERAGE);
          for (size_t i = 0; i < kept.size(); ++i) {
            Bounds &average = averages[static_cast<size_t>(id)][i];
            const double moved = weight * (std::fabs(kept[i]) + average.magnitude());
            average =
                weight == 0 ? average : ((1 - weight) * average + weight * Bounds::exactly(kept[i])).wider(3 * kUnit * moved).rounded();
            EXPECT_TRUE(average.hold(got[i])) << got[i] << " is not in " << average.low << " .. " << average.high;
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace zero::test::param_sets_test
