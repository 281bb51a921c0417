/// @file The MPI transport over a fake MPI whose ranks are threads: what a real MPI does not do on demand. Each call of the module fails in
/// turn, sends that do not end, threads that may not call, tags that run out.
#include "group/collectives.h"
#include "tests/group/collective_cases.h"
#include "tests/group/fake_mpi.h"
#include "tests/group/mpi_thread_ranks.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstring>
#include <thread>

namespace zero::mpi_threads_test {
namespace {

using fake_mpi::Call;
using test::all_close;
using test::all_ranks;
using test::barrier;
using test::call;
using test::connect;
using test::contains;
using test::exchange;
using test::kLongMs;
using test::quiet;
using test::run_ranks;
using test::run_task;
using test::run_thread_ranks;

constexpr int64_t kWaitMs = 400;

/// One rank of two sends to the other, in several chunks.
Status pass_message(Transport &transport, int64_t sender, int64_t deadline_ms) {
  std::vector<std::byte> data(150'000);
  const auto nbytes = static_cast<int64_t>(data.size());
  const int64_t peer = 1 - transport.rank();
  const bool sends = transport.rank() == sender;
  Fingerprint fingerprint = call(sends ? OperationKind::send : OperationKind::recv, 1, nbytes);
  fingerprint.root = peer;
  return sends ? test::send(transport, peer, fingerprint, data.data(), nbytes, deadline_ms)
               : test::recv(transport, peer, fingerprint, data.data(), nbytes, deadline_ms);
}

/// Everything a group asks of its transport, up to the first error, which poisons it.
Status use(std::shared_ptr<Transport> *transport, std::shared_ptr<Transport> *child) {
  ZERO_TRY(connect(transport, kWaitMs));
  const auto use_connected = [&](Transport &world) -> Status {
    ZERO_TRY(barrier(world, 1, kWaitMs));
    const Fingerprint fingerprint = call(OperationKind::all_gather, 2, 40'000);
    ZERO_TRY(exchange(world, &fingerprint, 40'000, 40'000, kWaitMs));
    ZERO_TRY(exchange(world, nullptr, 5'000, 5'000, kWaitMs));
    ZERO_TRY(quiet(world, kWaitMs));
    ZERO_TRY(pass_message(world, 0, kWaitMs));
    ZERO_TRY(pass_message(world, 1, kWaitMs));
    ZERO_TRY(run_task(world.derive(all_ranks(2), 0, kWaitMs, child)));
    return barrier(**child, 1, kWaitMs);
  };
  Status status = use_connected(**transport);
  for (const auto &failed : {*transport, *child}) {
    if (!status.ok() && failed != nullptr) failed->peers().poison(status);
  }
  return status;
}

/// Calls that only the end of a communicator makes, on the rank that lets go of it last.
bool made_at_release(Call call) { return call == Call::cancel || call == Call::free; }

struct Outcome {
  Status status[2];
  bool before_release = false;  ///< the call failed while the transport was used
  std::atomic<bool> failed{false};
};

/// Rank 1's call fails, or either rank's at release.
void use_with_fault(Call failing, int64_t index, Outcome &outcome) {
  fake_mpi::begin_world(2);
  run_thread_ranks(2, [&](int64_t rank) {
    std::shared_ptr<Transport> transport;
    std::shared_ptr<Transport> child;
    fake_mpi::join(rank);
    const bool mine = rank == 1 || made_at_release(failing);
    if (mine) fake_mpi::fail(failing, index);
    outcome.status[rank] = use(&transport, &child);
    if (rank == 1) outcome.before_release = fake_mpi::has_failed();
    child.reset();
    transport.reset();
    if (mine && fake_mpi::has_failed()) outcome.failed = true;
  });
}

class FailingMpiCall : public testing::TestWithParam<Call> {};

TEST_P(FailingMpiCall, IsAnErrorThatSaysWhyAndNoRankHangs) {
  int64_t errors = 0;
  int64_t runs = 0;
  // Polls make many calls of test, most of them alike: the later, the fewer of them fail.
  const int64_t most = GetParam() == Call::meet ? 1 : 150;
  for (int64_t index = 0; index < most; index += 1 + index / 12) {
    Outcome outcome;
    use_with_fault(GetParam(), index, outcome);
    const Status &own = outcome.status[1];
    if (!outcome.failed) {
      for (const Status &status : outcome.status) EXPECT_TRUE(status.ok()) << status.text();
      break;
    }
    ++runs;
    EXPECT_EQ(own.ok(), !outcome.before_release) << "call " << index << ": " << own.text();
    EXPECT_TRUE(own.ok() || contains(own, "error 17 on demand")) << "call " << index << ": " << own.text();
    EXPECT_TRUE(!own.ok() || outcome.status[0].ok()) << "call " << index << ": " << outcome.status[0].text();
    errors += own.ok() ? 0 : 1;
    EXPECT_TRUE(!made_at_release(GetParam()) || all_close()) << "call " << index << ": a communicator is never freed";
  }
  std::printf("%s: %lld calls failed, %lld errors\n", fake_mpi::call_name(GetParam()), static_cast<long long>(runs),
              static_cast<long long>(errors));
  EXPECT_GT(runs, 0);
  EXPECT_EQ(errors > 0, !made_at_release(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Calls, FailingMpiCall,
                         testing::Values(Call::start, Call::duplicate, Call::meet, Call::open, Call::free, Call::send, Call::recv,
                                         Call::test, Call::cancel),
                         [](const auto &instance) { return std::string(fake_mpi::call_name(instance.param)); });

TEST(MpiThreads, AProgramThatFinalisedMpiOrKeepsItToAnotherThreadIsToldSo) {
  fake_mpi::begin_world(1);
  std::shared_ptr<Transport> transport;
  fake_mpi::set_finalized(true);
  const Status finalized = connect(&transport);
  EXPECT_EQ(finalized.code(), ZERO_E_STATE);
  EXPECT_TRUE(contains(finalized, "by the program")) << finalized.text();
  fake_mpi::set_finalized(false);
  fake_mpi::set_thread_level(ZERO_MPI_THREAD_FUNNELED, false);
  const Status foreign = connect(&transport);
  EXPECT_EQ(foreign.code(), ZERO_E_STATE);
  EXPECT_TRUE(contains(foreign, "MPI_THREAD_MULTIPLE")) << foreign.text();
}

TEST(MpiThreads, WithoutThreadMultipleOtherThreadsAreRefusedOrWait) {
  fake_mpi::begin_world(1);
  fake_mpi::set_thread_level(ZERO_MPI_THREAD_FUNNELED, true);
  std::shared_ptr<Transport> transport;
  ASSERT_TRUE(connect(&transport).ok());
  EXPECT_TRUE(mpi_needs_single_thread());
  EXPECT_TRUE(transport->capabilities().single_thread);
  std::thread([&] {
    std::byte data{};
    EXPECT_EQ(transport->messages().send_start(0, call(OperationKind::send, 1, 1), {&data, 1}).code(), ZERO_E_STATE);
    EXPECT_EQ(transport->messages().recv_start(0, call(OperationKind::recv, 1, 1), &data, 1).code(), ZERO_E_STATE);
    const Fingerprint fingerprint = call(OperationKind::barrier, 1);
    EXPECT_EQ(exchange(*transport, &fingerprint, 0, 0, 20).code(), ZERO_E_TIMEOUT);
    EXPECT_EQ(quiet(*transport, 20).code(), ZERO_E_TIMEOUT);
    bool done = true;
    EXPECT_TRUE(transport->messages().send_poll(0, &done).ok());
    EXPECT_FALSE(done);
    EXPECT_TRUE(transport->peers().health().ok());
    // A release on such a thread leaves the communicator to the next creation.
    transport.reset();
  }).join();
  fake_mpi::begin_world(1);
  ASSERT_TRUE(connect(&transport).ok());
  EXPECT_FALSE(mpi_needs_single_thread());
}

TEST(MpiThreads, WithoutThreadMultipleAMessageOfAnotherThreadIsRefusedAndASumSaysWhyItWaited) {
  fake_mpi::begin_world(1);
  fake_mpi::set_thread_level(ZERO_MPI_THREAD_FUNNELED, true);
  std::shared_ptr<Transport> transport;
  ASSERT_TRUE(connect(&transport).ok());
  auto owned = std::make_unique<Group>(std::move(transport), test::test_reducer(), 50);
  Group &group = *owned;
  float value = 1;
  const auto run_there = [](const std::shared_ptr<OperationQueue> &queue, Task task) {
    Status status;
    std::thread([&] { status = queue->run(std::move(task)); }).join();
    return status;
  };
  EXPECT_EQ(run_there(group.send_queue(0), group.send(&value, 1, DType::f32, 0)).code(), ZERO_E_STATE);
  EXPECT_EQ(run_there(group.recv_queue(0), group.recv(&value, 1, DType::f32, 0)).code(), ZERO_E_STATE);
  EXPECT_TRUE(group.usable().ok()) << group.usable().text();
  EXPECT_TRUE(group.queue()->run(zero::barrier(group)).ok());
  const Status late = run_there(group.queue(), zero::barrier(group));
  EXPECT_EQ(late.code(), ZERO_E_TIMEOUT);
  EXPECT_TRUE(contains(late, "MPI_THREAD_MULTIPLE")) << late.text();
  owned.reset();
  fake_mpi::begin_world(1);
  ASSERT_TRUE(connect(&transport).ok());
}

TEST(MpiThreads, ARankThatNeverCreatesTheGroupIsTheDeadlinesError) {
  fake_mpi::begin_world(2);
  std::shared_ptr<Transport> transport;
  fake_mpi::join(0);
  const Status status = connect(&transport, 50);
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "after 50 ms some rank")) << status.text();
}

TEST(MpiThreads, ARankThatLeavesTheCreationHalfWayIsTheDeadlinesError) {
  fake_mpi::begin_world(2);
  run_thread_ranks(2, [&](int64_t rank) {
    fake_mpi::join(rank);
    if (rank == 1) fake_mpi::fail(Call::open, 0);
    std::shared_ptr<Transport> transport;
    const Status status = connect(&transport, 200);
    EXPECT_EQ(status.code(), rank == 1 ? ZERO_E_TRANSPORT : ZERO_E_RENDEZVOUS) << status.text();
    EXPECT_TRUE(rank == 1 || contains(status, "while a group over mpi was made")) << status.text();
  });
}

TEST(MpiThreads, GroupsBeyondTheTagsOfMpiAreRefused) {
  run_ranks(2, [](int64_t, std::shared_ptr<Transport> transport) {
    std::shared_ptr<Transport> child;
    EXPECT_TRUE(run_task(transport->derive(all_ranks(2), 0, kLongMs, &child)).ok());
  });
  fake_mpi::begin_world(2);
  fake_mpi::set_tag_limit(5);
  run_thread_ranks(2, [&](int64_t rank) {
    fake_mpi::join(rank);
    std::shared_ptr<Transport> transport;
    ASSERT_TRUE(connect(&transport).ok());
    std::shared_ptr<Transport> child;
    const Status status = run_task(transport->derive(all_ranks(2), 0, kLongMs, &child));
    EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED);
    EXPECT_TRUE(contains(status, "offers only 5")) << status.text();
  });
}

TEST(MpiThreads, ADerivedGroupWhoseLeaderNeverComesIsATimeout) {
  run_ranks(2, [](int64_t rank, std::shared_ptr<Transport> transport) {
    if (rank == 0) return (void)barrier(*transport, 1, kLongMs);
    std::shared_ptr<Transport> child;
    const Status status = run_task(transport->derive(all_ranks(2), 0, 50, &child));
    EXPECT_EQ(status.code(), ZERO_E_TIMEOUT) << status.text();
    transport->peers().poison(status);
  });
}

TEST(MpiThreads, PiecesOfUnexpectedSizeAreAnError) {
  for (const bool first_round : {true, false}) {
    run_ranks(2, [first_round](int64_t rank, std::shared_ptr<Transport> transport) {
      const Fingerprint fingerprint = call(OperationKind::exchange, 1);
      const Status status = exchange(*transport, first_round ? &fingerprint : nullptr, 2'000, rank == 0 ? 3'000 : 2'000, kLongMs);
      if (rank == 1) return;
      EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
      EXPECT_TRUE(contains(status, "2000 bytes") && contains(status, "expects 3000")) << status.text();
    });
  }
}

TEST(MpiThreads, AMessageStartedBeforeTheLastOneEndedIsRefused) {
  run_ranks(2, [](int64_t rank, std::shared_ptr<Transport> transport) {
    if (rank == 1) return;
    std::byte data{};
    EXPECT_TRUE(transport->messages().recv_start(1, call(OperationKind::recv, 1, 1), &data, 1).ok());
    const Status status = transport->messages().recv_start(1, call(OperationKind::recv, 2, 1), &data, 1);
    EXPECT_EQ(status.code(), ZERO_E_INTERNAL) << status.text();
  });
}

TEST(MpiThreads, ManyMissingRanksAreCounted) {
  run_ranks(10, [](int64_t rank, std::shared_ptr<Transport> transport) {
    if (rank != 0) return (void)test::await_failure(*transport);
    const Status status = barrier(*transport, 1, 100);
    EXPECT_EQ(status.code(), ZERO_E_TIMEOUT);
    EXPECT_TRUE(contains(status, "rank 8 ") && contains(status, "and 1 more")) << status.text();
    transport->peers().poison(status);
  });
}

TEST(MpiThreads, ARankMakesTheNextGroupWhileTheOtherStillReleasesTheLast) {
  fake_mpi::begin_world(2);
  run_thread_ranks(2, [](int64_t rank) {
    fake_mpi::join(rank);
    for (int group = 0; group < 50; ++group) {
      std::shared_ptr<Transport> transport;
      const Status status = connect(&transport);
      ASSERT_TRUE(status.ok()) << status.text();
      EXPECT_TRUE(barrier(*transport, 1, kLongMs).ok());
    }
  });
}

TEST(MpiThreads, WhoWatchesIsToldOfARankThatLeft) {
  std::barrier seen(2);
  run_ranks(3, [&](int64_t rank, std::shared_ptr<Transport> transport) {
    ASSERT_TRUE(barrier(*transport, 1, kLongMs).ok());
    if (rank == 1) return;
    const Fingerprint doing = call(OperationKind::recv, 1);
    EXPECT_TRUE(transport->peers().watch_peer(2 - rank, doing).ok());
    seen.arrive_and_wait();
    const auto watch = [&](bool *) { return rank == 0 ? transport->peers().watch() : transport->peers().watch_peer(1, doing); };
    const Status status = test::await(*transport, watch);
    EXPECT_EQ(status.code(), ZERO_E_PEER_LEFT);
    EXPECT_TRUE(contains(status, "rank 1 released its group or optimizer")) << status.text();
    EXPECT_EQ(transport->peers().health().code(), ZERO_E_PEER_LEFT);
  });
}

TEST(MpiThreads, SendsThatDoNotEndHoldTheRankBackAndTheirMemoryOutlivesTheGroup) {
  std::barrier both_quiet(2);
  run_ranks(2, [&both_quiet](int64_t rank, std::shared_ptr<Transport> transport) {
    EXPECT_TRUE(barrier(*transport, 1, kLongMs).ok());
    EXPECT_TRUE(quiet(*transport, kLongMs).ok());
    both_quiet.arrive_and_wait();
    if (rank == 1) return (void)exchange(*transport, nullptr, 0, 3'000, 100);
    fake_mpi::hold_sends(true);
    EXPECT_EQ(quiet(*transport, 20).code(), ZERO_OK);
    for (int round = 0; round < 2; ++round) EXPECT_TRUE(exchange(*transport, nullptr, 3'000, 0, kLongMs).ok());
    EXPECT_EQ(quiet(*transport, 20).code(), ZERO_E_TIMEOUT);
    const std::string text = transport->peers().progress_report(call(OperationKind::broadcast, 1));
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
    // Two rounds are under way: the third waits.
    EXPECT_EQ(exchange(*transport, nullptr, 3'000, 0, 20).code(), ZERO_E_TIMEOUT);
    transport.reset();
    EXPECT_GT(mpi_quarantined_nbytes(), 0);
  });
  fake_mpi::hold_sends(false);
  EXPECT_EQ(fake_mpi::disturbed_sends(), 0);
}

/// Rank 0 finishes a call and fails the group before rank 1, which has begun it too, looks again: rank 1 has the status of
/// finish(transport), which looks once.
template <class Begin, class Go, class Finish>
void fail_after(Begin begin, Go go, Finish finish) {
  std::barrier step(2);
  run_ranks(2, [&](int64_t rank, std::shared_ptr<Transport> transport) {
    EXPECT_TRUE(rank == 0 || begin(*transport).ok());
    step.arrive_and_wait();
    if (rank == 0) {
      EXPECT_TRUE(go(*transport).ok());
      transport->peers().poison(Status::error(ZERO_E_ABORTED, "given up"));
    }
    step.arrive_and_wait();
    if (rank == 0) return;
    const Status status = finish(*transport);
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(barrier(*transport, 2, kLongMs).code(), ZERO_E_ABORTED);
  });
}

TEST(MpiThreads, AFailureThatFollowsARoundDoesNotUndoIt) {
  for (const int64_t nbytes : {int64_t{8}, int64_t{40'000}}) {
    const Fingerprint fingerprint = call(OperationKind::broadcast, 1, nbytes);
    const std::vector<std::byte> data(static_cast<size_t>(nbytes), std::byte{3});
    const std::vector<Offer> offers(2, {data.data(), nbytes});
    const std::vector<Offer> no_offers(2);
    std::vector<Arrival> arrivals(2, {nullptr, nbytes});
    fail_after([&](Transport &transport) { return transport.rounds().start(&fingerprint, no_offers, arrivals); },
               [&](Transport &transport) { return test::round(transport, &fingerprint, offers, std::vector<Arrival>(2)); },
               [&](Transport &transport) -> Status {
                 bool arrived = false;
                 ZERO_TRY(transport.rounds().poll(&arrived));
                 EXPECT_TRUE(arrived && std::memcmp(arrivals[0].data, data.data(), data.size()) == 0);
                 transport.rounds().consume();
                 bool quiet = false;
                 ZERO_TRY(transport.rounds().poll_quiet(&quiet));
                 EXPECT_TRUE(quiet);
                 return {};
               });
  }
}

TEST(MpiThreads, AFailureThatFollowsAMessageDoesNotUndoIt) {
  std::byte in{};
  const std::byte out{3};
  Fingerprint fingerprint = call(OperationKind::recv, 1, 1);
  Fingerprint send = call(OperationKind::send, 1, 1);
  send.root = 1;
  fail_after([&](Transport &transport) { return transport.messages().recv_start(0, fingerprint, &in, 1); },
             [&](Transport &transport) { return test::send(transport, 1, send, &out, 1); },
             [&](Transport &transport) -> Status {
               bool done = false;
               ZERO_TRY(transport.messages().recv_poll(0, &done));
               EXPECT_TRUE(done && in == out);
               return {};
             });
}

}  // namespace
}  // namespace zero::mpi_threads_test
