/// @file Messages over an NCCL that fails, never ends or hangs in its abort, and between ranks that mean different messages: both ranks get
/// an error within their deadline and half a second, no memory has changed, and nothing is left.
#include "core/clock.h"
#include "group/collectives.h"
#include "group/nccl/nccl_comm.h"
#include "tests/faults/outcomes.h"
#include "tests/faults/over_fake_nccl.h"
#include "tests/group/nccl_mail.h"
#include "tests/group/words_only.h"
#include "tests/sleep.h"

#include <barrier>
#include <functional>

namespace zero::test::nccl_message_faults_test {
namespace {

constexpr int64_t kRanks = 2;
constexpr int64_t kSender = 0;
constexpr int64_t kReceiver = 1;
constexpr int64_t kDeadlineMs = 400;
constexpr int64_t kGraceMs = 500;
constexpr int64_t kNbytes = 100'000;
constexpr int32_t kRemoteError = 6;

/// One message from the sender to the receiver.
TimedOutcome pass(Group &group, DeviceCases &device, MailPlaces places, int64_t number) {
  const int64_t begin = now_ns();
  Mails mails;
  if (group.rank() == kSender) mails.push_back(Mail::send(group, device, kReceiver, number, kNbytes, places.sender_on_device));
  if (group.rank() == kReceiver) mails.push_back(Mail::recv(group, device, kSender, number, kNbytes, places.receiver_on_device));
  finish_mails(mails, [] { return true; });
  const Status &status = mails[0]->status();
  EXPECT_TRUE(!status.ok() || mails[0]->arrived());
  return {status, ms_since(begin)};
}

class NcclMessageFaults : public OverFakeNccl<testing::TestWithParam<bool>> {
 protected:
  static MailPlaces places() { return {GetParam(), GetParam()}; }

  /// Connects the ranks, lets `good` messages pass, calls prepare(), and returns the outcomes of the next; then calls after(group) on each
  /// rank.
  static std::vector<TimedOutcome> run(
      int64_t good, const std::function<void()> &prepare, const std::function<void(Group &)> &after = [](Group &) {}) {
    const std::string meeting = nccl_meeting();
    std::vector<TimedOutcome> outcomes(kRanks);
    std::barrier together(kRanks);
    run_thread_ranks(kRanks, [&](int64_t rank) {
      std::shared_ptr<Group> group;
      DeviceCases device(rank % kDevices);
      const Status made = connect_words_nccl(meeting, rank, kRanks, &group);
      EXPECT_TRUE(made.ok()) << made.text();
      for (int64_t number = 0; number < good; ++number) {
        const Status status = pass(*group, device, places(), number).status;
        EXPECT_TRUE(status.ok()) << status.text();
      }
      together.arrive_and_wait();
      if (rank == 0) prepare();
      together.arrive_and_wait();
      group->set_deadline_ms(kDeadlineMs);
      outcomes[static_cast<size_t>(rank)] = pass(*group, device, places(), good);
      EXPECT_FALSE(group->usable().ok());
      together.arrive_and_wait();
      after(*group);
      together.arrive_and_wait();
    });
    return outcomes;
  }
};

TEST_P(NcclMessageFaults, AnErrorOfTheNetworkReachesBothRanksAtOnce) {
  for (const int64_t odd : {kSender, kReceiver}) {
    fake_nccl_reset();
    expect_errors(run(1, [&] { fake_nccl_break(odd, 0, kRemoteError); }), ZERO_E_TRANSPORT, {"NCCL failed"}, kGraceMs);
  }
}

TEST_P(NcclMessageFaults, AMoveThatNeverEndsIsATimeoutThatNamesTheMessage) {
  for (const int64_t odd : {kSender, kReceiver}) {
    fake_nccl_reset();
    const auto outcomes = run(1, [&] { fake_nccl_stick(odd, 0); });
    expect_errors(outcomes, ZERO_E_TIMEOUT, {"NCCL has not moved the message", "count 100000"}, kDeadlineMs + kGraceMs);
  }
}

TEST_P(NcclMessageFaults, ACommunicatorThatNeverComesIsATimeout) {
  for (const int64_t odd : {kSender, kReceiver}) {
    fake_nccl_reset();
    const auto outcomes = run(0, [&] { fake_nccl_stick_init(odd); });
    expect_errors(outcomes, ZERO_E_TIMEOUT, {"NCCL has not"}, kDeadlineMs + kGraceMs);
  }
}

TEST_P(NcclMessageFaults, AnAbortThatHangsIsGivenUpAndCounted) {
  std::barrier looked(kRanks);
  const auto outcomes = run(
      1,
      [] {
        fake_nccl_stick(kReceiver, 0);
        fake_nccl_hang_abort(fake_nccl_every_rank);
      },
      [&](Group &group) {
        EXPECT_FALSE(group.quiet());
        // The group's communicator and the pair's, on both ranks.
        EXPECT_EQ(nccl_quarantined(), 2 * kRanks);
        looked.arrive_and_wait();
        if (group.rank() == 0) fake_nccl_release();
        for (int wait = 0; wait < 10'000 && !group.quiet(); ++wait) sleep_ms(1);
        EXPECT_TRUE(group.quiet());
      });
  expect_errors(outcomes, ZERO_E_TIMEOUT, {"NCCL has not moved"}, kDeadlineMs + kGraceMs);
}

/// Before it comes to the message, and in its midst.
TEST_P(NcclMessageFaults, APeerThatLeavesIsNamed) {
  for (const bool in_its_midst : {false, true}) {
    fake_nccl_reset();
    const std::string meeting = nccl_meeting();
    std::barrier together(kRanks);
    run_thread_ranks(kRanks, [&](int64_t rank) {
      std::shared_ptr<Group> group;
      DeviceCases device(rank % kDevices);
      ASSERT_TRUE(connect_words_nccl(meeting, rank, kRanks, &group).ok());
      ASSERT_TRUE(pass(*group, device, places(), 0).status.ok());
      together.arrive_and_wait();
      if (rank == 0) fake_nccl_stick(kReceiver, 0);
      together.arrive_and_wait();
      if (rank == kSender) {
        const TimedOutcome outcome = pass(*group, device, places(), 1);
        expect_errors({outcome}, ZERO_E_PEER_LEFT, {"rank 1"}, 2 * kGraceMs);
        return;
      }
      if (!in_its_midst) return;
      const auto mail = Mail::recv(*group, device, kSender, 1, kNbytes, places().receiver_on_device);
      for (int look = 0; look < 50; ++look) {
        EXPECT_FALSE(mail->progress());
        sleep_ms(1);
      }
      // As if the process ended: nobody waits for the memory.
      group.reset();
    });
  }
}

TEST_P(NcclMessageFaults, ADifferentMessageIsNamedOnBothRanksAndChangesNothing) {
  struct Difference {
    int64_t count;
    DType dtype;
    const char *text;
  };
  for (const Difference &theirs : {Difference{kNbytes + 4, DType::u8, "count 100004"}, Difference{10, DType::u8, "count 10,"},
                                   Difference{kNbytes, DType::i32, "i32"}}) {
    const std::string meeting = nccl_meeting();
    run_thread_ranks(kRanks, [&](int64_t rank) {
      std::shared_ptr<Group> group;
      DeviceCases device(rank % kDevices);
      ASSERT_TRUE(connect_words_nccl(meeting, rank, kRanks, &group).ok());
      Status status;
      if (rank == kSender) {
        const MailMemory memory(device, GetParam(), Bytes(static_cast<size_t>(theirs.count * dtype_nbytes(theirs.dtype)), 1));
        status = group->send_queue(kReceiver)->run(group->send(memory.data(), theirs.count, theirs.dtype, kReceiver));
      } else {
        const auto mail = Mail::recv(*group, device, kSender, 0, kNbytes, GetParam());
        while (!mail->progress()) sleep_ms(1);
        status = mail->status();
        EXPECT_TRUE(mail->untouched());
      }
      expect_errors({{status, 0}}, ZERO_E_MISMATCH, {theirs.text, "u8"}, 0);
    });
  }
}

TEST_P(NcclMessageFaults, RanksThatDoNotReleaseTogetherDoNotWaitForOneAnother) {
  const std::string meeting = nccl_meeting();
  std::atomic<int64_t> released{0};
  run_thread_ranks(kRanks, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    DeviceCases device(rank % kDevices);
    ASSERT_TRUE(connect_words_nccl(meeting, rank, kRanks, &group).ok());
    ASSERT_TRUE(pass(*group, device, places(), 0).status.ok());
    while (rank == kReceiver && released == 0) sleep_ms(1);
    const int64_t begin = now_ns();
    group.reset();
    ++released;
    EXPECT_LE(ms_since(begin), kGraceMs);
  });
}

/// Calls that fail, of NCCL once and of CUDA from some call on: every rank comes back in time and nothing is left.
void run_failing(int64_t number, const std::function<void()> &prepare, MailPlaces places, std::atomic<int64_t> *failures) {
  const std::string meeting = nccl_meeting();
  std::barrier together(kRanks);
  run_thread_ranks(kRanks, [&](int64_t rank) {
    DeviceCases device(rank % kDevices);
    std::shared_ptr<Group> group;
    const Status made = connect_words_nccl(meeting, rank, kRanks, &group);
    EXPECT_TRUE(made.ok()) << made.text();
    const MailMemory memory(device, rank == kSender ? places.sender_on_device : places.receiver_on_device, Bytes(kNbytes));
    together.arrive_and_wait();
    if (rank == 0) prepare();
    together.arrive_and_wait();
    const int64_t begin = now_ns();
    Status status;
    for (int64_t message = 0; message < 2 && status.ok(); ++message) {
      if (rank == kSender) status = group->send_queue(1)->run(group->send(memory.data(), kNbytes, DType::u8, kReceiver));
      if (rank == kReceiver) status = group->recv_queue(0)->run(group->recv(memory.data(), kNbytes, DType::u8, kSender));
    }
    EXPECT_LE(ms_since(begin), 3 * kGraceMs) << number << ": " << status.text();
    if (!status.ok()) ++*failures;
    group.reset();
    together.arrive_and_wait();
    if (rank == 0) emulated_fail_from(-1);
    together.arrive_and_wait();
  });
}

TEST_P(NcclMessageFaults, AnyCallOfNcclThatFailsIsAnErrorAndLeavesNothing) {
  std::atomic<int64_t> failures{0};
  for (int64_t number = 0; number < 60; number += 1 + number / 8) {
    fake_nccl_reset();
    run_failing(
        number, [&] { fake_nccl_fail(nullptr, number); }, places(), &failures);
    expect_nothing_left(objects_);
  }
  EXPECT_GT(failures, 5);
}

TEST_P(NcclMessageFaults, ADeviceThatFailsIsAnErrorOnBothRanks) {
  std::atomic<int64_t> failures{0};
  for (int64_t number = 0; number < 40; number += 1 + number / 8) {
    fake_nccl_reset();
    run_failing(
        number, [&] { emulated_fail_from(number); }, places(), &failures);
    for (int wait = 0; wait < 10'000 && fake_nccl_objects() != 0; ++wait) sleep_ms(1);
    EXPECT_EQ(fake_nccl_objects(), 0) << number;
  }
  EXPECT_GT(failures, 5);
}

INSTANTIATE_TEST_SUITE_P(Memory, NcclMessageFaults, testing::Bool(),
                         [](const auto &test) { return test.param ? "OfDevices" : "OfTheHost"; });

}  // namespace
}  // namespace zero::test::nccl_message_faults_test
