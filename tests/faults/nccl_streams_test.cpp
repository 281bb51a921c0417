/// @file Calls over NCCL that come after a caller's stream which never ends: the rank that gave it has its error within its deadline and
/// half a second, whatever moves and wherever it lies, and whether other ranks come or not.
#include "group/collectives.h"
#include "tests/faults/outcomes.h"
#include "tests/faults/over_fake_nccl.h"
#include "tests/group/nccl_mail.h"
#include "tests/group/words_only.h"
#include "tests/sleep.h"

#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zero::test::nccl_streams_test {
namespace {

constexpr int64_t kRanks = 2;
constexpr int64_t kPeer = 0;
constexpr int64_t kStuck = 1;
constexpr int64_t kDeadlineMs = 400;
constexpr int64_t kGraceMs = 500;
constexpr int64_t kPeersDeadlineMs = 20'000;  ///< so that what the other rank says is heard
constexpr int64_t kShort = 100;               ///< bytes that come with the first word of a message
constexpr int64_t kMiddle = 4000;             ///< that come through the host
constexpr int64_t kLong = 100'000;
static_assert(kMiddle <= kLongestWord && kLong > kLongestWord);

constexpr std::string_view kNccl = "NCCL has not moved";
constexpr std::string_view kStream = "the stream that it was given has not come to it";

/// A caller's stream that ends when it is let go on, at the latest in the end.
class StuckStream {
 public:
  explicit StuckStream(int64_t device) : stream_(caller_stream_create(device)) { caller_hold(stream_, &goes_on_); }
  StuckStream(const StuckStream &) = delete;
  ~StuckStream() {
    go_on();
    caller_stream_destroy(stream_);
  }
  void go_on() {
    __atomic_store_n(&goes_on_, 1, __ATOMIC_RELEASE);
    caller_wait(stream_);
  }
  void *get() const { return stream_; }

 private:
  int32_t goes_on_ = 0;
  void *const stream_;
};

class NcclStreams : public OverFakeNccl<testing::Test> {
 protected:
  using Call = std::function<Task(Group &, void *data)>;

  /// A collective over `nbytes` bytes, in memory of the device or the host, which one rank alone calls where `comes` is false.
  void expect_timeout(int64_t nbytes, bool peer_on_device, bool stuck_on_device, bool comes, const Call &call, std::string_view words) {
    expect_timeout(comes, words, [&](Group &group, DeviceCases &device) {
      const bool on_device = group.rank() == kStuck ? stuck_on_device : peer_on_device;
      const MailMemory memory(device, on_device, Bytes(static_cast<size_t>(nbytes), 1));
      return timed_with_stream(group, [&] { return group.queue()->run(call(group, memory.data())); });
    });
  }

  /// A message, which moves as `words` say.
  void expect_timeout_of_message(int64_t nbytes, int64_t sender, bool sender_on_device, bool receiver_on_device, std::string_view words) {
    expect_timeout(true, words, [&](Group &group, DeviceCases &device) {
      const bool sends = group.rank() == sender;
      const int64_t peer = kRanks - 1 - group.rank();
      const MailMemory memory(device, sends ? sender_on_device : receiver_on_device, Bytes(static_cast<size_t>(nbytes), 1));
      return timed_with_stream(group, [&] {
        return sends ? group.send_queue(peer)->run(group.send(memory.data(), nbytes, DType::u8, peer))
                     : group.recv_queue(peer)->run(group.recv(memory.data(), nbytes, DType::u8, peer));
      });
    });
  }

 private:
  template <class Body>
  static TimedOutcome timed_with_stream(Group &group, const Body &body) {
    if (group.rank() != kStuck) return timed(body);
    StuckStream stream(kStuck % kDevices);
    EXPECT_TRUE(group.reducer()->wait_for(stream.get()).ok());
    TimedOutcome outcome = timed(body);
    EXPECT_FALSE(group.quiet());
    stream.go_on();
    for (int wait = 0; wait < 10'000 && !group.quiet(); ++wait) sleep_ms(1);
    EXPECT_TRUE(group.quiet());
    return outcome;
  }

  void expect_timeout(bool comes, std::string_view words, const std::function<TimedOutcome(Group &, DeviceCases &)> &part) {
    const std::string meeting = nccl_meeting();
    std::vector<TimedOutcome> outcomes(1);
    std::barrier together(kRanks);
    run_thread_ranks(kRanks, [&](int64_t rank) {
      std::shared_ptr<Group> group;
      DeviceCases device(rank % kDevices);
      const Status made = connect_words_nccl(meeting, rank, kRanks, &group);
      ASSERT_TRUE(made.ok()) << made.text();
      group->set_deadline_ms(rank == kStuck ? kDeadlineMs : kPeersDeadlineMs);
      together.arrive_and_wait();
      if (rank == kStuck) outcomes[0] = part(*group, device);
      if (rank == kPeer && comes) (void)part(*group, device);
      together.arrive_and_wait();
    });
    expect_errors(outcomes, ZERO_E_TIMEOUT, {words}, kDeadlineMs + kGraceMs);
  }
};

Task sum(Group &group, void *data, int64_t nbytes) { return all_reduce(group, data, data, nbytes / 4, DType::f32, ReduceOp::sum); }

TEST_F(NcclStreams, WhatMovesBetweenDevices) {
  for (const int64_t nbytes : {kShort, kLong}) {
    expect_timeout(
        nbytes, true, true, true, [=](Group &group, void *data) { return sum(group, data, nbytes); }, kNccl);
  }
}

TEST_F(NcclStreams, WhatOtherRanksDoNotComeTo) {
  for (const bool on_device : {false, true}) {
    for (const int64_t nbytes : {kShort, kLong}) {
      expect_timeout(
          nbytes, on_device, on_device, false, [=](Group &group, void *data) { return sum(group, data, nbytes); }, "rank 0");
    }
  }
}

TEST_F(NcclStreams, WhatMovesFromTheHost) {
  for (const int64_t nbytes : {kShort, kLong}) {
    expect_timeout(
        nbytes, false, false, true, [=](Group &group, void *data) { return sum(group, data, nbytes); }, kStream);
  }
}

/// The rank whose stream does not come gives nothing.
TEST_F(NcclStreams, WhatMovesFromTheHostToADevice) {
  for (const int64_t nbytes : {kShort, kLong}) {
    const auto call = [=](Group &group, void *data) { return broadcast(group, data, nbytes, DType::u8, kPeer); };
    expect_timeout(nbytes, false, true, true, call, nbytes == kShort ? kStream : kNccl);
  }
}

TEST_F(NcclStreams, MessagesToADevice) {
  for (const int64_t nbytes : {kShort, kMiddle}) expect_timeout_of_message(nbytes, kPeer, false, true, kStream);
  expect_timeout_of_message(kLong, kPeer, false, true, kNccl);
  expect_timeout_of_message(kShort, kPeer, true, true, kNccl);
}

TEST_F(NcclStreams, LongMessagesFromTheHostAndToIt) {
  expect_timeout_of_message(kLong, kStuck, false, false, kStream);
  expect_timeout_of_message(kLong, kPeer, true, false, kStream);
}

}  // namespace
}  // namespace zero::test::nccl_streams_test
