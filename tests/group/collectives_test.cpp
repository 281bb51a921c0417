/// @file Collectives over local groups whose ranks are threads.
#include "group/connect.h"
#include "tests/group/collective_cases.h"
#include "tests/group/mismatch_cases.h"
#include "tests/group/thread_ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace zero::test {
namespace {

bool full() { return std::getenv("ZERO_TEST_FULL") != nullptr; }

GroupOptions small_staging() {
  Config config;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGING_BYTES, 16384).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_DEADLINE_MS, 60'000).ok());
  return GroupOptions(config);
}

/// Runs body(group, report) on `size` thread ranks and expects no failure; returns rank 0's number of cases.
template <class Body>
int64_t run_ranks(int64_t size, const char *name, Body body) {
  std::vector<Report> reports(static_cast<size_t>(size));
  run_thread_ranks(size, [&](int64_t rank) {
    OperationQueue queue;
    std::shared_ptr<Group> group;
    const std::string meeting = std::string("collectives_test.") + name + "." + std::to_string(::getpid());
    const Status status = queue.run(connect_local_group(
        meeting, rank, size, small_staging(), [](const Place &) { return test_reducer(); }, &group));
    Report &report = reports[static_cast<size_t>(rank)];
    report.expect(status.ok(), status.text());
    if (group != nullptr) body(*group, &report);
  });
  for (const Report &report : reports) EXPECT_EQ(report.failures, 0) << report.text;
  return reports[0].cases;
}

class CollectivesOverThreads : public testing::TestWithParam<int64_t> {};

TEST_P(CollectivesOverThreads, EveryCaseMatchesTheTreeAndFloat64) {
  const int64_t cases = run_ranks(GetParam(), "cases", [](Group &group, Report *report) {
    const std::vector<CollectiveCase> all = collective_cases(group.size());
    for (size_t i = 0; i < all.size(); i += kCaseStride) run_collective_case(group, all[i], report);
  });
  std::printf("%lld ranks: %lld cases\n", static_cast<long long>(GetParam()), static_cast<long long>(cases));
}

TEST_P(CollectivesOverThreads, SplitGroupsRunAtTheSameTime) { run_ranks(GetParam(), "split", run_split_cases); }

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesOverThreads, testing::Range<int64_t>(1, 9));

TEST(CollectivesOverThreadsMismatch, EveryPairIsAnErrorOnEveryRankThatNamesBothCalls) {
  const int64_t every = full() ? 1 : 7 * static_cast<int64_t>(kCaseStride);
  const int64_t pairs = run_ranks(3, "mismatch", [every](Group &group, Report *report) { run_mismatch_cases(group, every, report); });
  std::printf("threads: %lld pairs of differing collectives\n", static_cast<long long>(pairs));
}

}  // namespace
}  // namespace zero::test
