/// @file A rank that stops within a seal, where ranks are about to meet: the others know within one deadline who is missing.
#include "engine/optimizer/optimizer.h"
#include "tests/engine/rank_worlds.h"
#include "tests/faults/outcomes.h"
#include "tests/group/process_ranks.h"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <chrono>
#include <thread>

namespace {

/// How often this process may still go to a meeting before it stops for so long.
int meetings_left = -1;
constexpr std::chrono::milliseconds kStop(4000);

}  // namespace

/// The linker puts it in the place of socket, which ranks of a group call when they are about to meet.
extern "C" int __real_socket(int domain, int type, int protocol);
extern "C" int __wrap_socket(int domain, int type, int protocol) {
  if (domain == AF_UNIX && meetings_left >= 0 && meetings_left-- == 0) std::this_thread::sleep_for(kStop);
  return __real_socket(domain, type, protocol);
}

namespace zero::test::seal_stop_test {
namespace {

constexpr int64_t kRanks = 2;
constexpr int64_t kDeadlineMs = 1200;
constexpr int64_t kGraceMs = 900;
/// Two groups are split off; then gradients, parameters and states are shared.
constexpr int kMeetings = 5;

std::shared_ptr<Optimizer> unsealed_optimizer(const std::shared_ptr<Group> &group) {
  Config config;
  std::shared_ptr<Optimizer> optimizer;
  const int64_t count = 5000;
  int64_t id = 0;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGE, 0).ok());
  EXPECT_TRUE(Optimizer::create(group, config, &optimizer).ok());
  EXPECT_TRUE(optimizer->add_param(nullptr, "w", ZERO_DTYPE_F32, &count, 1, &id).ok());
  return optimizer;
}

TEST(SealStop, ARankThatStopsBeforeAMeetingIsATimeoutThatNamesIt) {
  for (int meeting = 0; meeting < kMeetings; ++meeting) {
    const std::string name = meeting_name();
    const ProcessResults results = run_process_ranks(
        kRanks,
        [&](int64_t rank, int out_fd) {
          const std::shared_ptr<Group> group = connect_rank(name, rank, kRanks, 1);
          const auto optimizer = unsealed_optimizer(group);
          group->set_deadline_ms(kDeadlineMs);
          if (rank == 0) meetings_left = meeting;
          const TimedOutcome outcome = timed([&] { return optimizer->seal_queue()->run(optimizer->seal()); });
          write_text(out_fd,
                     std::to_string(outcome.waited_ms) + " ms, " + status_name(outcome.status.code()) + ": " + outcome.status.text());
          const bool late = rank != 0 && outcome.waited_ms > kDeadlineMs + kGraceMs;
          return outcome.status.code() == ZERO_E_TIMEOUT && contains(outcome.status, "rank 0") && !late ? 0 : 1;
        },
        30'000);
    EXPECT_TRUE(results.all_exited_with(0)) << "meeting " << meeting << ": " << results.describe();
  }
}

}  // namespace
}  // namespace zero::test::seal_stop_test
