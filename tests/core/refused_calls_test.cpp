/// @file Tests lib/core in a sandbox that refuses system calls: it falls back or returns an error,
/// and never retries forever.
#include "core/clock.h"
#include "core/doorbell.h"
#include "core/system_random.h"
#include "tests/group/process_ranks.h"
#include "tests/refused_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zero {
namespace {

constexpr int64_t kRefusedCallTimeoutMs = 60'000;
constexpr int kNoFilters = 77;
/// More than the processor time that a process may use.
constexpr int64_t kInAllNs = 2'500'000'000;

/// Runs `body` in processes to which the calls are refused, in each for another reason, and which
/// may use a second of processor time; their texts must hold `wanted`.
template <class Body>
void expect_under_refusal(const std::vector<long> &calls, const std::string &wanted, Body &&body) {
  constexpr int kReasons[] = {ENOSYS, EPERM, EACCES};
  const auto run = [&](int64_t number, int out_fd) {
    test::limit_cpu_seconds(1);
    if (!test::refuse_calls(calls, kReasons[number])) return kNoFilters;
    test::write_text(out_fd, body());
    return 0;
  };
  const test::ProcessResults results = test::run_process_ranks(3, run, kRefusedCallTimeoutMs);
  if (results.exit_codes[0] == kNoFilters) GTEST_SKIP() << "this system has no seccomp filters";
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  for (const std::string &text : results.texts) EXPECT_NE(text.find(wanted), std::string::npos) << results.describe();
}

std::string two_random_numbers() {
  uint64_t numbers[2] = {0, 0};
  for (uint64_t &number : numbers) {
    if (const Status status = random_u64(&number); !status.ok()) return status.text();
  }
  return numbers[0] != numbers[1] ? "they differ" : "they are the same";
}

TEST(RefusedCalls, RandomNumbersComeFromTheirFileWhereTheCallIsRefused) {
  expect_under_refusal({SYS_getrandom}, "they differ", two_random_numbers);
}

TEST(RefusedCalls, WithoutRandomNumbersThereIsAnError) {
  expect_under_refusal({SYS_getrandom, SYS_openat}, "names of shared memory and saves: getrandom says ", two_random_numbers);
}

/// As a thread of the pool waits for work.
std::string wait_in_turns(Doorbell *bell) {
  constexpr int64_t kTurnNs = 100'000'000;
  const int64_t end = now_ns() + kInAllNs;
  while (now_ns() < end) bell->wait(bell->sequence(), kTurnNs);
  return "waited";
}

TEST(RefusedCalls, WhoWaitsAtADoorbellSleepsAlsoWithoutFutexes) {
  expect_under_refusal({SYS_futex}, "waited", [] {
    Doorbell bell;
    return wait_in_turns(&bell);
  });
}

#if defined(SYS_futex_waitv)
TEST(RefusedCalls, WhoWaitsAtSeveralDoorbellsSleepsAlsoWithoutTheCallForIt) {
  expect_under_refusal({SYS_futex_waitv}, "waited", [] {
    Doorbell bells[2];
    const int64_t end = now_ns() + kInAllNs;
    while (now_ns() < end) {
      const Listening listenings[] = {Listening(&bells[0]), Listening(&bells[1])};
      Doorbell::wait_any(listenings, 100'000'000);
    }
    return std::string("waited");
  });
}
#endif

}  // namespace
}  // namespace zero
