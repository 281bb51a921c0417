/// @file What all groups of a communicator share, over a fake MPI: each control message is handled once, memory stays while MPI may use it,
/// roots close, and nothing is called from a wrong thread or after MPI_Finalize.
#include "tests/group/mpi_thread_ranks.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>

namespace zero::mpi_root_test {
namespace {

using fake_mpi::Call;
using test::all_close;
using test::barrier;
using test::call;
using test::connect;
using test::contains;
using test::kLongMs;
using test::run_ranks;

/// A group that counts what it is told.
class CountingMember final : public MpiMember {
 public:
  void on_control(int64_t, const MpiControl &) override { ++told; }
  void answer(MpiControl *) const override {}
  int64_t told = 0;
};

/// The root of a world of one rank, which talks to itself.
class MpiRootAlone : public testing::Test {
 protected:
  MpiRootAlone() {
    fake_mpi::begin_world(1);
    fake_mpi::join(0);
    root_ = std::make_unique<MpiRoot>(test::start_fake_mpi(), 0);
    bool ready = false;
    EXPECT_TRUE(root_->begin_duplicate(ZERO_MPI_WORLD).ok());
    EXPECT_TRUE(root_->test_duplicate(&ready).ok() && ready);
    EXPECT_TRUE(root_->open().ok());
  }
  ~MpiRootAlone() override { fake_mpi::fail(Call::start, -1); }

  std::unique_ptr<MpiRoot> root_;
};

TEST_F(MpiRootAlone, ARequestThatFailsDoesNotFreeTheMemoryOfTheOthersOfItsBlock) {
  constexpr int64_t kHalf = 4096;
  auto block = std::make_unique<MpiBlock>(2);
  block->reserve(2 * kHalf);
  std::fill_n(block->data(), 2 * kHalf, std::byte{7});
  fake_mpi::hold_sends(true);
  for (int64_t half = 0; half < 2; ++half) {
    const int64_t tag = MpiRoot::tag_of(3, kPieces);
    EXPECT_TRUE(root_->send(block->data() + half * kHalf, kHalf, 0, tag, &block->request(half)).ok());
  }
  root_->keep(std::move(block));
  fake_mpi::fail(Call::test, 1);  // the first looks for control messages
  EXPECT_TRUE(root_->progress().ok());
  EXPECT_TRUE(fake_mpi::has_failed());
  EXPECT_EQ(root_->quarantined_nbytes(), 2 * kHalf);
  fake_mpi::hold_sends(false);
  EXPECT_EQ(fake_mpi::disturbed_sends(), 0);
  EXPECT_TRUE(root_->progress().ok());
  EXPECT_EQ(root_->quarantined_nbytes(), 0);
}

TEST_F(MpiRootAlone, KeepsBlocksUntilEachHasEnded) {
  fake_mpi::hold_sends(true);
  for (int64_t index = 0; index < 3; ++index) {
    auto block = std::make_unique<MpiBlock>(1);
    block->reserve(100);
    // The one in the middle is a receive, which is given up.
    EXPECT_TRUE((index == 1 ? root_->recv(block->data(), 100, 0, MpiRoot::tag_of(4, kPieces), &block->request(0))
                            : root_->send(block->data(), 100, 0, MpiRoot::tag_of(3, kPieces), &block->request(0)))
                    .ok());
    root_->keep(std::move(block));
  }
  root_->keep(std::make_unique<MpiBlock>(1));
  root_->keep(nullptr);
  EXPECT_EQ(root_->quarantined_nbytes(), 300);
  EXPECT_TRUE(root_->progress().ok());
  EXPECT_EQ(root_->quarantined_nbytes(), 200);
  fake_mpi::hold_sends(false);
  EXPECT_TRUE(root_->progress().ok());
  EXPECT_EQ(root_->quarantined_nbytes(), 0);
}

TEST_F(MpiRootAlone, HandlesAControlMessageOnceAlsoWhenListeningFails) {
  CountingMember member;
  root_->enroll(5, &member);
  MpiControl message;
  message.kind = MpiControl::left;
  message.group = 5;
  int64_t sent = 0;
  // Looking for the next message fails after one has come, then listening for it, then looking while there is none.
  for (const auto &[failing, index] : {std::pair(Call::test, 1), std::pair(Call::recv, 0), std::pair(Call::test, 0)}) {
    if (failing == Call::recv || index == 1) root_->tell(0, message), ++sent;
    fake_mpi::fail(failing, index);
    EXPECT_EQ(root_->progress().code(), ZERO_E_TRANSPORT);
    EXPECT_TRUE(fake_mpi::has_failed());
    EXPECT_EQ(member.told, sent);
    EXPECT_TRUE(root_->progress().ok());
    EXPECT_EQ(member.told, sent);
  }
  root_->tell(0, message);
  EXPECT_TRUE(root_->progress().ok());
  EXPECT_EQ(member.told, sent + 1);
  root_->forget(5);
}

TEST(MpiRoots, CloseWhenTheCancelOfTheirListeningTakesItsTime) {
  run_ranks(2, [](int64_t, std::shared_ptr<Transport> transport) {
    fake_mpi::delay_cancels(true);
    EXPECT_TRUE(barrier(*transport, 1, kLongMs).ok());
  });
  EXPECT_TRUE(all_close());
}

TEST(MpiRoots, AfterMpiFinalizeGroupsAreToldSoAndMpiIsCalledNoMore) {
  std::barrier step(2);
  run_ranks(2, [&step](int64_t rank, std::shared_ptr<Transport> transport) {
    const Fingerprint fingerprint = call(OperationKind::barrier, 1);
    const std::vector<Offer> offers(2);
    std::vector<Arrival> arrivals(2);
    std::byte data{};
    bool ready = false;
    EXPECT_TRUE(transport->rounds().start(&fingerprint, offers, arrivals).ok());
    EXPECT_TRUE(transport->messages().recv_start(1 - rank, call(OperationKind::recv, 1, 1), &data, 1).ok());
    step.arrive_and_wait();
    fake_mpi::set_alive(false);
    const Status status = transport->peers().health();
    EXPECT_EQ(status.code(), ZERO_E_STATE);
    EXPECT_TRUE(contains(status, "MPI was finalised")) << status.text();
    EXPECT_EQ(transport->rounds().poll(&ready).code(), ZERO_E_STATE);
    EXPECT_EQ(transport->rounds().poll_quiet(&ready).code(), ZERO_E_STATE);
    EXPECT_EQ(transport->messages().recv_poll(1 - rank, &ready).code(), ZERO_E_STATE);
    EXPECT_EQ(transport->messages().send_start(1 - rank, call(OperationKind::send, 1, 1), {&data, 1}).code(), ZERO_E_STATE);
    EXPECT_EQ(transport->rounds().start(&fingerprint, offers, arrivals).code(), ZERO_E_STATE);
    EXPECT_EQ(transport->peers().watch().code(), ZERO_E_STATE);
    transport->peers().poison(status);
    EXPECT_NE(transport->peers().progress_report(fingerprint).find("did not answer"), std::string::npos);
  });
  EXPECT_EQ(fake_mpi::calls_while_dead(), 0);
}

TEST(MpiRoots, ACreationUnderWayEndsWithMpi) {
  fake_mpi::begin_world(2);
  fake_mpi::join(0);
  const std::jthread program([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    fake_mpi::set_alive(false);
  });
  std::shared_ptr<Transport> transport;
  EXPECT_EQ(connect(&transport, kLongMs).code(), ZERO_E_STATE);
  EXPECT_EQ(fake_mpi::calls_while_dead(), 0);
}

TEST(MpiRoots, WithoutThreadMultipleOneThreadMakesAllGroups) {
  fake_mpi::begin_world(1);
  fake_mpi::join(0);
  fake_mpi::set_thread_level(ZERO_MPI_THREAD_SERIALIZED, false);
  std::shared_ptr<Transport> first;
  std::shared_ptr<Transport> second;
  ASSERT_TRUE(connect(&first).ok());
  std::thread([&second] {
    const Status status = connect(&second);
    EXPECT_EQ(status.code(), ZERO_E_STATE);
    EXPECT_TRUE(contains(status, "another thread made the first group over MPI")) << status.text();
  }).join();
  const Status status = connect(&second);
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(barrier(*second, 1, kLongMs).ok());
  first.reset();
  second.reset();
  fake_mpi::begin_world(1);
  ASSERT_TRUE(connect(&first).ok());
}

}  // namespace
}  // namespace zero::mpi_root_test
