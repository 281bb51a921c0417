/// @file Verdicts on a device: the bits of kernels/verdict.h, and nothing left for the next step.
#include "kernels/verdict.h"

#include "tests/kernels/tested_device.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace zero::kernels {
namespace {

using test::DeviceMemory;
using test::Random;

using DeviceVerdict = test::DeviceKernels;

VerdictRules random_rules(Random &random) {
  VerdictRules rules;
  rules.skips_nonfinite = random.below(3) != 0 ? 1 : 0;
  rules.has_norm = random.below(3) != 0 ? 1 : 0;
  if (rules.has_norm != 0 && random.below(2) == 0) rules.clip_norm = random.below(2) == 0 ? 1e-3 : 1e6;
  rules.loss_scale = {random.below(3) != 0, 1 + random.below(4), 1 + random.below(3), 0.5, 2, 1, 1048576};
  return rules;
}

/// What a few pieces left; `other` is the same on the host.
std::vector<int64_t> random_squares(Random &random, ExactSum &other) {
  for (int64_t terms = random.below(20); terms > 0; --terms)
    other.add(std::ldexp(random.value(4) * random.value(4), random.below(200) - 100));
  if (random.below(20) == 0) other.add(std::numeric_limits<double>::infinity());
  if (random.below(20) == 0) other.add(std::numeric_limits<double>::quiet_NaN());
  std::vector<int64_t> words(cuda::kSquareWords);
  other.export_limbs(words.data());
  return words;
}

TEST_F(DeviceVerdict, RunsHaveTheBitsOfTheHost) {
  Random random(90);
  DeviceMemory memory;
  for (int64_t i = 0; i < test::cases(400); ++i) {
    const VerdictRules rules = random_rules(random);
    RunState expected;
    expected.loss_scale.value = random.below(2) == 0 ? 1 : 65536;
    std::vector<RunState> run(1);
    std::vector<RunState> told = {expected};
    for (int64_t step = 0; step < 12; ++step) {
      ExactSum sum;
      std::vector<int64_t> words = random_squares(random, sum);
      std::vector<int32_t> flag = {random.below(4) == 0 ? 1 : 0};
      judge(rules, flag[0] != 0, sum.total(), expected);
      if (expected.skips == 0) ++expected.applied_count;
      RunState *there = memory.place(run);
      int32_t *flag_there = memory.place(flag);
      int64_t *words_there = memory.place(words);
      memory.upload();
      const int32_t put = step > 0 ? 0 : kernels_->put(0, there, told.data(), sizeof(RunState), memory.stream());
      ASSERT_EQ(put, 0);
      ASSERT_EQ(kernels_->judge(0, &rules, there, flag_there, words_there, memory.stream()), 0);
      ASSERT_EQ(kernels_->count_step(0, there, memory.stream()), 0);
      memory.download();
      ASSERT_EQ(std::memcmp(run.data(), &expected, sizeof expected), 0) << "case " << i << " step " << step;
      ASSERT_EQ(flag[0], 0);
      ASSERT_EQ(words, std::vector<int64_t>(cuda::kSquareWords, 0));
    }
  }
}

TEST_F(DeviceVerdict, PutBytesArriveAndTheNextStayAsTheyAre) {
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
}  // namespace zero::kernels
