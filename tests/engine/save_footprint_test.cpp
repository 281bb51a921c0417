/// @file The memory that saves and loads take beyond the run: the formula of checkpoint.h, and the most that the system has counted.
#include "group/collectives.h"
#include "tests/engine/saved_runs.h"
#include "tests/group/process_ranks.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

namespace zero::test::save_footprint_test {
namespace {

constexpr int64_t kStaging = 8 << 20;
constexpr int64_t kElements = 6'000'000;
constexpr int64_t kSlack = 1 << 20;  ///< headers, manifest, stacks

int64_t peak_nbytes() {
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return -1;
}

void meet(Group &group) { EXPECT_TRUE(group.queue()->run(barrier(group)).ok()); }

/// The most that the process holds during the work, less what it held before.
int64_t peak_of(Group &group, const std::function<void()> &work) {
  meet(group);
  std::ofstream("/proc/self/clear_refs") << "5";  // VmHWM counts from here on
  const int64_t before = peak_nbytes();
  work();
  const int64_t peak = peak_nbytes() - before;
  meet(group);
  return peak;
}

/// `sent`: bytes of pieces that a rank sends at once, at most.
void expect_formula(const char *what, int64_t stage, int64_t peak, int64_t kept, int64_t sent) {
  const int64_t formula = kept + sent;
  std::printf("stage %lld, %s: peak %lld bytes, formula %lld\n", static_cast<long long>(stage), what, static_cast<long long>(peak),
              static_cast<long long>(formula));
  EXPECT_LE(peak, formula + kSlack) << what;
  EXPECT_GE(peak, kept - kSlack) << what;
}

Model model() {
  Model model;
  model.ranks = 2;
  model.divisor = ZERO_DIVISOR_ONE;
  model.counts = {kElements / 2, 1000, kElements / 4, kElements / 4, 7};
  return model;
}

int measure(int64_t rank, const std::string &name, const std::string &folder, int64_t stage) {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 18);  // buffers go back to the system when they are freed
  const std::shared_ptr<Group> group = connect_rank(name, rank, 2, 1);
  if (group == nullptr) return 1;
  Manner manner;
  manner.stage = stage;
  manner.source = ZERO_SOURCE_SHARDS;
  const auto optimizer = begun_optimizer(group, model(), manner);
  step_alone(*optimizer, model(), 0);
  const CheckpointKeys keys = {{ZERO_KEY_CHECKPOINT_STAGING_BYTES, kStaging}, {ZERO_KEY_CHECKPOINT_KEEP, 1}};
  const auto checkpoint = checkpoint_of(optimizer, keys);
  // Code, stacks and heap that any save and load takes are there before.
  expect_ok(save(*checkpoint, folder), "save");
  expect_ok(load(*checkpoint, folder), "load");
  // In stage 3 a rank also holds the pieces that it sends to the rank that writes a model file.
  const int64_t sent = stage == 3 ? kStaging / 2 : 0;
  expect_formula("save", stage, peak_of(*group, [&] { expect_ok(save(*checkpoint, folder), "save"); }), kStaging, sent);
  expect_formula("load", stage, peak_of(*group, [&] { expect_ok(load(*checkpoint, folder), "load"); }), kStaging, 0);
  zero_checkpoint_result result{};
  const int64_t copies = peak_of(*group, [&] {
    expect_ok(checkpoint->queue()->wait(begin_save(*checkpoint, folder, &result)), "save_async");
  });
  expect_formula("save_async", stage, copies, kStaging + result.snapshot_nbytes, sent);
  return testing::Test::HasFailure() ? 1 : 0;
}

class SaveFootprint : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, SaveFootprint, testing::Range<int64_t>(0, 4));

TEST_P(SaveFootprint, IsThatOfTheFormula) {
  const SaveFolder folder;
  const std::string name = meeting_name();
  const ProcessResults results =
      run_process_ranks(2, [&](int64_t rank, int) { return measure(rank, name, folder.path(), GetParam()); }, 600'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

}  // namespace
}  // namespace zero::test::save_footprint_test
