/// @file What groups do whatever their transport: when they fail, and whom they share cores with.
#include "group/collectives.h"
#include "tests/group/bind_to_core.h"
#include "tests/group/host_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/group/transport_driver.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

namespace zero::group_test {
namespace {

/// Adds nothing up.
class NoReducer final : public Reducer {
 public:
  bool reduce(const Reduction &) const override { return true; }
  void copy(void *, const void *, int64_t, int64_t) const override {}
};

TEST(Place, ThreadsOfOneProcessShareItsCoresAlsoInSplitGroups) {
  for (const test::Hosts &hosts : {test::Hosts{0, 0, 0}, {0, 0, 1}}) {
    const std::string name = "place." + std::to_string(::getpid()) + "." + std::to_string(hosts.back());
    test::run_thread_ranks(3, [&](int64_t rank) {
      ASSERT_TRUE(test::bind_to_core(rank));
      std::shared_ptr<Group> group;
      ASSERT_TRUE(test::connect_hosts(name, rank, hosts, std::make_shared<NoReducer>(), &group).ok());
      const int64_t here = std::count(hosts.begin(), hosts.end(), hosts[static_cast<size_t>(rank)]);
      EXPECT_EQ(group->place().core_sharers, here);
      std::shared_ptr<Group> alone;
      ASSERT_TRUE(group->queue()->run(split(*group, rank, 0, &alone)).ok());
      EXPECT_EQ(alone->place().local_size, 1);
      EXPECT_EQ(alone->place().core_sharers, here);
    });
  }
}

/// Nothing ever arrives, and the first to tell the peers of a failure is held up.
class SlowToTell final : public Transport, private Rounds, private Messages, private PeerHealth {
 public:
  SlowToTell() : Transport(0, 2, {.name = "slow to tell", .place = {0, 2, 1}, .round_nbytes = 4096}) {
    set_interfaces(*this, *this, *this);
  }

  int64_t staging_nbytes() const override { return 0; }
  Task derive_within(std::vector<int64_t>, int64_t, int64_t, int64_t, std::shared_ptr<Transport> *) override { co_return Status(); }

  bool telling() const { return telling_; }
  int told() const { return told_; }
  void release() {
    released_ = true;
    released_.notify_all();
  }

 private:
  Status start(const Fingerprint *, std::span<const Offer>, std::span<Arrival>) override { return {}; }
  Status poll(bool *out_arrived) override { return not_yet(out_arrived); }
  void consume() override {}
  Status poll_quiet(bool *out_quiet) override { return not_yet(out_quiet); }
  Status send_start(int64_t, const Fingerprint &, Offer) override { return {}; }
  Status send_poll(int64_t, bool *out_done) override { return not_yet(out_done); }
  Status recv_start(int64_t, const Fingerprint &, void *, int64_t) override { return {}; }
  Status recv_poll(int64_t, bool *out_done) override { return not_yet(out_done); }
  Status health() override { return {}; }
  void poison(const Status &) override {
    if (!telling_.exchange(true)) released_.wait(false);
    ++told_;
  }
  void publish(const Fingerprint *) override {}
  std::string progress_report(const Fingerprint &) override { return "rank 1 is late"; }
  static Status not_yet(bool *out) {
    *out = false;
    return {};
  }

  std::atomic<bool> telling_{false};
  std::atomic<bool> released_{false};
  std::atomic<int> told_{0};
};

/// A peer may be reading memory that the caller writes to as soon as its call has returned.
TEST(Group, ACallThatFailsReturnsOnceThePeersWereToldAlsoWhereAnotherThreadIsAboutTo) {
  const auto transport = std::make_shared<SlowToTell>();
  const auto group = std::make_shared<Group>(transport, nullptr, 200);
  const std::shared_ptr<Operation> call = group->queue()->submit(barrier(*group));
  (void)group->queue()->progress();
  std::thread aborts([&] { group->fail(Status::error(ZERO_E_ABORTED, "enough")); });
  while (!transport->telling()) std::this_thread::yield();
  EXPECT_FALSE(group->queue()->wait(call).ok());
  EXPECT_GE(transport->told(), 1);
  transport->release();
  aborts.join();
  EXPECT_EQ(group->usable().code(), ZERO_E_ABORTED);
}

/// A failure goes from group to group, each with numbers of its own for the same ranks.
TEST(ToldToPeers, NamesOnceWhoReportedAFailure) {
  const Status cause = Status::error(ZERO_E_ABORTED, "enough");
  const Status told = told_to_peers(cause, 3);
  EXPECT_STREQ(told.text(), "enough (reported by rank 3)");
  EXPECT_STREQ(told_to_peers(told, 1).text(), told.text());
  EXPECT_EQ(told_to_peers(told, 1).code(), ZERO_E_ABORTED);
  const Status mine = told_to_peers(Status::error(ZERO_E_OUT_OF_MEMORY, "no room"), 2);
  EXPECT_EQ(mine.code(), ZERO_E_PEER_FAILED);
  EXPECT_STREQ(mine.text(), "rank 2 failed: ZERO_E_OUT_OF_MEMORY: no room");
}

}  // namespace
}  // namespace zero::group_test
