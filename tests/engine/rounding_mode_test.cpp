/// @file A caller's rounding mode changes nothing: not the bits of a training, not what ranks agree on, and it stays what it was.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace zero::test::rounding_mode_test {
namespace {

constexpr int64_t kCount = 700;
constexpr int64_t kSteps = 6;

/// The calling thread rounds upward while it lives, where it is asked to.
class Upward {
 public:
  explicit Upward(bool upward) : upward_(upward) {
    if (upward_) std::fesetround(FE_UPWARD);
  }
  Upward(const Upward &) = delete;
  ~Upward() {
    if (!upward_) return;
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::fesetround(FE_TONEAREST);
  }

 private:
  const bool upward_;
};

/// What one rank ends with.
struct Ending {
  std::vector<float> params, states;
  std::vector<double> norms, scales;
  friend bool operator==(const Ending &, const Ending &) = default;
};

Config config_of(int64_t stage, const char *algorithm, DType grad) {
  Config config;
  expect_ok(config.set_i64(ZERO_KEY_STAGE, stage), "stage");
  expect_ok(config.set_i64(ZERO_KEY_GRAD_DTYPE, static_cast<int64_t>(grad)), "grad_dtype");
  expect_ok(config.set_str(ZERO_KEY_ALGORITHM, algorithm), "algorithm");
  expect_ok(config.set_i64(ZERO_KEY_DIVISOR, ZERO_DIVISOR_WEIGHTS), "divisor");
  expect_ok(config.set_f64(ZERO_KEY_CLIP_NORM, 0.7), "clip_norm");
  if (std::string_view(algorithm) == "adagrad") expect_ok(config.set_f64(ZERO_KEY_INITIAL_ACCUMULATOR, 0.7), "initial_accumulator");
  expect_ok(config.set_i64(ZERO_KEY_LOSS_SCALE_DYNAMIC, 1), "dynamic");
  expect_ok(config.set_f64(ZERO_KEY_LOSS_SCALE, 1000.0 / 3), "loss_scale");
  expect_ok(config.set_f64(ZERO_KEY_LOSS_SCALE_BACKOFF, 0.7), "backoff");
  return config;
}

std::vector<float> gradient(int64_t step, int64_t rank) {
  std::vector<float> values;
  for (int64_t i = 0; i < kCount; ++i) values.push_back(value_at(7, static_cast<uint64_t>(step * 16 + rank), i));
  if (step == 2) values[3] = std::numeric_limits<float>::infinity();
  return values;
}

void run_step(Optimizer &optimizer, DType grad, int64_t step, bool upward, Ending &ending) {
  const int64_t rank = optimizer.group()->rank();
  const std::vector<std::byte> first = encode(gradient(step, rank), grad);
  const std::vector<std::byte> second = encode(gradient(step + 100, rank), grad);
  const auto at = static_cast<double>(step);
  const double weights[] = {0.7 + 0.013 * at + static_cast<double>(rank) / 3, 0.9 - 0.017 * at};
  zero_step_result result{};
  double scale = 0;
  {
    const Upward rounding(upward);
    expect_ok(run_task(optimizer, optimizer.micro_step(ZERO_MICRO_STEP_LOCAL)), "micro_step");
    expect_ok(optimizer.set_weight(weights[0]), "set_weight");
    expect_ok(optimizer.grad_ready(0, first.data(), 0, kCount), "grad_ready");
    expect_ok(run_task(optimizer, optimizer.micro_step(ZERO_MICRO_STEP_LAST)), "micro_step");
    expect_ok(optimizer.set_weight(weights[1]), "set_weight");
    expect_ok(optimizer.grad_ready(0, second.data(), 0, kCount), "grad_ready");
    expect_ok(run_task(optimizer, optimizer.step(&result)), "step");
    expect_ok(optimizer.get_f64(0, ZERO_KEY_LOSS_SCALE, &scale), "get_f64");
  }
  ending.norms.push_back(result.grad_norm);
  ending.scales.push_back(scale);
}

/// What a training is of: its algorithm, the state that is looked at, and the dtype of gradients.
struct Kind {
  const char *algorithm;
  int32_t state;
  DType grad;
};

Ending train_rank(const std::shared_ptr<Group> &group, const Config &config, const Kind &kind, bool upward) {
  Ending ending;
  const std::vector<float> before = gradient(1000, 0);
  const int64_t count = kCount;
  int64_t id = 0;
  std::shared_ptr<Optimizer> optimizer;
  {
    const Upward rounding(upward);
    expect_ok(Optimizer::create(group, config, &optimizer), "create");
    if (optimizer == nullptr) return ending;
    expect_ok(optimizer->add_param(nullptr, "p", static_cast<int32_t>(DType::f32), &count, 1, &id), "add_param");
    expect_ok(group->queue()->run(optimizer->seal()), "seal");
    expect_ok(run_task(*optimizer, optimizer->write(id, ZERO_SLOT_PARAM, 0, before.data(), kCount)), "write");
    expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
  }
  for (int64_t step = 0; step < kSteps; ++step) run_step(*optimizer, kind.grad, step, upward, ending);
  for (const auto &[slot, out] : {std::tuple{static_cast<int32_t>(ZERO_SLOT_PARAM), &ending.params}, {kind.state, &ending.states}}) {
    out->resize(kCount);
    expect_ok(run_task(*optimizer, optimizer->read(id, slot, 0, out->data(), kCount)), "read");
  }
  return ending;
}

/// By rank. `upward`: the rank that rounds upward, or -1.
std::vector<Ending> train_ranks(int64_t ranks, const Config &config, const Kind &kind, int64_t upward) {
  std::vector<Ending> endings(static_cast<size_t>(ranks));
  run_world(ranks, [&](const std::shared_ptr<Group> &group) {
    endings[static_cast<size_t>(group->rank())] = train_rank(group, config, kind, group->rank() == upward);
  });
  return endings;
}

class RoundingMode : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {};

TEST_P(RoundingMode, OfOneRankChangesNoBits) {
  const auto [ranks, stage] = GetParam();
  for (const Kind &kind : {Kind{"adagrad", ZERO_SLOT_SECOND_MOMENT, DType::f32},
                           {"adamw", ZERO_SLOT_SECOND_MOMENT, DType::f32},
                           {"adamw", ZERO_SLOT_SECOND_MOMENT, DType::f16}}) {
    const Config config = config_of(stage, kind.algorithm, kind.grad);
    const std::string name = std::string(kind.algorithm) + " " + dtype_name(kind.grad);
    const std::vector<Ending> usual = train_ranks(ranks, config, kind, -1);
    for (int64_t rank = 1; rank < ranks; ++rank) EXPECT_TRUE(usual[static_cast<size_t>(rank)] == usual[0]) << name;
    EXPECT_NE(usual[0].scales.front(), usual[0].scales.back());
    for (int64_t upward = 0; upward < ranks; ++upward) {
      const std::vector<Ending> unusual = train_ranks(ranks, config, kind, upward);
      for (size_t rank = 0; rank < usual.size(); ++rank) EXPECT_TRUE(unusual[rank] == usual[0]) << name << " rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, RoundingMode, testing::Combine(testing::Values(1, 2), testing::Values(0, 1, 2)));

}  // namespace
}  // namespace zero::test::rounding_mode_test
