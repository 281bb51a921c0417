/// @file Collectives over local groups whose ranks are threads.
#include "core/mapping.h"
#include "group/collectives/balance.h"
#include "group/collectives.h"
#include "group/connect/connect.h"
#include "tests/group/collective_cases.h"
#include "tests/group/host_ranks.h"
#include "tests/group/mismatch_cases.h"
#include "tests/group/thread_ranks.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>

namespace zero::test::collectives_test {
namespace {

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

TEST_P(CollectivesOverThreads, WhoWaitsForAMessageGoesOnWithItsSum) { run_ranks(GetParam(), "behind", run_message_behind_sum); }

/// What ranks measured differs, and so may the ways that the words take.
TEST_P(CollectivesOverThreads, BalanceGivesEachRankTheShareOfTheRule) {
  run_ranks(GetParam(), "balance", [](Group &group, Report *report) {
    std::vector<Measured> measured;
    for (int64_t rank = 0; rank < group.size(); ++rank) measured.push_back({(rank + 1) * 7, 1000 + rank * 300});
    for (const int64_t unit : {1, 16}) {
      OperationQueue queue;
      int64_t share = -1;
      const Status status = queue.run(balance(group, measured[static_cast<size_t>(group.rank())], 1600, unit, &share));
      report->expect(status.ok(), status.text());
      report->expect(share == balanced_shares(measured, 1600, unit)[static_cast<size_t>(group.rank())], "share");
    }
    if (group.size() == 1) return;
    OperationQueue queue;
    int64_t share = -1;
    const Status status = queue.run(balance(group, {}, group.rank() == 0 ? 8 : 16, 8, &share));
    report->expect(status.code() == ZERO_E_MISMATCH && std::strstr(status.text(), "zero_group_balance") != nullptr &&
                       std::strstr(status.text(), "different totals or units") != nullptr,
                   status.text());
    report->expect(share == -1, "share of a call that failed");
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesOverThreads, testing::Range<int64_t>(1, 9));

template <class Body>
int64_t run_hosts(const Hosts &hosts, const char *name, Body body) {
  std::vector<Report> reports(hosts.size());
  run_thread_ranks(static_cast<int64_t>(hosts.size()), [&](int64_t rank) {
    std::shared_ptr<Group> group;
    const std::string meeting = std::string("collectives_test.") + name + "." + std::to_string(::getpid());
    const Status status = connect_hosts(meeting, rank, hosts, test_reducer(), &group);
    Report &report = reports[static_cast<size_t>(rank)];
    report.expect(status.ok(), status.text());
    if (group != nullptr) body(*group, &report);
  });
  for (const Report &report : reports) EXPECT_EQ(report.failures, 0) << report.text;
  return reports[0].cases;
}

struct HostsCase {
  Hosts hosts;
  int64_t block;
};

/// Slow builds take a fifth of their cases per layout of hosts.
const size_t kHostsStride = kCaseStride == 1 ? 1 : 5 * kCaseStride;

class CollectivesOverHosts : public testing::TestWithParam<HostsCase> {};

TEST_P(CollectivesOverHosts, EveryCaseMatchesTheTreeAndFloat64) {
  const int64_t cases = run_hosts(GetParam().hosts, "hosts", [](Group &group, Report *report) {
    report->expect(group.transport().capabilities().host_block == GetParam().block,
                   "block is " + std::to_string(group.transport().capabilities().host_block));
    const std::vector<CollectiveCase> all = collective_cases(group.size());
    for (size_t i = 0; i < all.size(); i += kHostsStride) run_collective_case(group, all[i], report);
  });
  std::printf("%zu ranks: %lld cases\n", GetParam().hosts.size(), static_cast<long long>(cases));
}

TEST_P(CollectivesOverHosts, DifferingCollectivesAreErrorsOnEveryRank) {
  const int64_t every = full_tests() ? 1 : 7 * static_cast<int64_t>(kHostsStride);
  const int64_t pairs =
      run_hosts(GetParam().hosts, "differ", [&](Group &group, Report *report) { run_mismatch_cases(group, every, report); });
  std::printf("%zu ranks: %lld pairs of differing collectives\n", GetParam().hosts.size(), static_cast<long long>(pairs));
}

TEST_P(CollectivesOverHosts, SplitGroupsRunAtTheSameTime) { run_hosts(GetParam().hosts, "split_hosts", run_split_cases); }

TEST_P(CollectivesOverHosts, WhoWaitsForAMessageGoesOnWithItsSum) { run_hosts(GetParam().hosts, "behind_hosts", run_message_behind_sum); }

INSTANTIATE_TEST_SUITE_P(Hosts, CollectivesOverHosts,
                         testing::Values(HostsCase{{0, 0, 1, 1}, 2}, HostsCase{{0, 0, 0, 0, 1, 1, 1, 1}, 4},
                                         HostsCase{{0, 0, 1, 1, 2, 2}, 2}, HostsCase{{0, 0, 0, 0, 1, 1}, 2}, HostsCase{{0, 0, 0, 1}, 1},
                                         HostsCase{{0, 1, 0, 1}, 1}));

/// Blocks are of 16, so that a round offers 15 contributions of 16 bits and a sum of 32: more than a block's contributions.
TEST(CollectivesOverUnequalHosts, ContributionsToNeighboursAndASumFitARound) {
  constexpr int64_t kStagingNbytes = 131072;
  Hosts hosts(32, 0);
  hosts.resize(48, 1);
  const CollectiveCase collective{OperationKind::reduce_scatter, DType::f16, ReduceOp::sum, 48 * 2048, 0};
  std::vector<Report> reports(hosts.size());
  run_thread_ranks(static_cast<int64_t>(hosts.size()), [&](int64_t rank) {
    std::shared_ptr<Transport> transport;
    Report &report = reports[static_cast<size_t>(rank)];
    const auto same = [](std::shared_ptr<Transport> far) { return far; };
    const std::string meeting = "collectives_test.unequal." + std::to_string(::getpid());
    const Status status = connect_host_transport(meeting, rank, hosts, &transport, same, kStagingNbytes);
    report.expect(status.ok() && transport->capabilities().host_block == 16, status.text());
    if (!status.ok()) return;
    Group group(std::move(transport), test_reducer(), kHostsDeadlineMs);
    run_collective_case(group, collective, &report);
  });
  for (const Report &report : reports) EXPECT_EQ(report.failures, 0) << report.text;
}

/// Memory of one rank for its contribution and its result: in an arena that all ranks can read, or private.
struct Memory {
  Memory(Group &group, bool shared, int64_t nbytes) : group_(group) {
    EXPECT_TRUE(Mapping::create_shared(2 * nbytes, &mapping_).ok());
    EXPECT_TRUE(group.queue()->run(group.transport().share(mapping_, &peers_, 60'000)).ok());
    private_.resize(static_cast<size_t>(2 * nbytes));
    send = shared ? mapping_->data() : private_.data();
    recv = send + nbytes;
  }
  Memory(const Memory &) = delete;
  ~Memory() { group_.transport().unshare(*mapping_); }

  std::byte *send;
  std::byte *recv;

 private:
  Group &group_;
  std::shared_ptr<Mapping> mapping_;
  std::vector<PeerMemory> peers_;
  std::vector<std::byte> private_;
};

Status run_in(Group &group, const CollectiveCase &c, const Memory &memory, const Cuts &cuts) {
  const Range mine = cuts[static_cast<size_t>(group.rank())];
  const int64_t element = dtype_nbytes(c.dtype);
  std::byte *own = memory.recv + mine.begin * element;
  if (c.kind == OperationKind::reduce_scatter) return group.queue()->run(reduce_scatter(group, {memory.send, own, &cuts, c.dtype, c.op}));
  if (c.kind == OperationKind::all_reduce) return group.queue()->run(all_reduce(group, memory.send, memory.recv, c.count, c.dtype, c.op));
  std::memcpy(own, memory.send + mine.begin * element, static_cast<size_t>(mine.count() * element));
  return group.queue()->run(all_gather(group, own, memory.recv, cuts, c.dtype));
}

/// What the rank must hold in its result: elements `out`.
Bytes expected_in(const CollectiveCase &c, const Cuts &cuts, Range out, Report *report) {
  if (c.kind != OperationKind::all_gather) return reduced(c, std::ssize(cuts), out, report);
  Bytes whole;
  for (int64_t rank = 0; rank < std::ssize(cuts); ++rank) {
    const Range cut = cuts[static_cast<size_t>(rank)];
    const Bytes part = data_of(c, rank, cut.begin, cut.end);
    whole.insert(whole.end(), part.begin(), part.end());
  }
  return whole;
}

/// One case; also that as much counts as sent as the formula says, in however few rounds it was.
void run_case_in(Group &group, const CollectiveCase &c, const Memory &memory, Report *report) {
  const Cuts cuts = even_cuts(c.count, group.size());
  const Range mine = cuts[static_cast<size_t>(group.rank())];
  const int64_t element = dtype_nbytes(c.dtype);
  const Bytes contribution = data_of(c, group.rank(), 0, c.count);
  if (c.count > 0) std::memcpy(memory.send, contribution.data(), contribution.size());
  const int64_t before = group.traffic(c.kind).sent_elements;
  const Status status = run_in(group, c, memory, cuts);
  report->expect(status.ok(), to_text(c) + ": " + status.text());
  const Range out = c.kind == OperationKind::reduce_scatter ? mine : Range{0, c.count};
  const Bytes expected = expected_in(c, cuts, out, report);
  const bool same = expected.empty() || std::memcmp(memory.recv + out.begin * element, expected.data(), expected.size()) == 0;
  report->expect(same, to_text(c) + ": wrong bits");
  const int64_t reduces = c.count - mine.count();
  const int64_t gathers = (group.size() - 1) * mine.count();
  const int64_t formula = c.kind == OperationKind::reduce_scatter ? reduces
                          : c.kind == OperationKind::all_gather   ? gathers
                                                                  : reduces + gathers;
  const bool at_once = c.kind == OperationKind::all_reduce && c.count * element <= 1024;
  const int64_t sent = group.traffic(c.kind).sent_elements - before;
  report->expect(at_once || sent == formula, to_text(c) + ": counts " + std::to_string(sent) + " elements as sent");
  ++report->cases;
}

TEST_P(CollectivesOverThreads, MemoryThatRanksShareNeedsNoStagingAndHasTheSameBits) {
  for (const bool all_share : {true, false}) {
    run_ranks(GetParam(), all_share ? "shared" : "half_shared", [all_share](Group &group, Report *report) {
      static const int64_t kMost = few_tests() ? 40'009 : 100'003;
      const Memory memory(group, all_share || group.rank() > 0, 4 * kMost);
      for (const OperationKind kind : {OperationKind::reduce_scatter, OperationKind::all_gather, OperationKind::all_reduce}) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
          for (const int64_t count : {int64_t{0}, int64_t{1}, group.size() - 1, int64_t{5003}, kMost}) {
            run_case_in(group, {kind, dtype, ReduceOp::sum, count, 0}, memory, report);
          }
        }
      }
    });
  }
}

TEST(CollectivesOverThreadsMismatch, EveryPairIsAnErrorOnEveryRankThatNamesBothCalls) {
  const int64_t every = full_tests() ? 1 : 7 * static_cast<int64_t>(kCaseStride);
  const int64_t pairs = run_ranks(3, "mismatch", [every](Group &group, Report *report) { run_mismatch_cases(group, every, report); });
  std::printf("threads: %lld pairs of differing collectives\n", static_cast<long long>(pairs));
}

}  // namespace
}  // namespace zero::test::collectives_test
