/// @file Messages of groups that reach devices: between memory of devices and of the host, of any length, over NCCL or underneath it,
/// beside one another and beside collectives.
#include "group/collectives.h"
#include "tests/group/nccl_mail.h"
#include "tests/group/words_only.h"

#include <barrier>
#include <cstring>

namespace zero::test::nccl_messages_test {
namespace {

constexpr int64_t kLarge = (int64_t{1} << 16) + 3;
constexpr int64_t kLengths[] = {0, 1, 1001, 2048, 2049, kLongestWord, kLongestWord + 1, kLarge};

using Connect = Status (*)(const std::string &, int64_t, int64_t, std::shared_ptr<Group> *, NcclOptions);

/// What is underneath carries everything, or words alone.
struct Under {
  const char *name;
  Connect connect;
};

class MessagesOverNccl : public testing::TestWithParam<Under> {
 protected:
  void SetUp() override {
    fake_nccl_reset();
    emulated_late(0);
    objects_ = emulated_objects();
  }
  void TearDown() override {
    emulated_late(0);
    emulated_alloc_waits(0);
    expect_nothing_left(objects_);
  }

  /// Runs body(group, device, report) on every rank.
  template <class Body>
  static void run(int64_t size, Body body) {
    const std::string meeting = nccl_meeting();
    std::vector<Report> reports(static_cast<size_t>(size));
    run_thread_ranks(size, [&](int64_t rank) {
      Report &report = reports[static_cast<size_t>(rank)];
      DeviceCases device(rank % kDevices);
      std::shared_ptr<Group> group;
      const Status status = GetParam().connect(meeting, rank, size, &group, {});
      report.expect(status.ok(), status.text());
      if (group != nullptr) body(*group, device, &report);
    });
    for (const Report &report : reports) EXPECT_EQ(report.failures, 0) << report.text;
  }

  /// A message each way at once, of every length, `times` times.
  static void run_both_ways(Group &group, DeviceCases &device, MailPlaces places, int64_t times, Report *report) {
    const int64_t peer = 1 - group.rank();
    int64_t number = 0;
    for (int64_t time = 0; time < times; ++time) {
      for (const int64_t nbytes : kLengths) {
        Mails mails;
        mails.push_back(Mail::send(group, device, peer, number, nbytes, places.sender_on_device));
        mails.push_back(Mail::recv(group, device, peer, number, nbytes, places.receiver_on_device));
        finish_mails(mails, [] { return true; });
        expect_mails(mails, report);
        ++number;
      }
    }
  }

  /// Between all pairs, of all lengths and in all memories, each pair's given at once.
  static Mails write_to_all(Group &group, DeviceCases &device) {
    Mails mails;
    int64_t number = 0;
    for (const int64_t nbytes : kLengths) {
      for (const MailPlaces &places : kAllMailPlaces) {
        for (int64_t peer = 0; peer < group.size(); ++peer) {
          if (peer == group.rank()) continue;
          mails.push_back(Mail::send(group, device, peer, number, nbytes, places.sender_on_device));
          mails.push_back(Mail::recv(group, device, peer, number, nbytes, places.receiver_on_device));
        }
        ++number;
      }
    }
    return mails;
  }

 private:
  int64_t objects_ = 0;
};

TEST_P(MessagesOverNccl, EveryLengthArrivesBothWaysAtOnceFromAndToAnyMemory) {
  for (const MailPlaces &places : kAllMailPlaces) {
    run(2, [&](Group &group, DeviceCases &device, Report *report) { run_both_ways(group, device, places, 3, report); });
  }
}

TEST_P(MessagesOverNccl, MovesThatComeLateChangeNothing) {
  fake_nccl_late(300);
  emulated_late(100);
  for (const MailPlaces &places : kAllMailPlaces) {
    run(2, [&](Group &group, DeviceCases &device, Report *report) { run_both_ways(group, device, places, 2, report); });
  }
}

TEST_P(MessagesOverNccl, AllPairsExchangeWhileCollectivesRun) {
  for (const int64_t late : {0, 200}) {
    fake_nccl_late(late);
    emulated_late(late / 2);
    run(4, [](Group &group, DeviceCases &device, Report *report) {
      constexpr int64_t kCount = 20'000;
      const std::vector<float> ones(kCount, 1);
      Bytes bytes(kCount * sizeof(float));
      std::memcpy(bytes.data(), ones.data(), bytes.size());
      const MailMemory data(device, true, bytes);
      std::shared_ptr<Operation> sum;
      int64_t sums = 0;
      const Mails mails = write_to_all(group, device);
      finish_mails(mails, [&] {
        group.queue()->progress();
        if (sum != nullptr && !sum->done()) return false;
        if (sum != nullptr) report->expect(sum->status().ok(), sum->status().text());
        // As many on every rank.
        if (sums++ >= 20) return true;
        sum = group.queue()->submit(all_reduce(group, data.data(), data.data(), kCount, DType::f32, ReduceOp::max));
        return false;
      });
      expect_mails(mails, report);
      report->expect(data.holds(bytes), "a wrong sum");
    });
  }
}

/// Two objects for the pair that needs one, beside one for each rank.
TEST_P(MessagesOverNccl, OnlyPairsThatNeedOneMakeACommunicator) {
  std::barrier looked(3);
  run(3, [&](Group &group, DeviceCases &device, Report *report) {
    for (int64_t number = 0; number < 3; ++number) {
      Mails mails;
      if (group.rank() == 0) mails.push_back(Mail::send(group, device, 1, number, kLarge, true));
      if (group.rank() == 1) mails.push_back(Mail::recv(group, device, 0, number, kLarge, false));
      if (group.rank() == 2) mails.push_back(Mail::send(group, device, 1, number, 100, false));
      if (group.rank() == 1) mails.push_back(Mail::recv(group, device, 2, number, 100, true));
      finish_mails(mails, [] { return true; });
      expect_mails(mails, report);
    }
    looked.arrive_and_wait();
    report->expect(fake_nccl_objects() == 3 + 2, std::to_string(fake_nccl_objects()) + " communicators");
    looked.arrive_and_wait();
  });
}

/// Of the host, where an area of the device holds a part of it.
TEST_P(MessagesOverNccl, MessagesOfSeveralPiecesArrive) {
  constexpr int64_t kSeveral = (int64_t{40} << 20) + 5;
  for (const bool receiver_on_device : {true, false}) {
    run(2, [&](Group &group, DeviceCases &device, Report *report) {
      Mails mails;
      if (group.rank() == 0) mails.push_back(Mail::send(group, device, 1, 0, kSeveral, false));
      if (group.rank() == 1) mails.push_back(Mail::recv(group, device, 0, 0, kSeveral, receiver_on_device));
      finish_mails(mails, [] { return true; });
      expect_mails(mails, report);
    });
  }
}

/// Memory is to be had only while the sender does not wait for the receiver on its device.
TEST_P(MessagesOverNccl, ReceiversHaveTheirAreasBeforeAnythingMoves) {
  emulated_alloc_waits(1);
  run(2, [](Group &group, DeviceCases &device, Report *report) {
    constexpr int64_t kLater[] = {kLarge, 2 * kLarge, 100, 4 * kLarge};
    for (int64_t number = 0; number < std::ssize(kLater); ++number) {
      Mails mails;
      const bool on_host = kLater[number] < kLarge;  // and short
      if (group.rank() == 0) mails.push_back(Mail::send(group, device, 1, number, kLater[number], !on_host));
      if (group.rank() == 1) mails.push_back(Mail::recv(group, device, 0, number, kLater[number], number == 0));
      finish_mails(mails, [] { return true; });
      expect_mails(mails, report);
    }
  });
}

TEST_P(MessagesOverNccl, SplitGroupsExchangeBesideTheirParent) {
  run(4, [](Group &group, DeviceCases &device, Report *report) {
    std::shared_ptr<Group> half;
    const Status status = group.queue()->run(split(group, group.rank() % 2, 0, &half));
    report->expect(status.ok(), status.text());
    if (half == nullptr) return;
    Mails mails = write_to_all(*half, device);
    for (std::unique_ptr<Mail> &mail : write_to_all(group, device)) mails.push_back(std::move(mail));
    finish_mails(mails, [] { return true; });
    expect_mails(mails, report);
  });
}

INSTANTIATE_TEST_SUITE_P(Under, MessagesOverNccl, testing::Values(Under{"all", connect_nccl}, Under{"words", connect_words_nccl}),
                         [](const auto &test) { return test.param.name; });

}  // namespace
}  // namespace zero::test::nccl_messages_test
