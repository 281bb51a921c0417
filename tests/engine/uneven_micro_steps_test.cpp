/// @file Ranks that divide a step's batch unevenly: different numbers of LOCAL micro-steps, whose weighted mean is that of the whole batch.
#include "core/hash.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace zero::test::uneven_micro_steps_test {
namespace {

/// One micro-step of one rank.
struct Part {
  int32_t kind;
  double weight;
};

/// By rank: what it makes in a step.
using Work = std::vector<std::vector<Part>>;

/// Up to three parts before a sum of all ranks, where there is one, and as many after it. Some ranks have none.
Work random_work(std::mt19937_64 &random, int64_t ranks, bool reduces) {
  Work work(static_cast<size_t>(ranks));
  const auto weight = [&] { return static_cast<double>(random() % 5); };
  for (std::vector<Part> &mine : work) {
    for (uint64_t left = random() % 4; left > 0; --left) mine.push_back({ZERO_MICRO_STEP_LOCAL, weight()});
    if (reduces) mine.push_back({ZERO_MICRO_STEP_REDUCE, weight()});
    for (uint64_t left = random() % 3 + (reduces ? 1 : 0); left > 0; --left) mine.push_back({ZERO_MICRO_STEP_LOCAL, weight()});
    if (random() % 2 == 0) mine.push_back({ZERO_MICRO_STEP_LAST, weight()});
  }
  return work;
}

/// Exact in 16 bits.
float gradient_of(const Model &model, int64_t rank, size_t part, int64_t id, int64_t index) {
  const int64_t words[] = {static_cast<int64_t>(model.seed), rank, static_cast<int64_t>(part), id, index};
  return std::ldexp(static_cast<float>(hash_of(words, sizeof words) % 255) - 127, -7);
}

void give_part(Optimizer &optimizer, const Model &model, size_t part) {
  for (int64_t id = 0; id < model.tensors(); ++id) {
    std::vector<float> values;
    for (int64_t i = 0; i < model.counts[static_cast<size_t>(id)]; ++i) {
      values.push_back(gradient_of(model, optimizer.group()->rank(), part, id, i));
    }
    const std::vector<std::byte> bytes = encode(values, model.grad_dtype(id));
    expect_ok(optimizer.grad_ready(id, bytes.data(), 0, std::ssize(values)), "grad_ready");
  }
}

std::vector<float> read_gradients(Optimizer &optimizer, const Model &model) {
  std::vector<float> all;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    std::vector<std::byte> bytes(static_cast<size_t>(count * dtype_nbytes(model.grad_dtype(id))));
    expect_ok(run_task(optimizer, optimizer.read(id, ZERO_SLOT_GRAD, 0, bytes.data(), count)), "read");
    const std::vector<float> values = decode(bytes.data(), model.grad_dtype(id), count);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// The reduced gradients of one step in which each rank makes its work.
std::vector<float> gradients_of(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner, const Work &work) {
  const auto optimizer = begun_optimizer(group, model, manner);
  const std::vector<Part> &mine = work[static_cast<size_t>(group->rank())];
  if (mine.empty()) expect_ok(optimizer->set_weight(0), "set_weight");
  for (size_t part = 0; part < mine.size(); ++part) {
    expect_ok(run_task(*optimizer, optimizer->micro_step(mine[part].kind)), "micro_step");
    expect_ok(optimizer->set_weight(mine[part].weight), "set_weight");
    give_part(*optimizer, model, part);
  }
  zero_step_result result{};
  expect_ok(run_task(*optimizer, optimizer->reduce(&result)), "reduce");
  EXPECT_EQ(result.skipped, 0);
  std::vector<float> gradients = read_gradients(*optimizer, model);
  expect_ok(run_task(*optimizer, optimizer->apply()), "apply");
  expect_ok(run_task(*optimizer, optimizer->gather()), "gather");
  return gradients;
}

/// Values are at most 1. 16-bit contributions and the result are rounded.
double allowed(DType dtype) { return dtype == DType::f32 ? 0x1p-20 : 3 * (dtype == DType::f16 ? 0x1p-11 : 0x1p-8); }

void expect_means(const Model &model, const Work &work, const std::vector<float> &gradients) {
  size_t place = 0;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    for (int64_t i = 0; i < model.counts[static_cast<size_t>(id)]; ++i, ++place) {
      double sum = 0;
      double weights = 0;
      for (size_t rank = 0; rank < work.size(); ++rank) {
        for (size_t part = 0; part < work[rank].size(); ++part) {
          sum += work[rank][part].weight * gradient_of(model, static_cast<int64_t>(rank), part, id, i);
          weights += work[rank][part].weight;
        }
      }
      ASSERT_NEAR(gradients[place], sum / weights, allowed(model.recipe.dtype)) << model.text() << " tensor " << id << " element " << i;
    }
  }
}

std::string text_of(const Work &work) {
  std::string text;
  for (const std::vector<Part> &mine : work) {
    text += "rank:";
    for (const Part &part : mine) text += " " + std::to_string(part.kind) + " by " + std::to_string(static_cast<int>(part.weight));
    text += "\n";
  }
  return text;
}

double weight_of(const Work &work) {
  double sum = 0;
  for (const std::vector<Part> &mine : work) {
    for (const Part &part : mine) sum += part.weight;
  }
  return sum;
}

/// In all stages with the same bits, also where updates make the sums and where hosts sum first.
TEST(UnevenMicroSteps, GradientIsTheMeanOfTheWholeBatchInAllStages) {
  std::mt19937_64 random(5);
  const int64_t cases = full_tests() ? 400 : 32;
  for (int64_t number = 0; number < cases; ++number) {
    Model model;
    model.seed = random();
    model.ranks = static_cast<int64_t>(random() % 5) + 1;
    model.counts = {300, 31, 0, 1, 700};
    model.divisor = ZERO_DIVISOR_WEIGHTS;
    model.recipe.dtype = std::vector<DType>{DType::f32, DType::f16, DType::bf16}[random() % 3];
    const Work work = random_work(random, model.ranks, random() % 3 == 0);
    if (weight_of(work) == 0) continue;
    const int64_t per_host = model.ranks == 4 && random() % 2 == 0 ? 2 : 0;
    std::vector<float> first;
    for (int64_t stage = 0; stage < 4 && !testing::Test::HasFailure(); ++stage) {
      Manner manner = random_manner(random(), model.ranks);
      manner.stage = stage;
      manner.one_copy = false;
      std::mutex mutex;
      run_hosts(model.ranks, per_host, [&](const std::shared_ptr<Group> &group) {
        const std::vector<float> gradients = gradients_of(group, model, manner, work);
        const std::lock_guard lock(mutex);
        if (first.empty()) first = gradients;
        EXPECT_EQ(first, gradients) << model.text() << "\n" << manner.text();
      });
    }
    expect_means(model, work, first);
    ASSERT_FALSE(testing::Test::HasFailure()) << text_of(work);
  }
}

/// A call of kind LOCAL or LAST returns while other ranks have not begun the step.
TEST(UnevenMicroSteps, LocalOnesWaitForNobody) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    Model model{.ranks = 2, .counts = {300, 31}, .divisor = ZERO_DIVISOR_WEIGHTS};
    Manner manner;
    manner.stage = stage;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      group->set_deadline_ms(60'000);
      const auto optimizer = begun_optimizer(group, model, manner);
      // Rank 1 begins its step only once rank 0 has ended its micro-steps.
      float ready = 0;
      OperationQueue messages;
      if (group->rank() == 1) expect_ok(messages.run(group->recv(&ready, 1, DType::f32, 0)), "recv");
      const std::vector<int32_t> kinds = group->rank() == 0 ? std::vector<int32_t>{1, 1, 1, 0} : std::vector<int32_t>{};
      for (size_t part = 0; part < kinds.size(); ++part) {
        expect_ok(run_task(*optimizer, optimizer->micro_step(kinds[part])), "micro_step");
        if (kinds[part] == ZERO_MICRO_STEP_LOCAL) give_part(*optimizer, model, part);
      }
      if (group->rank() == 0) expect_ok(messages.run(group->send(&ready, 1, DType::f32, 1)), "send");
      give_part(*optimizer, model, kinds.size());
      expect_ok(run_task(*optimizer, optimizer->step(nullptr)), "step");
    });
  }
}

}  // namespace
}  // namespace zero::test::uneven_micro_steps_test
