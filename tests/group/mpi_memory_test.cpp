/// @file Groups over a fake MPI that are released without memory.
#include "group/connect/connect.h"
#include "tests/core/failures.h"
#include "tests/group/collective_cases.h"
#include "tests/group/mpi_thread_ranks.h"

#include <zero/stats.h>

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <string>

namespace zero::mpi_memory_test {
namespace {

using test::barrier;
using test::call;
using test::exchange;
using test::kLongMs;
using test::run_ranks;
using test::run_task;
using test::run_thread_ranks;

TEST(MpiMemory, AReleaseWithoutMemoryKeepsWhatMpiMayStillUse) {
  std::barrier step(2);
  run_ranks(2, [&step](int64_t rank, std::shared_ptr<Transport> transport) {
    EXPECT_TRUE(barrier(*transport, 1, kLongMs).ok());
    step.arrive_and_wait();
    if (rank == 0) {
      fake_mpi::hold_sends(true);
      const Fingerprint fingerprint = call(OperationKind::exchange, 2);
      EXPECT_EQ(exchange(*transport, &fingerprint, 40'000, 40'000, 20).code(), ZERO_E_TIMEOUT);
      const int64_t before = mpi_quarantined_nbytes();
      {
        const test::FailingNew no_memory(0);
        transport.reset();
      }
      const int64_t kept = mpi_quarantined_nbytes();
      EXPECT_GT(kept, before);
      char text[4096] = "";
      EXPECT_EQ(zero_describe_library(text, sizeof text, nullptr), ZERO_OK);
      EXPECT_NE(std::strstr(text, ("; bytes in quarantine: " + std::to_string(kept) + "\n").c_str()), nullptr) << text;
      fake_mpi::hold_sends(false);
      EXPECT_EQ(fake_mpi::disturbed_sends(), 0);
    }
    step.arrive_and_wait();
  });
  // The next world is not disturbed.
  run_ranks(2, [](int64_t, std::shared_ptr<Transport> transport) { EXPECT_TRUE(barrier(*transport, 1, kLongMs).ok()); });
}

TEST(MpiMemory, WhoKnowsOfAFailureAndCouldNotTellThePeersTellsThemWhenItReleases) {
  run_ranks(2, [](int64_t rank, std::shared_ptr<Transport> transport) {
    EXPECT_TRUE(barrier(*transport, 1, kLongMs).ok());
    if (rank == 1) {
      EXPECT_EQ(barrier(*transport, 2, kLongMs).code(), ZERO_E_ABORTED);
      return;
    }
    const Status cause = Status::error(ZERO_E_ABORTED, "rank 0 has had enough of it");
    const test::FailingNew no_memory(0);
    EXPECT_THROW(transport->peers().poison(cause), std::bad_alloc);
  });
}

/// The transport that all data took tells the one over MPI of its failure when it goes: then there may be no memory.
TEST(MpiMemory, AGroupThatHasFailedIsReleasedWithoutMemory) {
  Config config;
  ASSERT_TRUE(config.set_str(ZERO_KEY_MPI_MODULE, ZERO_FAKE_MPI_FILE).ok());
  const GroupOptions options(config);
  std::barrier step(2);
  fake_mpi::begin_world(2);
  run_thread_ranks(2, [&](int64_t rank) {
    fake_mpi::join(rank);
    std::shared_ptr<Group> group;
    const auto reducer = [](const Place &) { return test::test_reducer(); };
    const Status status = run_task(connect_mpi_group(ZERO_MPI_WORLD, options, reducer, &group));
    ASSERT_TRUE(status.ok()) << status.text();
    step.arrive_and_wait();
    if (rank == 0) group->fail(Status::error(ZERO_E_ABORTED, "rank 0 has had enough of it"));
    step.arrive_and_wait();
    const test::FailingNew no_memory(0);
    group.reset();
  });
  run_ranks(2, [](int64_t, std::shared_ptr<Transport> transport) { EXPECT_TRUE(barrier(*transport, 1, kLongMs).ok()); });
}

}  // namespace
}  // namespace zero::mpi_memory_test
