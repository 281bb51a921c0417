/// @file Ranks as processes of two hosts, which are network namespaces with names of their own, joined by a cable: they meet over TCP,
/// work, are killed, and lose the cable.
#include "group/hierarchy_transport.h"
#include "group/local/local_transport.h"
#include "group/tcp/tcp_id.h"
#include "group/tcp/tcp_transport.h"
#include "tests/engine/training.h"
#include "tests/group/collective_cases.h"
#include "tests/group/process_ranks.h"
#include "tests/group/transport_driver.h"

#include "group/collectives.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace zero::test::tcp_hosts_test {
namespace {

constexpr int64_t kRanks = 4;  // two on each host, host by host
constexpr int64_t kTimeoutMs = 60'000;
constexpr int64_t kMeetMs = 20'000;

int64_t host_of(int64_t rank) { return rank / 2; }

/// Two hosts and the cable between them.
class TwoHosts {
 public:
  TwoHosts() {
    for (const char *host : {"a", "b"}) {
      if (!ip("netns add " + name(host)) || !ip("-n " + name(host) + " link set lo up")) return;
    }
    there_ = ip("link add zero0 netns " + name("a") + " type veth peer name zero0 netns " + name("b")) &&
             ip("-n " + name("a") + " addr add 10.78.0.1/24 dev zero0") && ip("-n " + name("b") + " addr add 10.78.0.2/24 dev zero0") &&
             ip("-n " + name("a") + " link set zero0 up") && ip("-n " + name("b") + " link set zero0 up") && runs("a") && runs("b");
  }
  TwoHosts(const TwoHosts &) = delete;
  ~TwoHosts() {
    ip("netns del " + name("a"));
    ip("netns del " + name("b"));
  }

  bool there() const { return there_; }
  void unplug() const { EXPECT_TRUE(ip("-n " + name("a") + " link set zero0 down")); }
  /// Moves this process there.
  bool enter(int64_t host) const {
    const char *letter = host == 0 ? "a" : "b";
    const int space = ::open(("/var/run/netns/" + name(letter)).c_str(), O_RDONLY | O_CLOEXEC);
    const std::string host_name = std::string("zero-") + letter;
    const bool moved = space >= 0 && ::setns(space, CLONE_NEWNET) == 0 && ::unshare(CLONE_NEWUTS) == 0 &&
                       ::sethostname(host_name.c_str(), host_name.size()) == 0;
    if (space >= 0) ::close(space);
    return moved;
  }

 private:
  std::string name(const char *host) const { return "zero-test-" + std::to_string(owner_) + "-" + host; }
  static bool ip(const std::string &arguments) { return std::system(("ip " + arguments + " >/dev/null 2>&1").c_str()) == 0; }

  /// The system tells up to a second after an end of the cable was set up that it runs; addresses of ends that do not are nobody's.
  bool runs(const char *host) const {
    const Deadline deadline = Deadline::after_ms(kTimeoutMs);
    const std::string shows = "ip -n " + name(host) + " link show zero0 | grep -q 'state UP'";
    while (std::system(shows.c_str()) != 0) {
      if (deadline.passed()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }

  const pid_t owner_ = ::getpid();
  bool there_ = false;
};

/// What the processes of a test share.
struct Board {
  std::atomic<bool> has_id{false};
  char id[256] = "";
  std::atomic<int64_t> met{0};
  std::atomic<bool> go{false};
};

template <class Ready>
void await(Ready &&ready) {
  const Deadline deadline = Deadline::after_ms(kTimeoutMs);
  while (!ready() && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Rank 0 makes the id; everybody meets by it.
Status meet(int64_t rank, Board *board, std::shared_ptr<TcpTransport> *out) {
  TcpTerms terms;
  if (rank == 0) {
    ZERO_TRY(make_tcp_id("", 0, &terms.id));
    std::strncpy(board->id, terms.id.c_str(), sizeof board->id - 1);
    board->has_id = true;
  }
  await([&] { return board->has_id.load(); });
  terms.id = board->id;
  terms.rank = rank;
  terms.size = kRanks;
  terms.deadline_ms = kMeetMs;
  uint64_t meeting = 0;
  return run_task(connect_tcp(std::move(terms), out, &meeting));
}

Status connect(int64_t rank, int64_t deadline_ms, Board *board, std::shared_ptr<Group> *out) {
  std::shared_ptr<TcpTransport> far;
  std::shared_ptr<Transport> near;
  ZERO_TRY(meet(rank, board, &far));
  const Place place = far->capabilities().place;
  // Hosts have the same name here without knowing of each other: the sockets of local meetings belong to a network namespace.
  ZERO_TRY(run_task(connect_local("tcp_hosts", place.local_rank, place.local_size, {kMeetMs, 16384}, &near)));
  std::vector<int64_t> hosts = far->hosts();
  auto transport = std::make_shared<HierarchyTransport>(std::move(near), std::move(far), std::move(hosts));
  *out = std::make_shared<Group>(std::move(transport), test_reducer(), deadline_ms);
  board->met.fetch_add(1);
  return {};
}

std::string outcome(const Status &status) { return std::to_string(status.code()) + " " + status.text(); }

class TcpHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (!hosts_.there()) GTEST_SKIP() << "two hosts need network namespaces: root, and ip of the package iproute2";
    board_ = new (::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board;
  }
  void TearDown() override {
    if (board_ != nullptr) ::munmap(board_, sizeof(Board));
  }

  /// Runs body(rank, group), which returns what the rank has to say, in a process for each rank.
  template <class Body>
  ProcessResults run(int64_t deadline_ms, Body body, const WhileRunning &while_running = {}) {
    const auto rank_process = [&](int64_t rank, int out_fd) {
      std::shared_ptr<Group> group;
      Status status = Status::error(ZERO_E_SYSTEM, "cannot go to the host");
      if (hosts_.enter(host_of(rank))) status = connect(rank, deadline_ms, board_, &group);
      write_text(out_fd, status.ok() ? body(rank, *group) : outcome(status));
      return 0;
    };
    return run_process_ranks(kRanks, rank_process, kTimeoutMs, while_running);
  }

  static std::string barrier_when_told(Group &group, const Board &board) {
    await([&] { return board.go.load(); });
    return outcome(group.queue()->run(barrier(group)));
  }

  TwoHosts hosts_;
  Board *board_ = nullptr;
};

TEST_F(TcpHosts, CollectivesMatchTheTreeAndFloat64) {
  const ProcessResults results = run(kTimeoutMs, [](int64_t rank, Group &group) {
    Report report;
    const Place &place = group.place();
    report.expect(place.host_count == 2 && place.local_size == 2 && place.local_rank == rank % 2, "place");
    const std::vector<CollectiveCase> all = collective_cases(group.size());
    for (size_t i = 0; i < all.size(); i += 11 * kCaseStride) run_collective_case(group, all[i], &report);
    run_split_cases(group, &report);
    return report.failures == 0 && report.cases > 0 ? std::string("done") : report.text;
  });
  for (const std::string &text : results.texts) EXPECT_EQ(text, "done");
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST_F(TcpHosts, ARankThatIsKilledIsNamedOnBothHosts) {
  int64_t victim = 0;
  const auto kill_last = [&](const std::vector<pid_t> &pids) {
    victim = pids.back();
    await([&] { return board_->met.load() == kRanks; });
    board_->go = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::kill(pids.back(), SIGKILL);
  };
  const auto body = [&](int64_t rank, Group &group) {
    if (rank == kRanks - 1) std::this_thread::sleep_for(std::chrono::milliseconds(kTimeoutMs));
    return barrier_when_told(group, *board_);
  };
  const ProcessResults results = run(kTimeoutMs, body, kill_last);
  EXPECT_FALSE(results.timed_out) << results.describe();
  const std::string lost = std::to_string(ZERO_E_PEER_LOST) + " ";
  const std::string named = "rank 3 (process " + std::to_string(victim);
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(results.texts[rank].rfind(lost, 0), 0u) << results.describe();
    EXPECT_NE(results.texts[rank].find(named), std::string::npos) << results.describe();
  }
}

/// Trains until a rank is lost, then reads what lies on this rank. "salvaged", or what differs.
std::string train_and_salvage(const std::shared_ptr<Group> &group, int64_t stage) {
  Model model;
  model.ranks = group->size();
  model.counts = {3000, 700};
  Manner manner;
  manner.stage = stage;
  const auto optimizer = begun_optimizer(group, model, manner);
  (void)train_step(*optimizer, model, manner, 0);
  View view{};
  std::vector<float> read(3000);
  void *data = nullptr;
  if (!optimizer->view(0, ZERO_SLOT_FIRST_MOMENT, &view).ok()) return "no view";
  const auto *values = static_cast<const float *>(view.data);
  const std::vector<float> before(values, values + view.count);
  if (group->rank() == kRanks - 1) ::raise(SIGKILL);
  const std::vector<float> gradient(3000, 0.5F);
  Status lost;
  for (const int64_t id : {1, 0}) {
    if (lost.ok()) lost = optimizer->grad_ready(id, gradient.data(), 0, model.counts[static_cast<size_t>(id)]);
  }
  if (lost.ok()) lost = run_task(*optimizer, optimizer->step(nullptr));
  if (lost.code() != ZERO_E_PEER_LOST) return outcome(lost);
  if (const Status viewed = optimizer->view(0, ZERO_SLOT_FIRST_MOMENT, &view); !viewed.ok()) return outcome(viewed);
  if (std::memcmp(view.data, before.data(), before.size() * sizeof(float)) != 0) return "the view differs";
  const Status own = run_task(*optimizer, optimizer->read(view.param, ZERO_SLOT_FIRST_MOMENT, view.offset, read.data(), view.count));
  if (!own.ok()) return outcome(own);
  if (std::memcmp(read.data(), before.data(), before.size() * sizeof(float)) != 0) return "the read differs";
  const Status acquired = run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data));
  return acquired.code() == (stage < 3 ? ZERO_OK : ZERO_E_PEER_LOST) ? "salvaged" : outcome(acquired);
}

TEST_F(TcpHosts, ARankThatIsKilledLeavesTheOthersWhatLiesOnThem) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    board_->has_id = false;
    const ProcessResults results = run(kTimeoutMs, [stage](int64_t, Group &group) { return train_and_salvage(group.shared_from_this(), stage); });
    for (size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(results.texts[rank], "salvaged") << "stage " << stage << results.describe();
  }
}

TEST_F(TcpHosts, ACableThatIsCutIsTheDeadlinesErrorOnBothHosts) {
  const auto unplug = [&](const std::vector<pid_t> &) {
    await([&] { return board_->met.load() == kRanks; });
    hosts_.unplug();
    board_->go = true;
  };
  const auto body = [&](int64_t, Group &group) { return barrier_when_told(group, *board_); };
  const ProcessResults results = run(1000, body, unplug);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  const std::string timeout = std::to_string(ZERO_E_TIMEOUT) + " ";
  for (const std::string &text : results.texts) {
    EXPECT_EQ(text.rfind(timeout, 0), 0u) << results.describe();
    EXPECT_NE(text.find("did not answer"), std::string::npos) << results.describe();
  }
}

/// Rank 0 is a round ahead of its neighbour, as when the cable is cut in the middle of a collective: it waits for that one too.
TEST_F(TcpHosts, WhereACableIsCutRanksThatWaitThemselvesAreNotBlamed) {
  const auto unplug = [&](const std::vector<pid_t> &) {
    await([&] { return board_->met.load() == 2 * kRanks; });
    hosts_.unplug();
    board_->go = true;
  };
  const auto body = [&](int64_t rank, Group &group) {
    Transport &transport = group.transport();
    const Fingerprint fingerprint = call(OperationKind::exchange, 1);
    transport.peers().publish(&fingerprint);
    const Status first = round(transport, &fingerprint, std::vector<Offer>(kRanks), std::vector<Arrival>(kRanks));
    if (!first.ok()) return outcome(first);
    board_->met.fetch_add(1);
    await([&] { return board_->go.load(); });
    if (rank > 1) await([&] { return board_->met.load() > 2 * kRanks; });
    if (rank > 1) return std::string("cut off");
    if (rank == 1) return outcome(await_failure(transport));
    const Status second = round(transport, nullptr, std::vector<Offer>(kRanks), std::vector<Arrival>(kRanks), {}, 500);
    if (second.code() != ZERO_E_TIMEOUT) return outcome(second);
    const Status blames = Status::error(ZERO_E_TIMEOUT, "%s", transport.peers().progress_report(fingerprint).c_str());
    transport.peers().poison(blames);
    board_->met.fetch_add(1);
    return outcome(blames);
  };
  const ProcessResults results = run(kTimeoutMs, body, unplug);
  for (const size_t here : {0, 1}) {
    const std::string &text = results.texts[here];
    EXPECT_EQ(text.find("rank 1 "), std::string::npos) << results.describe();
    for (const char *unreachable : {"rank 2 ", "rank 3 "}) {
      EXPECT_NE(text.find(unreachable), std::string::npos) << results.describe();
      EXPECT_NE(text.find("did not answer (stopped, ended, unreachable, or busy"), std::string::npos) << results.describe();
    }
  }
}

}  // namespace
}  // namespace zero::test::tcp_hosts_test
