/// @file Processes of a local group that are killed or end without a word: every living rank is told within 100 ms who was lost, and where.
#include "tests/faults/shared_counter.h"
#include "tests/group/local_ranks.h"
#include "tests/group/process_ranks.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <sstream>
#include <thread>

namespace zero::local_kill_test {
namespace {

using test::barrier;
using test::fresh_name;
using test::ProcessResults;
using test::run_process_ranks;
using test::run_task;
using test::write_text;

constexpr int64_t kTimeoutMs = 30'000;
constexpr int64_t kDetectNs = 100'000'000;
/// What a pause of the whole machine may add, and in how few kills: a virtual one is not always given its cores.
constexpr int64_t kPausedNs = 1'000'000'000;
constexpr int64_t kKillsPerPause = 30;

/// What a surviving rank reports: code, when it knew, and the text.
void report(int out_fd, const Status &status) {
  write_text(out_fd, std::to_string(status.code()) + " " + std::to_string(now_ns()) + " " + status.text());
}

struct Report {
  int code = 0;
  int64_t at_ns = 0;
  std::string text;
};

Report read_report(const std::string &text) {
  std::istringstream stream(text);
  Report report;
  stream >> report.code >> report.at_ns;
  std::getline(stream, report.text);
  return report;
}

/// Every rank sends to its next and receives from its previous one.
Status pass_around(Transport &transport, uint64_t number, const std::vector<uint8_t> &bytes) {
  const auto nbytes = static_cast<int64_t>(bytes.size());
  const int64_t next = (transport.rank() + 1) % transport.size();
  const int64_t previous = (transport.rank() + transport.size() - 1) % transport.size();
  std::vector<uint8_t> received(bytes.size());
  Fingerprint message = test::call(OperationKind::send, number, nbytes);
  ZERO_TRY(transport.messages().send_start(next, message, {bytes.data(), nbytes}));
  message.kind = OperationKind::recv;
  ZERO_TRY(transport.messages().recv_start(previous, message, received.data(), nbytes));
  bool sent = false;
  bool got = false;
  const auto poll_both = [&](bool *ready) {
    if (!sent) ZERO_TRY(transport.messages().send_poll(next, &sent));
    if (!got) ZERO_TRY(transport.messages().recv_poll(previous, &got));
    *ready = sent && got;
    return Status();
  };
  return test::await(transport, poll_both);
}

/// Works until something fails: barriers, messages around a ring, or shared memory and derived transports, again and again.
Status work(Transport &transport, int64_t kind) {
  const std::vector<uint8_t> bytes(1 << 20);
  std::vector<int64_t> all;
  for (int64_t rank = 0; rank < transport.size(); ++rank) all.push_back(rank);
  for (uint64_t number = 1;; ++number) {
    ZERO_TRY(barrier(transport, number));
    if (kind == 1) ZERO_TRY(pass_around(transport, number, bytes));
    if (kind == 2) {
      std::shared_ptr<Mapping> arena;
      ZERO_TRY(Mapping::create_shared(4096, &arena));
      std::vector<PeerMemory> peers;
      ZERO_TRY(run_task(transport.share(arena, &peers, 20'000)));
      transport.unshare(*arena);
      std::shared_ptr<Transport> derived;
      ZERO_TRY(run_task(transport.derive(all, 0, 20'000, &derived)));
    }
  }
}

struct Kill {
  ProcessResults results;
  int64_t victim = 0;
  int64_t at_ns = 0;
};

Kill kill_one(int64_t size, int64_t kind, std::mt19937_64 &random) {
  const std::string name = fresh_name();
  Kill kill;
  kill.victim = static_cast<int64_t>(random() % static_cast<uint64_t>(size));
  const auto after = std::chrono::microseconds(random() % 30'000);
  test::SharedCounter connected;
  kill.results = run_process_ranks(
      size,
      [&](int64_t rank, int out_fd) {
        std::shared_ptr<Transport> transport;
        Status status = test::try_connect(name, rank, size, &transport);
        connected.add();
        if (status.ok()) status = work(*transport, kind);
        report(out_fd, status);
        // Stays until the others have found out for themselves.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return 0;
      },
      kTimeoutMs,
      [&](const std::vector<pid_t> &processes) {
        connected.await(size, kTimeoutMs);
        std::this_thread::sleep_for(after);
        kill.at_ns = now_ns();
        ::kill(processes[static_cast<size_t>(kill.victim)], SIGKILL);
      });
  return kill;
}

TEST(LocalKill, EveryLivingRankIsToldWithinAHundredMilliseconds) {
  const int64_t kills = test::full_tests() ? 500 : 60;
  std::mt19937_64 random(2026);
  std::vector<int64_t> delays_ns;
  int64_t late_kills = 0;
  for (int64_t count = 0; count < kills; ++count) {
    const int64_t size = 2 + count % 4;
    const Kill kill = kill_one(size, count % 3, random);
    bool late = false;
    ASSERT_FALSE(kill.results.timed_out) << kill.results.describe();
    for (int64_t rank = 0; rank < size; ++rank) {
      const auto at = static_cast<size_t>(rank);
      if (rank == kill.victim) continue;
      ASSERT_EQ(kill.results.exit_codes[at], 0) << kill.results.describe();
      const Report found = read_report(kill.results.texts[at]);
      EXPECT_EQ(found.code, ZERO_E_PEER_LOST) << kill.results.describe();
      EXPECT_NE(found.text.find("rank " + std::to_string(kill.victim) + " (process "), std::string::npos) << found.text;
      delays_ns.push_back(found.at_ns - kill.at_ns);
      late = late || delays_ns.back() > kDetectNs;
    }
    late_kills += late ? 1 : 0;
  }
  std::sort(delays_ns.begin(), delays_ns.end());
  const auto in_ms = [](int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; };
  std::printf("kills %lld, reports %zu, p50 %.2f ms, max %.2f ms, late kills %lld\n", static_cast<long long>(kills), delays_ns.size(),
              in_ms(delays_ns[delays_ns.size() / 2]), in_ms(delays_ns.back()), static_cast<long long>(late_kills));
  EXPECT_LE(late_kills, kills / kKillsPerPause);
  EXPECT_LE(delays_ns.back(), kPausedNs);
}

TEST(LocalKill, ProcessThatExitsWithoutReleasingIsLost) {
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      3,
      [&](int64_t rank, int out_fd) {
        std::shared_ptr<Transport> transport;
        Status status = test::try_connect(name, rank, 3, &transport);
        if (status.ok()) status = barrier(*transport, 1);
        if (rank == 1) ::_exit(0);
        if (status.ok()) status = barrier(*transport, 2);
        report(out_fd, status);
        return 0;
      },
      kTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    const Report found = read_report(results.texts[rank]);
    EXPECT_EQ(found.code, ZERO_E_PEER_LOST) << results.describe();
    EXPECT_NE(found.text.find("rank 1 (process "), std::string::npos) << results.describe();
    EXPECT_NE(found.text.find("#2 barrier"), std::string::npos) << results.describe();
  }
}

TEST(LocalKill, ProcessThatReleasesAndExitsHasLeft) {
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      3,
      [&](int64_t rank, int out_fd) {
        std::shared_ptr<Transport> transport;
        Status status = test::try_connect(name, rank, 3, &transport);
        if (status.ok()) status = barrier(*transport, 1);
        if (rank == 1) return 0;
        if (status.ok()) status = barrier(*transport, 2);
        report(out_fd, status);
        return 0;
      },
      kTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  for (const size_t rank : {size_t{0}, size_t{2}}) EXPECT_EQ(read_report(results.texts[rank]).code, ZERO_E_PEER_LEFT) << results.describe();
}

TEST(LocalKill, QuietDoesNotWaitForTheDead) {
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      2,
      [&](int64_t rank, int out_fd) {
        std::shared_ptr<Transport> transport;
        Status status = test::try_connect(name, rank, 2, &transport);
        if (!status.ok()) return 1;
        const Fingerprint fingerprint = test::call(OperationKind::barrier, 1);
        std::vector<Arrival> arrivals(2);
        status = transport->rounds().start(&fingerprint, std::vector<Offer>(2), arrivals);
        // Rank 1 posts its message and ends without taking rank 0's.
        if (rank == 1) ::_exit(0);
        if (status.ok()) status = test::await(*transport, [&](bool *ready) { return transport->rounds().poll(ready); });
        transport->rounds().consume();
        if (status.ok()) status = test::quiet(*transport);
        report(out_fd, status);
        return status.ok() ? 0 : 1;
      },
      kTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

}  // namespace
}  // namespace zero::local_kill_test
