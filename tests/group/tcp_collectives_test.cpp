/// @file Collectives over groups whose ranks are on pretended hosts: sockets alone, and beneath them local transports.
#include "group/collectives.h"
#include "tests/group/collective_cases.h"
#include "tests/group/mismatch_cases.h"
#include "tests/group/tcp_ranks.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

namespace zero::test::tcp_collectives_test {
namespace {

/// Runs body(group, report) on thread ranks and expects no failure; returns rank 0's number of cases.
template <class Body>
int64_t run_hosts(const Hosts &hosts, const char *name, Body body) {
  TcpWorld world(hosts);
  std::vector<Report> reports(hosts.size());
  const std::string meeting = std::string("tcp_collectives_test.") + name + "." + std::to_string(::getpid());
  run_thread_ranks(static_cast<int64_t>(hosts.size()), [&](int64_t rank) {
    std::shared_ptr<Transport> transport;
    const Status status = connect_tcp_hosts(world, meeting, rank, hosts, &transport);
    Report &report = reports[static_cast<size_t>(rank)];
    report.expect(status.ok(), status.text());
    if (!status.ok()) return;
    Group group(std::move(transport), test_reducer(), kHostsDeadlineMs);
    body(group, &report);
  });
  for (const Report &report : reports) EXPECT_EQ(report.failures, 0) << report.text;
  return reports[0].cases;
}

/// Words are what it is for, so a part of the cases is enough beside those of other transports.
size_t case_stride() { return full_tests() ? 1 : 5 * kCaseStride; }

class TcpCollectives : public testing::TestWithParam<Hosts> {};

TEST_P(TcpCollectives, EveryCaseMatchesTheTreeAndFloat64) {
  const int64_t cases = run_hosts(GetParam(), "cases", [](Group &group, Report *report) {
    const std::vector<CollectiveCase> all = collective_cases(group.size());
    for (size_t i = 0; i < all.size(); i += case_stride()) run_collective_case(group, all[i], report);
  });
  std::printf("%zu ranks: %lld cases\n", GetParam().size(), static_cast<long long>(cases));
}

TEST_P(TcpCollectives, DifferingCollectivesAreErrorsOnEveryRank) {
  if (GetParam().size() == 1) return;
  const int64_t every = full_tests() ? 1 : 21 * static_cast<int64_t>(kCaseStride);
  const int64_t pairs = run_hosts(GetParam(), "differ", [&](Group &group, Report *report) { run_mismatch_cases(group, every, report); });
  std::printf("%zu ranks: %lld pairs of differing collectives\n", GetParam().size(), static_cast<long long>(pairs));
}

TEST_P(TcpCollectives, SplitGroupsRunAtTheSameTime) { run_hosts(GetParam(), "split", run_split_cases); }

TEST_P(TcpCollectives, WhoWaitsForAMessageGoesOnWithItsSum) { run_hosts(GetParam(), "behind", run_message_behind_sum); }

INSTANTIATE_TEST_SUITE_P(OwnHosts, TcpCollectives, testing::Values(own_hosts(1), own_hosts(2), own_hosts(3), own_hosts(4), own_hosts(8)));
INSTANTIATE_TEST_SUITE_P(SharedHosts, TcpCollectives, testing::Values(Hosts{0, 0, 1, 1}, Hosts{0, 1, 1, 0, 2}, Hosts{0, 0, 0, 1}));

/// Groups of one host never ask the sockets for a group of theirs, so ranks differ in how many they have made.
TEST(TcpCollectivesSplit, RanksThatWereInDifferentGroupsBeforeMakeOneTogether) {
  run_hosts({0, 0, 1, 1}, "uneven", [](Group &group, Report *report) {
    std::shared_ptr<Group> first;
    report->expect(group.queue()->run(split(group, group.rank() == 0 || group.rank() == 1 ? 0 : group.rank(), 0, &first)).ok(), "first");
    std::shared_ptr<Group> second;
    report->expect(group.queue()->run(split(group, group.rank() < 3 ? 0 : 1, 0, &second)).ok(), "second");
    std::shared_ptr<Group> third;
    report->expect(group.queue()->run(split(group, 0, -group.rank(), &third)).ok(), "third");
    for (const auto &child : {first, second, third}) {
      int64_t sum = 1;
      report->expect(child->queue()->run(all_reduce(*child, &sum, &sum, 1, DType::i64, ReduceOp::sum)).ok(), "all_reduce");
      report->expect(sum == child->size(), "wrong sum");
    }
  });
}

}  // namespace
}  // namespace zero::test::tcp_collectives_test
