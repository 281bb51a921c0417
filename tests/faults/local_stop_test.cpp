/// @file A process of a local group that is stopped: it is not taken for dead, the others' texts say so, and once it goes on it
/// learns what became of the group.
#include "tests/group/local_ranks.h"
#include "tests/group/process_ranks.h"
#include "tests/sleep.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace zero::local_stop_test {
namespace {

using test::barrier;
using test::fresh_name;
using test::ProcessResults;
using test::run_process_ranks;
using test::sleep_ms;
using test::write_text;

constexpr int64_t kTimeoutMs = 30'000;

Status barriers(Transport &transport, uint64_t first, int64_t deadline_ms) {
  for (uint64_t number = first;; ++number) {
    Status status = barrier(transport, number, deadline_ms);
    if (status.code() == ZERO_E_TIMEOUT) transport.peers().poison(status);
    ZERO_TRY(status);
    sleep_ms(1);
  }
}

TEST(LocalStop, TextsSayStoppedAndTheStoppedRankGetsThePoison) {
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      3,
      [&](int64_t rank, int out_fd) {
        std::shared_ptr<Transport> transport;
        Status status = test::try_connect(name, rank, 3, &transport);
        if (status.ok()) status = barriers(*transport, 1, 300);
        write_text(out_fd, std::string(status_name(status.code())) + " " + status.text());
        // The segments must outlast the stopped rank's look at them.
        sleep_ms(rank == 1 ? 0 : 1000);
        return 0;
      },
      kTimeoutMs,
      [](const std::vector<pid_t> &processes) {
        sleep_ms(100);
        ::kill(processes[1], SIGSTOP);
        sleep_ms(700);
        ::kill(processes[1], SIGCONT);
      });
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  for (const std::string &text : results.texts) {
    EXPECT_EQ(text.find("ZERO_E_TIMEOUT rank 1 (process "), 0u) << results.describe();
    EXPECT_NE(text.find(", stopped) "), std::string::npos) << results.describe();
  }
}

TEST(LocalStop, ARankThatIsStoppedForLessThanTheDeadlineIsNoError) {
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      3,
      [&](int64_t rank, int out_fd) {
        std::shared_ptr<Transport> transport;
        Status status = test::try_connect(name, rank, 3, &transport);
        for (uint64_t number = 1; status.ok() && number <= 200; ++number) {
          status = barrier(*transport, number, 10'000);
          sleep_ms(1);
        }
        write_text(out_fd, status.text());
        return status.ok() ? 0 : 1;
      },
      kTimeoutMs,
      [](const std::vector<pid_t> &processes) {
        for (int repeat = 0; repeat < 3; ++repeat) {
          sleep_ms(40);
          ::kill(processes[1], SIGSTOP);
          sleep_ms(150);
          ::kill(processes[1], SIGCONT);
        }
      });
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST(LocalStop, WaitingForAStoppedRankSleeps) {
  const std::string name = fresh_name();
  const ProcessResults results = run_process_ranks(
      4,
      [&](int64_t rank, int) {
        std::shared_ptr<Transport> transport;
        Status status = test::try_connect(name, rank, 4, &transport);
        if (status.ok()) status = barriers(*transport, 1, 1500);
        return status.code() == ZERO_E_TIMEOUT ? 0 : 1;
      },
      kTimeoutMs,
      [](const std::vector<pid_t> &processes) {
        sleep_ms(50);
        ::kill(processes[3], SIGSTOP);
        sleep_ms(1700);
        ::kill(processes[3], SIGCONT);
      });
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  const int64_t most = *std::max_element(results.cpu_ns.begin(), results.cpu_ns.end());
  std::printf("processor time of a rank that waits 1500 ms: at most %.0f ms\n", static_cast<double>(most) / 1e6);
  // A waiting rank that spun would use all of it.
  EXPECT_LT(most, 750'000'000);
}

}  // namespace
}  // namespace zero::local_stop_test
