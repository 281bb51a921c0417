/// @file Buffers and trainings over local groups whose ranks are processes.
#include "tests/engine/known_results.h"
#include "core/clock.h"
#include "engine/buffer/buffer.h"
#include "engine/optimizer/optimizer.h"
#include "tests/engine/rank_worlds.h"
#include "tests/group/meetings.h"
#include "tests/group/process_ranks.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

namespace zero::test::known_results_test {
namespace {

class KnownResultsOverProcesses : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, KnownResultsOverProcesses, testing::Values(1, 2, 3, 5, 8));

template <class Body>
void run_ranks(int64_t size, Body body) {
  const std::string name = meeting_name();
  const ProcessResults results = run_process_ranks(
      size,
      [&](int64_t rank, int out_fd) {
        Report report;
        const std::shared_ptr<Group> group = connect_rank(name, rank, size, 1);
        if (group != nullptr) body(group, &report);
        write_text(out_fd, std::to_string(report.cases) + " cases " + report.text);
        return report.failures == 0 && report.cases > 0 && !testing::Test::HasFailure() ? 0 : 1;
      },
      600'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  std::printf("%lld processes: %s\n", static_cast<long long>(size), results.texts[0].c_str());
}

TEST_P(KnownResultsOverProcesses, BuffersAreWhatPlainArraysAre) { run_ranks(GetParam(), run_buffer_cases); }

TEST_P(KnownResultsOverProcesses, WeightedGradientsAreThoseOfTheContractToTheBit) { run_ranks(GetParam(), run_weighted_trainings); }

TEST_P(KnownResultsOverProcesses, ParametersFollowTheirMastersByTheRuleOfDifferences) { run_ranks(GetParam(), run_gather_codes); }

TEST_P(KnownResultsOverProcesses, CodedGradientsHaveTheBitsOfThreads) { run_ranks(GetParam(), run_coded_gradients); }

TEST_P(KnownResultsOverProcesses, RowsThatNobodyGaveStayAsInADenseProgram) { run_ranks(GetParam(), run_untouched_rows); }
TEST_P(KnownResultsOverProcesses, FragmentsOfReplicasHaveTheBitsOfAPlainProgram) { run_ranks(GetParam(), run_fragments); }

TEST_P(KnownResultsOverProcesses, TrainingsEndWithTheBitsOfPlainKernels) {
  const int64_t models = full_tests() ? 40 : 4;
  run_ranks(GetParam(), [models](const std::shared_ptr<Group> &group, Report *report) { run_known_trainings(group, models, report); });
}

TEST(KnownResultsOverThreads, CodedGradientsHaveTheSameBitsInEveryManner) {
  run_world(8, [](const std::shared_ptr<Group> &group) {
    Report report;
    run_coded_gradients(group, &report);
    EXPECT_EQ(report.failures, 0) << report.text;
    EXPECT_EQ(report.cases, full_tests() ? 216 : 36);
  });
}

/// Rank 1 has a descriptor for its shard, and none to show it to the others.
TEST(BuffersOverProcesses, ARankThatCannotShareItsShardIsToldToAllAtOnce) {
  const std::string name = meeting_name();
  const ProcessResults results = run_process_ranks(
      3,
      [&](int64_t rank, int out_fd) {
        const std::shared_ptr<Group> group = connect_rank(name, rank, 3, 1);
        if (group == nullptr) return 1;
        std::shared_ptr<Buffer> buffer;
        const int64_t begin = now_ns();
        Status status;
        {
          const NoMoreFiles no_more(rank == 1 ? 1 : 50);
          status = group->queue()->run(Buffer::create(group, Config(), DType::f32, 1000, &buffer));
        }
        write_text(out_fd, status.text());
        const char *words = rank == 1 ? "too few file descriptors to share a buffer among 3 ranks" : "rank 1 failed";
        const bool told = std::string(status.text()).find(words) != std::string::npos;
        // The deadline is 60 s.
        return told && status.code() != ZERO_OK && now_ns() - begin < 10'000'000'000 && buffer == nullptr ? 0 : 1;
      },
      120'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

/// The same in seal, which shares several pieces of memory one after another. Their failure, unlike that of the groups that seal makes
/// before, leaves the group usable.
TEST(OptimizersOverProcesses, ARankThatCannotShareItsMemoryLeavesNobodyWaiting) {
  const std::string name = meeting_name();
  const ProcessResults results = run_process_ranks(
      3,
      [&](int64_t rank, int out_fd) {
        std::vector<std::shared_ptr<Optimizer>> kept;
        int64_t left_usable = 0;
        Status status = Status::error(ZERO_E_STATE, "not tried yet");
        for (int files = 0; !status.ok() && files < 50; ++files) {
          const std::shared_ptr<Group> group = connect_rank(name + "." + std::to_string(files), rank, 3, 1);
          if (group == nullptr) return 1;
          kept.emplace_back();
          const int64_t count = 1000;
          int64_t id = 0;
          if (!Optimizer::create(group, Config(), &kept.back()).ok()) return 2;
          if (!kept.back()->add_param(nullptr, "p", ZERO_DTYPE_F32, &count, 1, &id).ok()) return 3;
          const int64_t begin = now_ns();
          {
            const NoMoreFiles no_more(rank == 1 ? files : 50);
            status = group->queue()->run(kept.back()->seal());
          }
          // The deadline is 60 s.
          if (now_ns() - begin > 10'000'000'000) return 4;
          const bool usable = group->queue()->run(barrier(*group)).ok();
          left_usable += !status.ok() && usable ? 1 : 0;
          write_text(out_fd, status.text() + std::string("\n"));
        }
        return left_usable > 0 && status.ok() ? 0 : 5;
      },
      240'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

}  // namespace
}  // namespace zero::test::known_results_test
