/// @file The same cases over local groups whose ranks are processes.
#include "group/connect/connect.h"
#include "tests/group/collective_cases.h"
#include "tests/group/mismatch_cases.h"
#include "tests/group/process_ranks.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

namespace zero::test::collectives_processes_test {
namespace {

constexpr int64_t kTimeoutMs = 240'000;

/// Forks `size` ranks that run body(group, report); expects no failure.
template <class Body>
void run_ranks(int64_t size, const char *name, Body body) {
  const std::string meeting = std::string("collectives_processes_test.") + name + "." + std::to_string(::getpid());
  const ProcessResults results = run_process_ranks(
      size,
      [&](int64_t rank, int out_fd) {
        Config config;
        Report report;
        report.expect(config.set_i64(ZERO_KEY_STAGING_BYTES, 16384).ok() && config.set_i64(ZERO_KEY_DEADLINE_MS, 60'000).ok(), "config");
        OperationQueue queue;
        std::shared_ptr<Group> group;
        const Status status = queue.run(connect_local_group(
            meeting, rank, size, GroupOptions(config), [](const Place &) { return test_reducer(); }, &group));
        report.expect(status.ok(), status.text());
        if (group != nullptr) body(*group, &report);
        write_text(out_fd, std::to_string(report.cases) + " cases " + report.text);
        return report.failures == 0 && report.cases > 0 ? 0 : 1;
      },
      kTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  std::printf("%lld processes: %s\n", static_cast<long long>(size), results.texts[0].c_str());
}

class CollectivesOverProcesses : public testing::TestWithParam<int64_t> {};

TEST_P(CollectivesOverProcesses, EveryCaseMatchesTheTreeAndFloat64) {
  run_ranks(GetParam(), "cases", [](Group &group, Report *report) {
    const std::vector<CollectiveCase> all = collective_cases(group.size());
    for (size_t i = 0; i < all.size(); i += kCaseStride) run_collective_case(group, all[i], report);
  });
}

TEST_P(CollectivesOverProcesses, SplitGroupsRunAtTheSameTime) { run_ranks(GetParam(), "split", run_split_cases); }

TEST_P(CollectivesOverProcesses, WhoWaitsForAMessageGoesOnWithItsSum) { run_ranks(GetParam(), "behind", run_message_behind_sum); }

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesOverProcesses, testing::Range<int64_t>(1, 9));

TEST(CollectivesOverProcessesMismatch, EveryPairIsAnErrorOnEveryRankThatNamesBothCalls) {
  const int64_t every = full_tests() ? 1 : 7;
  run_ranks(3, "mismatch", [every](Group &group, Report *report) { run_mismatch_cases(group, every, report); });
}

}  // namespace
}  // namespace zero::test::collectives_processes_test
