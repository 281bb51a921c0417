/// @file The local transport and the rendezvous with ranks as processes: descriptors travel, memory is shared, nothing is left.
#include "group/local/local_processes.h"
#include "tests/group/bind_to_core.h"
#include "tests/group/local_ranks.h"
#include "tests/group/process_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/sizes.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

namespace zero::local_processes_test {
namespace {

using test::barrier;
using test::call;
using test::fresh_name;
using test::ProcessResults;
using test::quiet;
using test::run_process_ranks;
using test::run_task;
using test::write_text;

constexpr int64_t kTimeoutMs = 60'000;

/// Ends a rank with its status: exit code 0, or 1 and the text.
int finish(int out_fd, const Status &status) {
  if (!status.ok()) write_text(out_fd, std::string(status_name(status.code())) + " " + status.text());
  return status.ok() ? 0 : 1;
}

Status random_rounds(Transport &transport, int64_t rounds) {
  const int64_t size = transport.size();
  std::mt19937_64 delays(static_cast<uint64_t>(transport.rank()));
  std::mt19937_64 shared(99);  // the same on all ranks
  for (int64_t number = 1; number <= rounds; ++number) {
    const auto nbytes = static_cast<int64_t>(shared() % static_cast<uint64_t>(transport.capabilities().round_nbytes + 1));
    if (delays() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(delays() % 2000));
    const auto byte_of = [number](int64_t rank) { return static_cast<uint8_t>(rank * 17 + number); };
    const std::vector<uint8_t> piece(static_cast<size_t>(nbytes), byte_of(transport.rank()));
    const Fingerprint fingerprint = call(OperationKind::all_gather, static_cast<uint64_t>(number), nbytes);
    bool right = true;
    ZERO_TRY(test::round(transport, &fingerprint, std::vector<Offer>(static_cast<size_t>(size), {piece.data(), nbytes}),
                         std::vector<Arrival>(static_cast<size_t>(size), {nullptr, nbytes}), [&](const std::vector<Arrival> &arrived) {
                           for (int64_t peer = 0; peer < size; ++peer) {
                             const auto *bytes = static_cast<const uint8_t *>(arrived[static_cast<size_t>(peer)].data);
                             if (peer == transport.rank()) continue;
                             for (int64_t at = 0; at < nbytes; ++at) right = right && bytes[at] == byte_of(peer);
                           }
                         }));
    ZERO_CHECK(right, ZERO_E_INTERNAL, "wrong bytes in round %lld", static_cast<long long>(number));
  }
  return quiet(transport);
}

Status share_and_derive(Transport &transport) {
  constexpr int64_t kBytes = 300'000;
  std::shared_ptr<Mapping> arena;
  ZERO_TRY(Mapping::create_shared(kBytes, &arena));
  arena->data()[kBytes - 1] = static_cast<std::byte>(transport.rank() + 1);
  std::vector<PeerMemory> peers;
  ZERO_TRY(run_task(transport.share(arena, &peers, 20'000)));
  for (int64_t peer = 0; peer < transport.size(); ++peer) {
    const bool right = peers[static_cast<size_t>(peer)].mapping->data()[kBytes - 1] == static_cast<std::byte>(peer + 1);
    ZERO_CHECK(right, ZERO_E_INTERNAL, "wrong byte in the arena of rank %lld", static_cast<long long>(peer));
  }
  const Fingerprint fingerprint = call(OperationKind::all_gather, 1, kBytes);
  const auto size = static_cast<size_t>(transport.size());
  ZERO_TRY(test::round(transport, &fingerprint, std::vector<Offer>(size, {arena->data(), kBytes}),
                       std::vector<Arrival>(size, {nullptr, kBytes})));
  ZERO_TRY(quiet(transport));
  std::vector<int64_t> reversed;
  for (int64_t rank = transport.size() - 1; rank >= 0; --rank) reversed.push_back(rank);
  std::shared_ptr<Transport> derived;
  ZERO_TRY(run_task(transport.derive(reversed, 0, 20'000, &derived)));
  ZERO_TRY(random_rounds(*derived, 20));
  transport.unshare(*arena);
  return barrier(transport, 2);
}

class LocalProcessesOfSize : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, LocalProcessesOfSize, testing::Range<int64_t>(1, 9));

TEST_P(LocalProcessesOfSize, RoundsSharedMemoryAndDerivedTransportsWork) {
  const int64_t size = GetParam();
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      size,
      [&](int64_t rank, int out_fd) {
        std::shared_ptr<Transport> transport;
        Status status = test::try_connect(name, rank, size, &transport, {20'000, 32'768});
        if (status.ok() && transport->capabilities().within_process != (size == 1)) return 2;
        if (status.ok()) status = random_rounds(*transport, test::full_tests() ? 1000 : 100);
        if (status.ok()) status = share_and_derive(*transport);
        return finish(out_fd, status);
      },
      kTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

/// Every second rank is bound to the first core, the others to the second one where there is one.
TEST(LocalProcesses, ProcessesShareCoresWithThoseThatMayUseTheSame) {
  const std::string name = fresh_name();
  const int64_t cores = std::min<int64_t>(usable_cores(), 2);
  const ProcessResults results = run_process_ranks(
      3,
      [&](int64_t rank, int out_fd) {
        std::shared_ptr<Transport> transport;
        if (!test::bind_to_core(rank % 2)) return 2;
        Status status = test::try_connect(name, rank, 3, &transport);
        const int64_t sharers = cores == 1 ? 3 : rank == 1 ? 1 : 2;
        if (status.ok() && transport->capabilities().place.core_sharers != sharers) {
          status = Status::error(ZERO_E_INTERNAL, "%lld ranks share cores", lld(transport->capabilities().place.core_sharers));
        }
        return finish(out_fd, status);
      },
      kTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

/// A child that does nothing until it is killed.
pid_t idle_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  return child;
}

bool comes_to(pid_t process, ProcessState state) {
  for (int i = 0; i < 20'000 && process_state(process) != state; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return process_state(process) == state;
}

TEST(ProcessStates, RunningStoppedAndEndedAreToldApart) {
  EXPECT_EQ(process_state(::getpid()), ProcessState::running);
  const pid_t child = idle_child();
  ASSERT_GT(child, 0);  // a signal to -1 would reach every process there is
  EXPECT_TRUE(comes_to(child, ProcessState::running));
  ::kill(child, SIGSTOP);
  EXPECT_TRUE(comes_to(child, ProcessState::stopped));
  LocalProcesses watched;
  ASSERT_TRUE(watched.open({::getpid(), child, child}).ok());
  watched.look();
  EXPECT_FALSE(watched.ended(1));
  ::kill(child, SIGKILL);
  // Not waited for yet, so it is a zombie.
  EXPECT_TRUE(comes_to(child, ProcessState::ended));
  for (int i = 0; i < 20'000 && !watched.ended(1); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    watched.look();
  }
  EXPECT_TRUE(watched.ended(1));
  EXPECT_TRUE(watched.ended(2));
  EXPECT_FALSE(watched.ended(0));
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(process_state(child), ProcessState::ended);
  LocalProcesses too_late;
  ASSERT_TRUE(too_late.open({::getpid(), child}).ok());
  EXPECT_TRUE(too_late.ended(1));
}

TEST(ProcessStates, AProcessThatCannotExistIsAnErrorThatNamesIt) {
  LocalProcesses watched;
  const Status status = watched.open({::getpid(), -5});
  EXPECT_EQ(status.code(), ZERO_E_SYSTEM);
  EXPECT_TRUE(test::contains(status, "rank 1 (process -5)")) << status.text();
}

#ifndef ZERO_TEST_KEEPS_DESCRIPTORS
/// Leaves this process so many descriptors.
void leave_descriptors(int more) {
  int past = 0;
  for (; more > 0; ++past) more -= ::fcntl(past, F_GETFD) < 0 ? 1 : 0;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = static_cast<rlim_t>(past);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// With one it can tell the others at least that it has too few. Others wait for it, or come when it waits for them.
TEST(LocalProcesses, ARankWithTooFewDescriptorsIsNamedToAllLongBeforeTheDeadline) {
  constexpr int64_t kRanks = 3;
  constexpr int64_t kPoor = 1;
  int64_t enough = 0;
  for (int descriptors = 1; descriptors < 12 && enough < 2; ++descriptors) {
    for (const bool comes_first : {true, false}) {
      const std::string name = fresh_name();
      const ProcessResults results = run_process_ranks(
          kRanks,
          [&](int64_t rank, int out_fd) {
            if (comes_first != (rank == kPoor)) std::this_thread::sleep_for(std::chrono::milliseconds(50));
            if (rank == kPoor) leave_descriptors(descriptors);
            std::shared_ptr<Transport> transport;
            const Status status = test::try_connect(name, rank, kRanks, &transport, {10 * kTimeoutMs});
            write_text(out_fd, std::to_string(::getpid()) + " " + status.text());
            return status.ok() ? 0 : 1;
          },
          kTimeoutMs);
      if (results.all_exited_with(0)) ++enough;
      if (results.all_exited_with(0)) continue;
      EXPECT_TRUE(results.all_exited_with(1)) << descriptors << " descriptors: " << results.describe();
      const std::string poor = "rank 1 (process " + results.texts[kPoor].substr(0, results.texts[kPoor].find(' ')) + ") ";
      for (const size_t other : {0, 2}) {
        EXPECT_NE(results.texts[other].find(poor), std::string::npos) << descriptors << " descriptors: " << results.describe();
        const bool says_why = results.texts[other].find("Too many open files") != std::string::npos ||
                              results.texts[other].find("too few file descriptors") != std::string::npos;
        EXPECT_TRUE(says_why) << descriptors << " descriptors: " << results.describe();
      }
    }
  }
  // The rank that leads the meeting needs more of them.
  EXPECT_GE(enough, 2);
}
#endif

/// Closes what the library holds open, as programs do that begin anew, and takes the numbers for files of its own, which can be read.
void close_all_but(int kept) {
  constexpr int kMost = 256;
  int closed = 0;
  for (int fd = 3; fd < kMost; ++fd) closed += fd != kept && ::close(fd) == 0 ? 1 : 0;
  for (int i = 0; i < closed; ++i) (void)::open("/dev/zero", O_RDONLY);
}

TEST(LocalProcesses, AProgramThatClosesAllDescriptorsGoesOnWithItsPeers) {
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      2,
      [&](int64_t rank, int out_fd) {
        std::shared_ptr<Transport> transport;
        Status status = test::try_connect(name, rank, 2, &transport);
        if (status.ok()) status = barrier(*transport, 1);
        if (rank == 0) close_all_but(out_fd);
        // Long enough for looks at what has ended.
        for (uint64_t sequence = 2; status.ok() && sequence < 12; ++sequence) {
          if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
          status = barrier(*transport, sequence);
        }
        if (!status.ok() || rank == 1) return finish(out_fd, status);
        // Who ends is seen to do so all the same.
        const Status lost = barrier(*transport, 12);
        write_text(out_fd, lost.text());
        return lost.code() == ZERO_E_PEER_LOST || lost.code() == ZERO_E_PEER_LEFT ? 0 : 1;
      },
      kTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST(LocalProcesses, ThreadsAndProcessesMeetInOneGroup) {
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      3,
      [&](int64_t process, int out_fd) {
        std::atomic<int> failed{0};
        test::run_thread_ranks(2, [&](int64_t thread) {
          std::shared_ptr<Transport> transport;
          Status status = test::try_connect(name, process * 2 + thread, 6, &transport, {20'000, 32'768});
          if (status.ok() && transport->capabilities().within_process) status = Status::error(ZERO_E_INTERNAL, "not all ranks are threads");
          if (status.ok()) status = random_rounds(*transport, 50);
          if (status.ok()) status = share_and_derive(*transport);
          failed += finish(out_fd, status);
        });
        return failed.load();
      },
      kTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST(LocalProcesses, CreationAfterCreationLeavesNoDescriptorsAndNoMappings) {
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      3,
      [&](int64_t rank, int out_fd) {
        const int64_t descriptors = test::open_descriptors();
        const int64_t mappings = test::shared_mappings();
        for (int cycle = 0; cycle < 200; ++cycle) {
          std::shared_ptr<Transport> transport;
          const Status status = test::try_connect(name, rank, 3, &transport);
          if (!status.ok()) return finish(out_fd, status);
        }
        const bool clean = test::open_descriptors() == descriptors && test::shared_mappings() == mappings;
        return finish(out_fd, clean ? Status() : Status::error(ZERO_E_INTERNAL, "descriptors or mappings left"));
      },
      kTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST(LocalProcesses, DescriptorsThatTravelNameTheSameFile) {
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      4,
      [&](int64_t rank, int out_fd) {
        std::shared_ptr<Mapping> file;
        Status status = Mapping::create_shared(4096 * (rank + 1), &file);
        Joiner mine;
        mine.fd.reset(::fcntl(file->fd(), F_DUPFD_CLOEXEC, 0));
        const int64_t before = test::open_descriptors();
        {
          std::vector<Joiner> out;
          if (status.ok())
            status = run_task(rendezvous({.name = name, .rank = rank, .size = 4, .deadline_ms = 20'000}, std::move(mine), &out));
          for (int64_t peer = 0; status.ok() && peer < 4; ++peer) {
            struct stat about {};
            ::fstat(out[static_cast<size_t>(peer)].fd.get(), &about);
            const int flags = ::fcntl(out[static_cast<size_t>(peer)].fd.get(), F_GETFD);
            if (about.st_size != 4096 * (peer + 1)) status = Status::error(ZERO_E_INTERNAL, "another file");
            if ((flags & FD_CLOEXEC) == 0) status = Status::error(ZERO_E_INTERNAL, "descriptor survives exec");
          }
        }
        if (status.ok() && test::open_descriptors() != before - 1) status = Status::error(ZERO_E_INTERNAL, "descriptors left");
        return finish(out_fd, status);
      },
      kTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST(LocalProcesses, ARankThatIsKilledWhileRanksMeetMayComeAgain) {
  const std::string name = fresh_name();
  std::shared_ptr<Mapping> board;
  ASSERT_TRUE(Mapping::create_shared(sizeof(std::atomic<int>), &board).ok());
  auto &killed = *new (board->data()) std::atomic<int>{0};
  const auto sleep_ms = [](int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
  const ProcessResults results = run_process_ranks(
      4,
      [&](int64_t process, int out_fd) {
        // Processes 0 and 1 come as ranks 0 and 1; whoever of them leads, 0 is killed and comes again as process 3; rank 2 comes last.
        const int64_t ranks[] = {0, 1, 2, 0};
        const int64_t delays_ms[] = {0, process == 1 ? 20 : 0, 100, 0};
        while (process >= 2 && killed == 0) sleep_ms(1);
        sleep_ms(delays_ms[process]);
        std::shared_ptr<Transport> transport;
        Status status = test::try_connect(name, ranks[process], 3, &transport);
        if (status.ok()) status = barrier(*transport, 1);
        return finish(out_fd, status);
      },
      kTimeoutMs,
      [&](const std::vector<pid_t> &processes) {
        sleep_ms(100);
        ::kill(processes[0], SIGKILL);
        siginfo_t ended{};
        EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(processes[0]), &ended, WEXITED | WNOWAIT), 0);
        killed = 1;
      });
  EXPECT_EQ(results.exit_codes, (std::vector<int>{128 + SIGKILL, 0, 0, 0})) << results.describe();
}

TEST(LocalProcesses, TooFewDescriptorsAreAnErrorOnEveryRankAndNotAHang) {
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      6,
      [&](int64_t rank, int out_fd) {
        if (rank == 5) {
          const auto spare = static_cast<rlim_t>(test::open_descriptors() + 3);
          const rlimit limit{spare, spare};
          ::setrlimit(RLIMIT_NOFILE, &limit);
        }
        std::shared_ptr<Transport> transport;
        const Status status = test::try_connect(name, rank, 6, &transport, {2'000, 4096});
        const std::string text = status.text();
        write_text(out_fd, text);
        // Whether rank 5 led or not: it lacked descriptors, and the others are told so or miss it.
        const bool lacks = status.code() == ZERO_E_SYSTEM && text.find("too few file descriptors for 6 ranks to meet") != std::string::npos;
        const bool misses = status.code() == ZERO_E_RENDEZVOUS &&
                            (text.find("rank 5") != std::string::npos || text.find("was not complete") != std::string::npos);
        return lacks || (misses && rank != 5) ? 0 : 1;
      },
      20'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST(LocalProcesses, NothingIsSaidAgainstOneThatCannotBeLookedAt) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const ProcessState state = process_state(::getpid());
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(state, ProcessState::running);
}

}  // namespace
}  // namespace zero::local_processes_test
