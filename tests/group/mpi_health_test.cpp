/// @file What ranks over a fake MPI say of one another when a call has timed out: where each stands, and who is not to blame.
#include "tests/group/fake_mpi.h"
#include "tests/group/mpi_thread_ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <string>
#include <vector>

namespace zero::mpi_health_test {
namespace {

using test::all_ranks;
using test::call;
using test::kLongMs;
using test::run_ranks;
using test::run_task;

/// Rank 1's text of a timeout in a call that rank 0 answers for, after answer(rank 0's transport).
template <class Answer>
std::string progress_report_of_rank_0(const Fingerprint &fingerprint, Answer answer) {
  std::string text;
  std::barrier step(2);
  std::atomic<bool> asked{false};
  run_ranks(2, [&](int64_t rank, std::shared_ptr<Transport> world) {
    std::shared_ptr<Transport> group;
    EXPECT_TRUE(run_task(world->derive(all_ranks(2), 0, kLongMs, &group)).ok());
    if (rank == 0) answer(group);
    step.arrive_and_wait();
    if (rank == 1) {
      text = group->peers().progress_report(fingerprint);
      asked = true;
    }
    while (!asked) EXPECT_TRUE(world->peers().health().ok());
    step.arrive_and_wait();
  });
  return text;
}

TEST(MpiProgress, ProgressReportsTellWhatTheOtherRankOfAMessageDoes) {
  Fingerprint message = call(OperationKind::recv, 1, 8);
  message.root = 0;
  EXPECT_NE(progress_report_of_rank_0(message, [](auto &) {}).find("rank 0 is in no collective of this group"), std::string::npos);
  const Fingerprint doing = call(OperationKind::barrier, 4);
  const std::string inside = progress_report_of_rank_0(message, [&](auto &group) { group->peers().publish(&doing); });
  EXPECT_NE(inside.find("rank 0 is in #4 barrier"), std::string::npos) << inside;
  message.kind = OperationKind::send;
  const std::string gone = progress_report_of_rank_0(message, [](auto &group) { group.reset(); });
  EXPECT_NE(gone.find("rank 0 has left the group"), std::string::npos) << gone;
  const std::string failed =
      progress_report_of_rank_0(message, [](auto &group) { group->peers().poison(Status::error(ZERO_E_ABORTED, "given up")); });
  EXPECT_NE(failed.find("rank 0 has met an error"), std::string::npos) << failed;
}

TEST(MpiProgress, ProgressReportsTellTheMessageThatARankWaitsFor) {
  Fingerprint message = call(OperationKind::recv, 1, 8);
  message.root = 0;
  Fingerprint other = call(OperationKind::recv, 1, 8);
  other.root = 1;
  const std::string waits = progress_report_of_rank_0(message, [&](auto &group) { group->peers().publish_message(other, false); });
  EXPECT_NE(waits.find("rank 0 has #1 recv(bytes, count 8, from rank 1) under way"), std::string::npos) << waits;
  const std::string ended = progress_report_of_rank_0(message, [&](auto &group) {
    group->peers().publish_message(other, false);
    group->peers().publish_message(other, true);
  });
  EXPECT_NE(ended.find("rank 0 is in no collective of this group"), std::string::npos) << ended;
}

/// Rank 0 awaits a piece of rank 1 alone, which waits in the same call. Rank 2 looks at nothing.
TEST(MpiProgress, WhereAllThatAreAwaitedWaitTooOthersAreAsked) {
  std::barrier step(3);
  std::string text;
  std::atomic<bool> asked{false};
  run_ranks(3, [&](int64_t rank, std::shared_ptr<Transport> transport) {
    const Fingerprint fingerprint = call(OperationKind::exchange, 1);
    transport->peers().publish(&fingerprint);
    const std::vector<Offer> offers(3);
    std::vector<Arrival> arrivals(3);
    arrivals[1].nbytes = 8;
    step.arrive_and_wait();
    if (rank == 0) {
      EXPECT_TRUE(transport->rounds().start(nullptr, offers, arrivals).ok());
    }
    // On a loaded machine the thread that must answer may not run for so long.
    for (int ask = 0; rank == 0 && ask < 20 && (ask == 0 || text.find("rank 1 ") != std::string::npos); ++ask) {
      text = transport->peers().progress_report(fingerprint);
    }
    if (rank == 0) asked = true;
    while (rank == 1 && !asked) EXPECT_TRUE(transport->peers().health().ok());
    step.arrive_and_wait();
    if (rank == 0) transport->peers().poison(Status::error(ZERO_E_ABORTED, "the test is over"));
  });
  EXPECT_EQ(text, "rank 2 did not answer (stopped, ended, unreachable, or busy outside libzero)");
}

}  // namespace
}  // namespace zero::mpi_health_test
