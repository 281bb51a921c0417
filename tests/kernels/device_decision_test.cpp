/// @file Decisions on a device: the bits of kernels/step_decision.h, and nothing left for the next
/// step.
#include "kernels/step_decision.h"

#include "tests/kernels/tested_device.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace zero::kernels::device_decision_test {
namespace {

using test::DeviceMemory;
using test::Random;

using DeviceDecision = test::DeviceKernels;

DecisionRules random_rules(Random &random) {
  DecisionRules rules;
  rules.skips_nonfinite = random.below(3) != 0 ? 1 : 0;
  rules.has_norm = random.below(3) != 0 ? 1 : 0;
  if (rules.has_norm != 0 && random.below(2) == 0) rules.clip_norm = random.below(2) == 0 ? 1e-3 : 1e6;
  rules.loss_scale = {random.below(3) != 0, 1 + random.below(4), 1 + random.below(3), 0.5, 2, 1, 1048576};
  return rules;
}

/// The squares that a few pieces add up to; `other` gets the same on the host.
std::vector<int64_t> random_squares(Random &random, ExactSum &other) {
  for (int64_t terms = random.below(20); terms > 0; --terms)
    other.add(std::ldexp(random.value(4) * random.value(4), random.below(200) - 100));
  if (random.below(20) == 0) other.add(std::numeric_limits<double>::infinity());
  if (random.below(20) == 0) other.add(std::numeric_limits<double>::quiet_NaN());
  std::vector<int64_t> words(cuda::kSquareWords);
  other.export_limbs(words.data());
  return words;
}

/// The results of kernels, on the host and on the device.
struct Findings {
  void fill(Random &random, ExactSum &sum) {
    const std::vector<int64_t> words = random_squares(random, sum);
    std::copy(words.begin(), words.end(), found[0].squares);
    found[0].flag = random.below(4) == 0 ? 1 : 0;
  }
  bool any() const { return found[0].flag != 0; }
  void place(DeviceMemory &memory) { there = memory.place(found); }

  std::vector<cuda::Found> found = std::vector<cuda::Found>(1);
  const cuda::Found *there = nullptr;
};

/// Processors make NaN with different bits. StepState holds only one form of NaN.
TEST(StepDecision, NanHasOneForm) {
  DecisionRules rules;
  rules.has_norm = 1;
  rules.clip_norm = 1;
  const double quiet = std::numeric_limits<double>::quiet_NaN();
  for (const uint64_t payload : {uint64_t{0xfff8000000000000}, uint64_t{0x7fffffffe0000000}, uint64_t{0x7ff8000000000001}}) {
    StepState run;
    decide(rules, false, std::bit_cast<double>(payload), run);
    EXPECT_EQ(std::bit_cast<uint64_t>(run.grad_norm), std::bit_cast<uint64_t>(quiet));
    EXPECT_EQ(std::bit_cast<uint64_t>(run.grad_factor), std::bit_cast<uint64_t>(quiet));
  }
}

TEST_F(DeviceDecision, RunsHaveTheBitsOfTheHost) {
  Random random(90);
  DeviceMemory memory;
  for (int64_t i = 0; i < test::cases(400); ++i) {
    const DecisionRules rules = random_rules(random);
    Findings findings;
    StepState expected;
    expected.loss_scale.value = random.below(2) == 0 ? 1 : 65536;
    std::vector<StepState> run(1);
    std::vector<StepState> told = {expected};
    for (int64_t step = 0; step < 12; ++step) {
      ExactSum sum;
      findings.fill(random, sum);
      const bool any = findings.any();
      decide(rules, any, sum.total(), expected);
      const int64_t counts = random.below(4) != 0 ? 1 : 0;
      if (expected.skips == 0 && counts != 0) ++expected.applied_count;
      findings.place(memory);
      std::vector<int64_t> words(random.below(2) == 0 ? 5 : 1000, 7);
      const int64_t cleared = std::ssize(words) - 1;
      int64_t *words_there = memory.place(words);
      StepState *there = memory.place(run);
      memory.upload();
      const int32_t put = step > 0 ? 0 : kernels_->put(0, there, told.data(), sizeof(StepState), memory.stream());
      ASSERT_EQ(put, 0);
      ASSERT_EQ(kernels_->decide(0, &rules, findings.there, there, memory.stream()), 0);
      ASSERT_EQ(kernels_->end_step(0, there, counts, words_there, cleared, memory.stream()), 0);
      memory.download();
      ASSERT_EQ(std::memcmp(run.data(), &expected, sizeof expected), 0) << "case " << i << " step " << step;
      ASSERT_EQ(std::count(words.begin(), words.end() - 1, 0), cleared);
      ASSERT_EQ(words.back(), 7);
    }
  }
}

TEST_F(DeviceDecision, UpdatesAreCountedUnlessTheStepIsSkipped) {
  Random random(92);
  DeviceMemory memory;
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{64}, int64_t{65}, int64_t{300}, cuda::kMostCounted}) {
    for (const int64_t skips : {0, 1}) {
      std::vector<StepState> run = {{.skips = skips}};
      std::vector<int64_t> counts(static_cast<size_t>(count) + 1);
      for (int64_t &each : counts) each = random.below(1000);
      std::vector<int64_t> expected = counts;
      std::vector<uint64_t> updated(static_cast<size_t>(count + 63) / 64);
      for (uint64_t &word : updated) word = random.next();
      for (size_t i = 0; i < static_cast<size_t>(count) && skips == 0; ++i) expected[i] += (updated[i / 64] >> (i % 64)) & 1 ? 1 : 0;
      const StepState *known = memory.place(run);
      int64_t *there = memory.place(counts);
      memory.upload();
      ASSERT_EQ(kernels_->count_updates(0, known, there, updated.data(), count, memory.stream()), 0);
      memory.download();
      EXPECT_EQ(counts, expected) << count;
    }
  }
}

TEST_F(DeviceDecision, PutBytesArriveAndTheNextStayAsTheyAre) {
  Random random(91);
  DeviceMemory memory;
  for (const int64_t words : {int64_t{0}, int64_t{1}, int64_t{7}, cuda::kMostPut / 8}) {
    std::vector<int64_t> there(static_cast<size_t>(words) + 1, 5);
    std::vector<int64_t> given(static_cast<size_t>(words));
    for (int64_t &word : given) word = static_cast<int64_t>(random.next());
    void *out = memory.place(there);
    memory.upload();
    ASSERT_EQ(kernels_->put(0, out, given.data(), words * 8, memory.stream()), 0);
    memory.download();
    given.push_back(5);
    EXPECT_EQ(there, given);
  }
}

}  // namespace
}  // namespace zero::kernels::device_decision_test
