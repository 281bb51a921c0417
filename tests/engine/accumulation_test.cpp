/// @file Gradients of several micro-steps: their sum against float64, their memory, and calls in a wrong order.
#include "tests/engine/bounds.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"
#include "tests/status_text.h"

#include <zero/stats.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <limits>

namespace zero::test::accumulation_test {
namespace {

constexpr int32_t kLast = ZERO_MICRO_STEP_LAST;
constexpr int32_t kLocal = ZERO_MICRO_STEP_LOCAL;
constexpr int32_t kReduce = ZERO_MICRO_STEP_REDUCE;

/// Sums of one element over micro-steps and ranks, as zero/optimizer.h promises them.
class BoundedSum {
 public:
  BoundedSum(const Model &model, int64_t step, int64_t id) : model_(model), step_(step), dtype_(model.grad_dtype(id)) {
    if (!model.shared(id)) {
      names_ = {id};
    } else {
      names_ = {model.tensors() - 1, 0};  // in the order in which they are given
    }
  }

  /// The reduced gradient.
  Bounds gradient(int64_t index) {
    const auto micro_steps = std::max<int64_t>(1, static_cast<int64_t>(model_.recipe.micro_steps.size()));
    std::vector<Part> local(static_cast<size_t>(model_.ranks));
    Bounds reduced{};
    double weight = model_.divisor == ZERO_DIVISOR_RANKS ? static_cast<double>(model_.ranks) : model_.divisor == ZERO_DIVISOR_ONE ? 1 : 0;
    bool adds_up = false;  // on this rank, since the last reduction
    for (int64_t micro = 0; micro < micro_steps; ++micro) {
      const int64_t number = step_ * micro_steps + micro;
      const int32_t kind = model_.recipe.micro_steps.empty() ? kLast : model_.recipe.micro_steps[static_cast<size_t>(micro)];
      adds_up = adds_up || kind == kLocal || (kind == kReduce && model_.ranks == 1);
      const DType kept = adds_up && (model_.recipe.accumulates_in_f32 || weighted()) ? DType::f32 : dtype_;
      for (int64_t rank = 0; rank < model_.ranks; ++rank) {
        Part &part = local[static_cast<size_t>(rank)];
        part.weight += weighted() ? weight_of(model_, number, rank) : 0;
        for (const int64_t name : names_) {
          if (!model_.unfilled(name, step_)) add(part.sum, kept, number, rank, name, index);
        }
      }
      if ((kind == kLocal || model_.ranks == 1) && micro + 1 < micro_steps) continue;
      for (const Part &part : local) weight += part.weight;
      if (model_.ranks > 1) reduced = (reduced + over_ranks(local, adds_up)).rounded();
      if (model_.ranks == 1) reduced = contribution(local[0], adds_up);
      adds_up = false;
      for (Part &part : local) part = {};
    }
    // In a world of one the weighted mean is there already.
    if (model_.ranks == 1 && multiplies()) return reduced;
    return stored((reduced / Bounds::exactly(static_cast<float>(weight))).rounded(), dtype_);
  }

 private:
  /// Of one rank, since the last reduction.
  struct Part {
    Bounds sum;
    double weight = 0;
  };

  bool weighted() const { return model_.divisor == ZERO_DIVISOR_WEIGHTS; }
  /// Contributions are multiplied by their weights where they are summed.
  bool multiplies() const { return weighted() && dtype_ != DType::f32; }

  /// The value in fp32, weighted unless its contribution will be, then the sum in the dtype that it is kept in.
  void add(Bounds &sum, DType kept, int64_t number, int64_t rank, int64_t name, int64_t index) const {
    const double value = nearest(gradient_at(model_, number, rank, name, index), dtype_);
    const double weight = static_cast<float>(weight_of(model_, number, rank));
    if (weight == 0) return;
    const double factor = kept == DType::f32 ? weight : 1;
    const Bounds weighted = stored((factor * Bounds::exactly(value)).rounded(), kept);
    const bool first = sum.low == 0 && sum.high == 0;
    // A product may be rounded by itself or with the sum.
    const Bounds one_by_one = stored((sum + weighted).rounded(), kept);
    const Bounds fused = stored((sum + factor * Bounds::exactly(value)).rounded(2), kept);
    sum = first ? weighted : Bounds{std::min(one_by_one.low, fused.low), std::max(one_by_one.high, fused.high)};
  }

  /// As it travels.
  Bounds contribution(const Part &part, bool adds_up) const {
    const bool divides = multiplies() && adds_up && part.weight > 0;
    return stored(divides ? (part.sum / Bounds::exactly(static_cast<float>(part.weight))).rounded() : part.sum, dtype_);
  }

  /// N - 1 additions in fp32, in whatever order: each is wrong by half a unit of at most the sum of all magnitudes.
  Bounds over_ranks(const std::vector<Part> &local, bool adds_up) const {
    Bounds sum{};
    double magnitudes = 0;
    for (const Part &part : local) {
      Bounds given = contribution(part, adds_up);
      if (multiplies()) given = (static_cast<double>(static_cast<float>(part.weight)) * given).rounded();
      sum = sum + given;
      magnitudes += given.magnitude();
    }
    return sum.wider(static_cast<double>(local.size() - 1) * kUnit * magnitudes * (1 + 0x1p-20));
  }

  const Model &model_;
  int64_t step_;
  DType dtype_;
  std::vector<int64_t> names_;
};

struct Count {
  std::atomic<int64_t> values{0};
  std::atomic<int64_t> outside{0};
};

/// Two steps; gradients are read between reduce and gather.
void follow(const Model &model, const Manner &manner, Count &count) {
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    for (int64_t step = 0; step < 2; ++step) {
      give_gradients(*optimizer, model, manner, step);
      zero_step_result result{};
      ASSERT_TRUE(run_task(*optimizer, optimizer->reduce(&result)).ok());
      EXPECT_EQ(result.skipped, 0);
      for (int64_t id = 0; id < model.tensors(); ++id) {
        const int64_t elements = model.counts[static_cast<size_t>(id)];
        std::vector<std::byte> bytes(static_cast<size_t>(elements * dtype_nbytes(model.grad_dtype(id))));
        ASSERT_TRUE(run_task(*optimizer, optimizer->read(id, ZERO_SLOT_GRAD, 0, bytes.data(), elements)).ok());
        if (group->rank() != 0) continue;
        const std::vector<float> values = decode(bytes.data(), model.grad_dtype(id), elements);
        BoundedSum sum(model, step, id);
        for (int64_t i = 0; i < elements; ++i) {
          const Bounds bounds = sum.gradient(i);
          const bool inside = bounds.hold(values[static_cast<size_t>(i)]);
          if (!inside && ++count.outside < 5) {
            ADD_FAILURE() << "tensor " << id << " element " << i << " step " << step << ": " << values[static_cast<size_t>(i)]
                          << " is not in " << bounds.low << " .. " << bounds.high << "\n"
                          << model.text() << "\n"
                          << manner.text();
          }
          ++count.values;
        }
      }
      ASSERT_TRUE(run_task(*optimizer, optimizer->gather()).ok());
    }
  });
}

const std::vector<std::vector<int32_t>> kSequences = {{},
                                                      {kLocal, kLast},
                                                      {kReduce, kLast},
                                                      {kLocal, kLocal, kLocal, kLast},
                                                      {kReduce, kReduce, kReduce},
                                                      {kLocal, kLocal},
                                                      {kLocal, kReduce, kLocal, kLast},
                                                      {kReduce, kLocal, kReduce},
                                                      {kReduce, kLocal, kLocal, kReduce, kLast}};

Model model_of(int64_t number, int64_t ranks, const std::vector<int32_t> &sequence) {
  static constexpr DType kDTypes[] = {DType::f32, DType::bf16, DType::f16};
  Model model;
  model.seed = static_cast<uint64_t>(number) + 7;
  model.ranks = ranks;
  model.counts = {300, 31, 0, 570, 300};
  model.recipe.dtype = kDTypes[number % 3];
  model.recipe.accumulates_in_f32 = number / 3 % 2 == 1;
  model.divisor = number / 6 % 3;
  model.weight_unit = std::array{1.0, 1e-3, 4096.0}[static_cast<size_t>(number + number / 18) % 3];
  model.recipe.tied = number / 18 % 2 == 1;
  model.recipe.unfilled_every = number / 36 % 2 == 1 ? 3 : 0;
  model.recipe.micro_steps = sequence;
  return model;
}

/// Each operation in fp32 and each rounding into the dtype of sums has its own error bar; so a value outside is an error for certain.
TEST(Accumulation, SumsAreThoseOfFloat64WithinTheirRoundings) {
  Count count;
  int64_t runs = 0;
  constexpr int64_t kNumbers = 72;
  for (size_t sequence = 0; sequence < kSequences.size(); ++sequence) {
    for (int64_t ranks = 1; ranks <= 4; ++ranks) {
      for (int64_t stage = 0; stage < 4; ++stage) {
        for (int64_t turn = 0; turn < (full_tests() ? kNumbers : few_tests() ? 1 : 4); ++turn) {
          const int64_t number = full_tests() ? turn : (runs * 13 + turn) % kNumbers;
          Manner manner;
          manner.stage = stage;
          manner.bucket_nbytes = 1024;
          manner.overlap = runs % 2 == 1;
          manner.caller_memory = runs / 2 % 2 == 1;
          manner.by_ranges = runs / 4 % 3 == 1;
          follow(model_of(number, ranks, kSequences[sequence]), manner, count);
          ++runs;
        }
      }
    }
  }
  EXPECT_EQ(count.outside, 0);
  std::printf("%lld trainings, %lld gradients, %lld outside their bounds\n", static_cast<long long>(runs),
              static_cast<long long>(count.values), static_cast<long long>(count.outside));
}

class AccumulationStages : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, AccumulationStages, testing::Range<int64_t>(0, 4));

/// Gives what a caller that adds up in fp32 by itself would give.
void give_own_sums(Optimizer &optimizer, const Model &model, int64_t step, int64_t micro_steps) {
  for (int64_t id = model.tensors() - 1; id >= 0; --id) {
    const DType dtype = model.grad_dtype(id);
    std::vector<float> sums(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
    for (int64_t micro = 0; micro < micro_steps; ++micro) {
      for (size_t i = 0; i < sums.size(); ++i) {
        const float value = gradient_at(model, step * micro_steps + micro, optimizer.group()->rank(), id, static_cast<int64_t>(i));
        sums[i] += static_cast<float>(nearest(value, dtype));
      }
    }
    const std::vector<std::byte> bytes = encode(sums, dtype);
    EXPECT_TRUE(optimizer.grad_ready(id, bytes.data(), 0, static_cast<int64_t>(sums.size())).ok());
  }
}

TEST_P(AccumulationStages, LocalSumsInF32AreTheBitsOfACallerThatAddsUpItself) {
  int64_t cases = 0;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (int64_t ranks = 1; ranks <= 4; ++ranks) {
      for (int64_t micro_steps = 2; micro_steps <= 5; ++micro_steps, ++cases) {
        Model model;
        model.ranks = ranks;
        model.counts = {300, 31, 0, 570};
        model.recipe.dtype = dtype;
        model.recipe.accumulates_in_f32 = true;
        model.recipe.micro_steps.assign(static_cast<size_t>(micro_steps), kLocal);
        if (micro_steps % 2 == 0) model.recipe.micro_steps.back() = kLast;
        Manner manner;
        manner.stage = GetParam();
        manner.bucket_nbytes = 1024;
        manner.caller_memory = micro_steps > 3;
        run_world(ranks, [&](const std::shared_ptr<Group> &group) {
          const Outcome counted = train(group, model, manner);
          Model plain = model;
          plain.recipe.micro_steps.clear();
          const auto optimizer = begun_optimizer(group, plain, manner);
          for (int64_t step = 0; step < model.steps; ++step) {
            give_own_sums(*optimizer, plain, step, micro_steps);
            ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
          }
          EXPECT_TRUE(counted.slots == read_slots(*optimizer, plain)) << model.text();
        });
      }
    }
  }
  std::printf("%lld trainings have the same bits\n", static_cast<long long>(cases));
}

MemoryUse use_of(const Optimizer &optimizer, int32_t category) {
  MemoryUse use{};
  EXPECT_TRUE(optimizer.memory(category, &use).ok());
  return use;
}

int64_t owned_elements(Optimizer &optimizer, const Model &model) {
  int64_t own = 0;
  int64_t views = 0;
  EXPECT_TRUE(optimizer.view_count(&views).ok());
  for (int64_t i = 0; i < views; ++i) {
    View view{};
    EXPECT_TRUE(optimizer.view(i, ZERO_SLOT_PARAM, &view).ok());
    own += view.count;
  }
  // Views of stage 0 are everything, but its reductions end in cuts of equal size too.
  return model.ranks > 1 && own == 3 * 8192 ? own / model.ranks : own;
}

/// 3 tensors of 8192 elements, a bucket each, so that shards are equal and nothing is padding but pages.
void expect_cost(DType dtype, bool in_f32, int32_t kind, int64_t ranks, int64_t stage, int64_t divisor = ZERO_DIVISOR_RANKS) {
  Model model;
  model.ranks = ranks;
  model.counts = {8192, 8192, 8192};
  model.recipe.dtype = dtype;
  model.recipe.accumulates_in_f32 = in_f32;
  model.recipe.micro_steps = {kind, kind, kLast};
  model.divisor = divisor;
  const bool weighted = divisor == ZERO_DIVISOR_WEIGHTS;
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 1024;
  manner.pool_nbytes = 2 * 8192 * dtype_nbytes(dtype);  // a rank that is late makes no other grow its pool
  run_world(ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    EXPECT_EQ(use_of(*optimizer, ZERO_MEMORY_ACCUMULATED).now_nbytes, 0);
    const int64_t before = use_of(*optimizer, ZERO_MEMORY_TOTAL).now_nbytes;
    for (int64_t step = 0; step < 3; ++step) train_step(*optimizer, model, manner, step);
    const int64_t elements = 3 * 8192;
    const int64_t kept = in_f32 || weighted ? 4 : dtype_nbytes(dtype);
    const bool has_own = !weighted && (stage < 2 || ranks == 1);  // a full gradient is there already
    const int64_t full = has_own && kept == dtype_nbytes(dtype) ? 0 : kept * elements;
    const int64_t own = owned_elements(*optimizer, model);
    const int64_t expected = kind == kReduce && ranks > 1 ? 4 * own + 4 * own / 3 : full;
    const MemoryUse use = use_of(*optimizer, ZERO_MEMORY_ACCUMULATED);
    EXPECT_EQ(use.now_nbytes, Arena::private_nbytes(expected)) << model.text() << manner.text();
    EXPECT_EQ(use.now_nbytes, use.peak_nbytes);
    // The first step makes it, later ones find it, and nothing else has grown.
    EXPECT_EQ(use_of(*optimizer, ZERO_MEMORY_TOTAL).now_nbytes, before + use.now_nbytes);
    EXPECT_LE(use_of(*optimizer, ZERO_MEMORY_TOTAL).now_nbytes,
              use_of(*optimizer, ZERO_MEMORY_TOTAL).formula_nbytes + use_of(*optimizer, ZERO_MEMORY_TOTAL).constant_nbytes);
  });
}

TEST_P(AccumulationStages, SumsOfShardsCost4BytesPerOwnedElementAndLocalSumsAFullGradient) {
  for (const int64_t ranks : {1, 2, 4}) {
    for (const int32_t kind : {kLocal, kReduce}) {
      expect_cost(DType::f32, false, kind, ranks, GetParam());
      expect_cost(DType::bf16, false, kind, ranks, GetParam());
      expect_cost(DType::bf16, true, kind, ranks, GetParam());
      expect_cost(DType::f16, false, kind, ranks, GetParam(), ZERO_DIVISOR_WEIGHTS);
    }
  }
}

/// Sums are kept apart from where gradients land, so that landing needs the pool's two buffers, whatever is never given.
TEST(Accumulation, BucketsWithUnfilledTensorsKeepNoBufferOfThePool) {
  Model model;
  model.ranks = 2;
  model.counts.assign(20, 1000);
  model.recipe.dtype = DType::bf16;
  model.recipe.accumulates_in_f32 = true;
  Manner manner;
  manner.stage = 2;
  manner.bucket_nbytes = 4096;  // two tensors
  manner.pool_nbytes = 2 * 4096;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(run_task(*optimizer, optimizer->micro_step(kLocal)).ok());
      for (int64_t id = model.tensors() - 1; id >= 0; id -= 2) {
        void *data = nullptr;
        int64_t accumulate = 0;
        ASSERT_TRUE(optimizer->grad_acquire(id, &data, &accumulate).ok());
        std::memset(data, 0, 2000);
        ASSERT_TRUE(optimizer->grad_ready(id, nullptr, 0, 1000, nullptr).ok());
      }
      ASSERT_TRUE(run_task(*optimizer, optimizer->micro_step(kLast)).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
    }
    EXPECT_EQ(optimizer->step_times().pool_grow_count, 0);
  });
}

/// Does what is wrong in the middle of a step and expects the error.
void misuse(Optimizer &optimizer, int32_t kind) {
  const std::vector<float> grad(300, std::numeric_limits<float>::quiet_NaN());
  const Status status = run_task(optimizer, optimizer.micro_step(kind));
  EXPECT_EQ(status.code(), ZERO_E_STATE);
  EXPECT_TRUE(contains(status, "zero_optimizer_step comes next")) << status.text();
  EXPECT_EQ(optimizer.grad_ready(0, grad.data(), 0, 300).code(), ZERO_E_STATE);
  EXPECT_EQ(optimizer.grad_ready(1, grad.data(), 3, 1).code(), ZERO_E_STATE);
  void *data = nullptr;
  int64_t accumulate = 0;
  EXPECT_EQ(optimizer.grad_acquire(0, &data, &accumulate).code(), ZERO_E_STATE);
}

TEST_P(AccumulationStages, CallsInAWrongOrderAreErrorsThatChangeNothing) {
  for (const int64_t ranks : {1, 2, 3}) {
    for (const std::vector<int32_t> &sequence : kSequences) {
      Model model;
      model.ranks = ranks;
      model.counts = {300, 31};
      model.recipe.micro_steps = sequence;
      Manner manner;
      manner.stage = GetParam();
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const Outcome right = train(group, model, manner);
        const auto optimizer = begun_optimizer(group, model, manner);
        for (int64_t step = 0; step < model.steps; ++step) {
          EXPECT_EQ(run_task(*optimizer, optimizer->micro_step(3)).code(), ZERO_E_INVALID_ARGUMENT);
          EXPECT_EQ(run_task(*optimizer, optimizer->micro_step(-1)).code(), ZERO_E_INVALID_ARGUMENT);
          give_gradients(*optimizer, model, manner, step);
          // Without LAST another micro-step would be right.
          if (sequence.empty() || sequence.back() == kLast) {
            for (const int32_t kind : {kLast, kLocal, kReduce}) misuse(*optimizer, kind);
          }
          zero_step_result result{};
          ASSERT_TRUE(run_task(*optimizer, optimizer->reduce(&result)).ok());
          EXPECT_EQ(result.skipped, 0);
          EXPECT_EQ(run_task(*optimizer, optimizer->micro_step(kLocal)).code(), ZERO_E_STATE);
          ASSERT_TRUE(run_task(*optimizer, optimizer->apply()).ok());
          ASSERT_TRUE(run_task(*optimizer, optimizer->gather()).ok());
        }
        EXPECT_TRUE(right.slots == read_slots(*optimizer, model)) << model.text();
      });
    }
  }
}

/// Tensor 1, then tensor 0 between acquire and ready, with a micro-step in between that must not begin.
void give_with_interruption(Optimizer &optimizer, const Model &model, int64_t number) {
  for (const int64_t id : {1, 0}) {
    void *data = nullptr;
    int64_t accumulate = 0;
    ASSERT_TRUE(optimizer.grad_acquire(id, &data, &accumulate).ok());
    const Status status = run_task(optimizer, optimizer.micro_step(kReduce));
    EXPECT_EQ(status.code(), ZERO_E_STATE);
    EXPECT_TRUE(contains(status, "acquired")) << status.text();
    auto *values = static_cast<float *>(data);
    for (int64_t i = 0; i < model.counts[static_cast<size_t>(id)]; ++i) {
      const float value = gradient_at(model, number, optimizer.group()->rank(), id, i);
      values[i] = accumulate != 0 ? values[i] + value : value;
    }
    ASSERT_TRUE(optimizer.grad_ready(id, nullptr, 0, model.counts[static_cast<size_t>(id)]).ok());
  }
}

TEST_P(AccumulationStages, AMicroStepWhileAGradientIsAcquiredIsAnErrorThatChangesNothing) {
  for (const int64_t ranks : {1, 2, 3}) {
    for (const std::vector<int32_t> &sequence : kSequences) {
      if (sequence.empty()) continue;
      Model model;
      model.ranks = ranks;
      model.counts = {300, 31};
      model.recipe.micro_steps = sequence;
      Manner manner;
      manner.stage = GetParam();
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const Outcome right = train(group, model, manner);
        const auto optimizer = begun_optimizer(group, model, manner);
        const auto micro_steps = static_cast<int64_t>(sequence.size());
        for (int64_t step = 0; step < model.steps; ++step) {
          for (int64_t micro = 0; micro < micro_steps; ++micro) {
            ASSERT_TRUE(run_task(*optimizer, optimizer->micro_step(sequence[static_cast<size_t>(micro)])).ok());
            give_with_interruption(*optimizer, model, step * micro_steps + micro);
          }
          ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
        }
        EXPECT_TRUE(right.slots == read_slots(*optimizer, model)) << model.text();
      });
    }
  }
}

}  // namespace
}  // namespace zero::test::accumulation_test
