/// @file The NCCL module's table over an NCCL of threads that fails, hangs or never ends: what NCCL does badly comes through as it is.
#include "tests/group/nccl_seat.h"

#include <gtest/gtest.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace zero::nccl_failures_test {
namespace {

using namespace test;

TEST_F(NcclTable, AbortEndsWhatIsPendingAndPeersDoNotNotice) {
  Seat zero(0);
  Seat one(1);
  ASSERT_NO_FATAL_FAILURE(open_pair(&zero, &one));
  const std::vector<char> before = one.read(0, 8);
  ASSERT_EQ(zero.move({zero.send(1, 0, 8), zero.recv(1, 8, 8)}), 0);
  EXPECT_EQ(zero.settle(100), kStillBusy);  // that way, they have not met
  EXPECT_EQ(zero.abort(), 0);
  zero.wait();
  ASSERT_EQ(one.move({one.recv(0, 0, 8)}), 0);
  EXPECT_EQ(one.settle(), 0);
  EXPECT_FALSE(one.ends());
  EXPECT_EQ(fake_nccl_objects(), 1);
  EXPECT_EQ(one.abort(), 0);
  one.wait();
  EXPECT_EQ(one.read(0, 8), before);
  EXPECT_EQ(fake_nccl_moved(), 8);
}

TEST_F(NcclTable, AMoveThatNeverEndsKeepsItsPeersWaiting) {
  Seat zero(0);
  Seat one(1);
  ASSERT_NO_FATAL_FAILURE(open_pair(&zero, &one));
  fake_nccl_stick(0, 1);
  ASSERT_NO_FATAL_FAILURE(exchange(&zero, &one));
  ASSERT_EQ(zero.move({zero.send(1, 0, 8)}), 0);
  ASSERT_EQ(one.move({one.recv(0, 0, 8)}), 0);
  EXPECT_EQ(zero.settle(), 0);
  EXPECT_EQ(one.settle(), 0);
  EXPECT_FALSE(zero.ends());
  EXPECT_FALSE(one.ends());
}

TEST_F(NcclTable, ErrorsOfTheNetworkComeWithTheStateWhileMovesNeverEnd) {
  Seat zero(0);
  Seat one(1);
  ASSERT_NO_FATAL_FAILURE(open_pair(&zero, &one));
  fake_nccl_break(0, 1, ncclRemoteError);
  ASSERT_NO_FATAL_FAILURE(exchange(&zero, &one));
  ASSERT_EQ(zero.move({zero.send(1, 0, 8)}), 0);
  int32_t error = zero.settle();
  for (int i = 0; i < 1000 && error == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    error = zero.settle();
  }
  EXPECT_EQ(error, ncclRemoteError);
  EXPECT_FALSE(zero.ends());
  EXPECT_EQ(zero.move({zero.send(1, 0, 8)}), ncclRemoteError);
  EXPECT_EQ(zero.finish(), ncclRemoteError);
}

TEST_F(NcclTable, ACommunicatorMayNeverBegin) {
  fake_nccl_stick_init(0);
  const Id id = new_id();
  Seat zero(id, 0, 2, 0);
  Seat one(id, 1, 2, 1);
  EXPECT_EQ(one.settle(), 0);
  EXPECT_EQ(zero.settle(100), kStillBusy);
}

TEST_F(NcclTable, WhatIsLeftToAbortIsToldWhereBeginningFails) {
  fake_nccl_break_init(1, ncclSystemError);
  const Id id = new_id();
  Seat zero(id, 0, 2, 0);
  Seat one(id, 1, 2, 1);
  EXPECT_NE(one.comm, nullptr);
  EXPECT_EQ(one.settle(), ncclSystemError);
  EXPECT_EQ(zero.settle(100), kStillBusy);
  Seat none(0);
  EXPECT_EQ(none.begin(new_id(), 2, 2), ncclInvalidArgument);
  EXPECT_EQ(none.comm, nullptr);
}

TEST_F(NcclTable, ACommunicatorMayNeverEnd) {
  fake_nccl_stick_finalize(0);
  Seat seat(new_id(), 0, 1, 0);
  ASSERT_EQ(seat.settle(), 0);
  EXPECT_EQ(seat.finish(), 0);
  EXPECT_EQ(seat.settle(100), kStillBusy);
}

TEST_F(NcclTable, AbortAndFreeMayHang) {
  fake_nccl_hang_abort(0);
  fake_nccl_hang_destroy(0);
  Seat aborted(new_id(), 0, 1, 0);
  Seat freed(new_id(), 0, 1, 0);
  ASSERT_EQ(freed.settle(), 0);
  ASSERT_EQ(freed.finish(), 0);
  ASSERT_EQ(freed.settle(), 0);
  std::atomic<int> returned{0};
  std::jthread aborting([&] {
    EXPECT_EQ(aborted.abort(), 0);
    ++returned;
  });
  std::jthread freeing([&] {
    EXPECT_EQ(freed.free(), 0);
    ++returned;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(returned, 0);
  EXPECT_EQ(fake_nccl_objects(), 2);
  while (returned < 2) {
    fake_nccl_release();
    std::this_thread::yield();
  }
}

TEST_F(NcclTable, CallsThatFailTellTheirCode) {
  Id id{};
  fake_nccl_fail("ncclGetUniqueId", 0);
  EXPECT_EQ(nccl().unique_id(id.data()), ncclSystemError);
  EXPECT_EQ(fake_nccl_failed(), 1);
  id = new_id();
  Seat seat(0);
  fake_nccl_fail(nullptr, 0);
  EXPECT_EQ(seat.begin(id, 0, 1), ncclSystemError);
  EXPECT_EQ(seat.comm, nullptr);
  ASSERT_EQ(seat.begin(id, 0, 1), 0);
  int32_t busy = 1;
  fake_nccl_fail("ncclCommGetAsyncError", 0);
  EXPECT_EQ(nccl().comm_state(seat.comm, &busy), ncclSystemError);
  EXPECT_EQ(busy, 0);
  EXPECT_EQ(seat.settle(), 0);
  fake_nccl_fail("ncclCommFinalize", 0);
  EXPECT_EQ(seat.finish(), ncclSystemError);
  ASSERT_EQ(seat.finish(), 0);
  EXPECT_EQ(seat.settle(), 0);
  fake_nccl_fail("ncclCommDestroy", 0);
  EXPECT_EQ(seat.free(), ncclSystemError);
  Seat other(new_id(), 0, 1, 0);
  fake_nccl_fail("ncclCommAbort", 0);
  EXPECT_EQ(other.abort(), ncclSystemError);
}

TEST_F(NcclTable, MovesThatFailLeaveNoGroupOpen) {
  for (const char *entry : {"ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd"}) {
    Seat zero(0);
    Seat one(1);
    ASSERT_NO_FATAL_FAILURE(open_pair(&zero, &one));
    fake_nccl_fail(entry, 0);
    EXPECT_EQ(zero.move({zero.send(1, 0, 8), zero.recv(1, 8, 8)}), ncclSystemError) << entry;
    EXPECT_EQ(fake_nccl_failed(), 1) << entry;
    EXPECT_EQ(zero.settle(), std::strcmp(entry, "ncclGroupStart") != 0 ? ncclSystemError : ncclSuccess) << entry;
    Seat other_zero(0);
    Seat other_one(1);
    ASSERT_NO_FATAL_FAILURE(open_pair(&other_zero, &other_one));
  }
}

TEST_F(NcclTable, SpreadsThatFailLeaveNoGroupOpen) {
  for (const char *entry : {"ncclBroadcast", "ncclAllGather"}) {
    Seat zero(0);
    Seat one(1);
    ASSERT_NO_FATAL_FAILURE(open_pair(&zero, &one));
    fake_nccl_fail(entry, 0);
    const bool gathers = std::strcmp(entry, "ncclAllGather") == 0;
    EXPECT_EQ(zero.move({gathers ? zero.gather(0, 0, 8) : zero.broadcast(0, 0, 8)}), ncclSystemError) << entry;
    EXPECT_EQ(fake_nccl_failed(), 1) << entry;
    EXPECT_EQ(zero.settle(), ncclSystemError) << entry;
    Seat other_zero(0);
    Seat other_one(1);
    ASSERT_NO_FATAL_FAILURE(open_pair(&other_zero, &other_one));
  }
}

/// What a program must not do, in a process of its own each.
class NcclTableDeathTest : public NcclTable {
 protected:
  NcclTableDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(NcclTableDeathTest, ABusyCommunicatorIsGivenNothing) {
  Seat zero(0);
  Seat one(1);
  ASSERT_NO_FATAL_FAILURE(open_pair(&zero, &one));
  ASSERT_EQ(zero.move({zero.send(1, 0, 8)}), 0);
  EXPECT_DEATH(zero.move({zero.send(1, 0, 8)}), "ncclSend on rank 0's communicator, where something is under way");
  EXPECT_DEATH(zero.finish(), "ncclCommFinalize on rank 0's communicator, where something is under way");
}

TEST_F(NcclTableDeathTest, MovesAreBetweenTwoRanksAndOfTheCommunicatorsDevice) {
  Seat zero(0);
  Seat one(1);
  ASSERT_NO_FATAL_FAILURE(open_pair(&zero, &one));
  EXPECT_DEATH(zero.move({zero.send(0, 0, 8)}), "ncclSend of rank 0 of 2 with peer 0");
  EXPECT_DEATH(zero.move({zero.recv(2, 0, 8)}), "ncclRecv of rank 0 of 2 with peer 2");
  EXPECT_DEATH(zero.move({one.send(1, 0, 8)}), "not of device 0");
}

TEST_F(NcclTableDeathTest, BothSidesOfAMoveHaveOneSize) {
  Seat zero(0);
  Seat one(1);
  ASSERT_NO_FATAL_FAILURE(open_pair(&zero, &one));
  const auto differ = [&] {
    zero.move({zero.send(1, 0, 8)});
    one.move({one.recv(0, 0, 4)});
    zero.settle();
    one.settle();
    one.wait();
  };
  EXPECT_DEATH(differ(), "rank 0 sends 8 bytes, rank 1 receives 4");
}

TEST_F(NcclTableDeathTest, CommunicatorsAreEndedBeforeTheyAreFreedAndNotUsedAfterwards) {
  Seat seat(new_id(), 0, 1, 0);
  ASSERT_EQ(seat.settle(), 0);
  EXPECT_DEATH(seat.free(), "was not finalized");
  void *freed = seat.comm;
  seat.end();
  EXPECT_DEATH(nccl().comm_abort(freed), "ncclCommAbort on a communicator that was freed or never made");
}

TEST_F(NcclTableDeathTest, CallsComeFromThreadsOnTheCommunicatorsDevice) {
  Seat seat(new_id(), 0, 1, 1);
  ASSERT_EQ(seat.settle(), 0);
  EXPECT_DEATH(nccl().comm_finish(seat.comm), "ncclCommFinalize on rank 0's communicator of device 1 by a thread on device -1");
  EXPECT_DEATH(nccl().comm_abort(seat.comm), "ncclCommAbort on rank 0's communicator of device 1 by a thread on device -1");
}

}  // namespace
}  // namespace zero::nccl_failures_test
