/// @file Collectives of groups that reach devices: over an NCCL of threads, with memory of devices, of the host, and of both.
#include "group/collectives.h"
#include "group/mpi/mpi_transport.h"
#include "group/nccl/nccl_module.h"
#include "group/nccl/nccl_transport.h"
#include "tests/group/fake_mpi.h"
#include "tests/group/host_ranks.h"
#include "tests/group/mismatch_cases.h"
#include "tests/group/nccl_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/group/transport_driver.h"
#include "tests/group/words_only.h"
#include "tests/sizes.h"

#include <barrier>
#include <cstdio>

namespace zero::test::nccl_collectives_test {
namespace {

/// Every case runs over threads as well (collectives_test.cpp); here cases differ in the ways that pieces take.
const size_t kStride = kCaseStride == 1 ? 3 : 5 * kCaseStride;

/// On one host.
template <class Body>
int64_t run_ranks(int64_t size, Lies lies, Body body) {
  const auto connect = [&, meeting = nccl_meeting()](int64_t rank, std::shared_ptr<Group> *out) {
    return connect_nccl(meeting, rank, size, out);
  };
  return run_connected(size, lies, connect, body);
}

/// A seventh of what a test on one host does.
void run_few_cases(Group &group, CaseMemory &memory, Report *report) {
  const std::vector<CollectiveCase> all = collective_cases(group.size());
  for (size_t i = 0; i < all.size(); i += 7 * kStride) run_collective_case(group, all[i], report, memory);
}

class CollectivesOverNccl : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    fake_nccl_reset();
    emulated_late(0);
    objects_ = emulated_objects();
  }
  void TearDown() override { expect_nothing_left(objects_); }

  void run_cases(Lies lies) {
    const int64_t groups = fake_nccl_groups();
    const int64_t cases = run_ranks(GetParam(), lies, [](Group &group, CaseMemory &memory, Report *report) {
      const std::vector<CollectiveCase> all = collective_cases(group.size());
      for (size_t i = 0; i < all.size(); i += full_tests() ? 1 : kStride) run_collective_case(group, all[i], report, memory);
    });
    std::printf("%lld ranks: %lld cases, %lld rounds over NCCL\n", static_cast<long long>(GetParam()), static_cast<long long>(cases),
                static_cast<long long>(fake_nccl_groups() - groups));
    EXPECT_EQ(fake_nccl_groups() > groups, lies != Lies::on_host && GetParam() > 1);
  }

 private:
  int64_t objects_ = 0;
};

TEST_P(CollectivesOverNccl, EveryCaseOnDevicesMatchesTheTreeAndFloat64) { run_cases(Lies::on_devices); }
TEST_P(CollectivesOverNccl, EveryCaseOnTheHostMatchesTheTreeAndFloat64) { run_cases(Lies::on_host); }
TEST_P(CollectivesOverNccl, EveryCaseOnBothMatchesTheTreeAndFloat64) { run_cases(Lies::on_both); }

TEST_P(CollectivesOverNccl, MovesThatComeLateChangeNothing) {
  fake_nccl_late(300);
  emulated_late(100);
  run_ranks(GetParam(), Lies::on_devices, run_few_cases);
}

class SplitOverNccl : public CollectivesOverNccl {};

TEST_P(SplitOverNccl, SplitGroupsRunAtTheSameTime) {
  run_ranks(GetParam(), Lies::on_devices,
            [](Group &group, CaseMemory &memory, Report *report) { run_split_cases_in(group, report, memory); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesOverNccl, testing::Values(1, 2, 3, 4, 8));
INSTANTIATE_TEST_SUITE_P(Ranks, SplitOverNccl, testing::Values(1, 2, 4));

TEST(NcclMismatch, DifferingCollectivesAreErrorsOnEveryRank) {
  fake_nccl_reset();
  emulated_late(0);
  const int64_t every = full_tests() ? 7 : few_tests() ? 307 : 61;
  const int64_t pairs =
      run_ranks(4, Lies::on_host, [&](Group &group, CaseMemory &, Report *report) { run_mismatch_cases(group, every, report); });
  std::printf("4 ranks: %lld pairs of differing collectives\n", static_cast<long long>(pairs));
  expect_nothing_left(0);
}

/// What is underneath spans hosts, between which all can go or words alone.
void run_cases_over_hosts(const FarWay &far_way) {
  fake_nccl_reset();
  emulated_late(0);
  const Hosts hosts = {0, 0, 1, 1};
  const auto connect = [&, meeting = nccl_meeting()](int64_t rank, std::shared_ptr<Group> *out) -> Status {
    const zero_nccl_table *nccl = nullptr;
    std::shared_ptr<Transport> under;
    ZERO_TRY(load_nccl_module(ZERO_NCCL_FILE, &nccl));
    ZERO_TRY(connect_host_transport(meeting, rank, hosts, &under, far_way));
    auto transport = std::make_shared<NcclTransport>(std::move(under), *nccl);
    const std::shared_ptr<const Reducer> reducer = std::make_shared<GroupReducer>(caller_module(), rank % kDevices, 1);
    OperationQueue queue;
    ZERO_TRY(queue.run(transport->copy_through(reducer, kHostsDeadlineMs)));
    *out = std::make_shared<Group>(std::move(transport), reducer, kHostsDeadlineMs);
    return {};
  };
  for (const Lies lies : {Lies::on_devices, Lies::on_host, Lies::on_both}) EXPECT_GT(run_connected(4, lies, connect, run_few_cases), 0);
  expect_nothing_left(0);
}

TEST(NcclHosts, EveryCaseMatchesTheTreeAndFloat64) {
  run_cases_over_hosts([](std::shared_ptr<Transport> far) { return far; });
}

TEST(NcclHosts, EveryCaseMatchesWhereHostsExchangeWordsAlone) {
  run_cases_over_hosts([](std::shared_ptr<Transport> far) -> std::shared_ptr<Transport> { return std::make_shared<WordsOnly>(far); });
}

TEST(NcclMpi, EveryCaseMatchesTheTreeAndFloat64) {
  fake_nccl_reset();
  emulated_late(0);
  for (const int64_t shared : {0, 1}) {
    fake_mpi::begin_world(3);
    const auto connect = [&](int64_t rank, std::shared_ptr<Group> *out) {
      fake_mpi::join(rank);
      Config config = nccl_config(rank);
      EXPECT_TRUE(config.set_str(ZERO_KEY_MPI_MODULE, ZERO_FAKE_MPI_FILE).ok());
      EXPECT_TRUE(config.set_i64(ZERO_KEY_MPI_SHARED, shared).ok());
      const auto reducer = [rank](const Place &) { return std::make_shared<GroupReducer>(caller_module(), rank % kDevices, 1); };
      OperationQueue queue;
      return queue.run(connect_mpi_group(ZERO_MPI_WORLD, GroupOptions(config), reducer, out));
    };
    EXPECT_GT(run_connected(3, Lies::on_both, connect, run_few_cases), 0);
    expect_nothing_left(0);
  }
}

Status connect_nccl_over_mpi(int64_t rank, std::shared_ptr<Transport> *out) {
  const zero_nccl_table *nccl = nullptr;
  std::shared_ptr<MpiTransport> under;
  MpiOptions options;
  options.module_path = ZERO_FAKE_MPI_FILE;
  OperationQueue queue;
  ZERO_TRY(load_nccl_module(ZERO_NCCL_FILE, &nccl));
  ZERO_TRY(queue.run(connect_mpi(ZERO_MPI_WORLD, options, &under)));
  *out = std::make_shared<NcclTransport>(std::move(under), *nccl);
  return queue.run((*out)->copy_through(std::make_shared<GroupReducer>(caller_module(), rank % kDevices, 1), kHostsDeadlineMs));
}

/// A rank that does not look keeps the other, which has all it waits for, in the round: gone, it would be missed by who still waits.
TEST(NcclMpi, ARoundEndsWhereEveryRankHasItsPieces) {
  fake_nccl_reset();
  emulated_late(0);
  fake_mpi::begin_world(2);
  std::barrier step(2);
  run_thread_ranks(2, [&](int64_t rank) {
    fake_mpi::join(rank);
    std::shared_ptr<Transport> transport;
    const Status connected = connect_nccl_over_mpi(rank, &transport);
    ASSERT_TRUE(connected.ok()) << connected.text();
    constexpr int64_t kNbytes = 4096;
    DeviceCases memory(rank);
    auto *data = static_cast<std::byte *>(memory.alloc(2 * kNbytes));
    std::vector<Offer> offers(2, {data, kNbytes});
    std::vector<Arrival> arrivals(2, {.nbytes = kNbytes, .place = data + kNbytes});
    const auto look_often = [&] {
      bool arrived = false;
      Status status;
      for (int look = 0; look < 1000 && status.ok() && !arrived; ++look) status = transport->rounds().poll(&arrived);
      EXPECT_TRUE(status.ok()) << status.text();
      EXPECT_FALSE(arrived);
    };
    // Ranks that have met this way before do not wait for each other to give their moves.
    const Fingerprint first = call(OperationKind::all_gather, 1, kNbytes);
    EXPECT_TRUE(round(*transport, &first, offers, arrivals).ok());
    const int64_t moves = fake_nccl_groups();
    const Fingerprint second = call(OperationKind::all_gather, 2, kNbytes);
    EXPECT_TRUE(transport->rounds().start(&second, offers, arrivals).ok());
    step.arrive_and_wait();
    if (rank == 1) look_often();
    step.arrive_and_wait();
    if (rank == 0) {
      const auto moved = [&](bool *out) {
        ZERO_TRY(transport->rounds().poll(out));
        *out = fake_nccl_groups() == moves + 2;
        return Status();
      };
      EXPECT_TRUE(await(*transport, moved).ok());
      look_often();
    }
    step.arrive_and_wait();
    EXPECT_TRUE(await(*transport, [&](bool *arrived) { return transport->rounds().poll(arrived); }).ok());
    transport->rounds().consume();
    memory.free(data, 2 * kNbytes);
  });
  expect_nothing_left(0);
}

/// What is underneath carries nothing long.
class CollectivesOverWords : public CollectivesOverNccl {
 protected:
  template <class Body>
  static int64_t run_over_words(Lies lies, Body body) {
    const int64_t size = GetParam();
    const auto connect = [&, meeting = nccl_meeting()](int64_t rank, std::shared_ptr<Group> *out) {
      return connect_words_nccl(meeting, rank, size, out);
    };
    return run_connected(size, lies, connect, body);
  }
  static void run_large_cases(Group &group, CaseMemory &memory, Report *report) {
    for (const CollectiveCase &wanted : collective_cases(group.size())) {
      // One of each kind and root, with pieces that are many times as long as a word.
      if (wanted.dtype != DType::f32 || wanted.op != ReduceOp::sum || wanted.count != 0) continue;
      CollectiveCase large = wanted;
      large.count = 12'000 * group.size();
      run_collective_case(group, large, report, memory);
    }
  }
  static void run_words_cases(Lies lies) {
    const int64_t moved = fake_nccl_moved();
    run_over_words(lies, [](Group &group, CaseMemory &memory, Report *report) {
      const std::vector<CollectiveCase> all = collective_cases(group.size());
      for (size_t i = 0; i < all.size(); i += full_tests() ? 1 : kStride) run_collective_case(group, all[i], report, memory);
      run_large_cases(group, memory, report);
    });
    EXPECT_GT(fake_nccl_moved(), moved);
  }
};

TEST_P(CollectivesOverWords, EveryCaseOnDevicesMatchesTheTreeAndFloat64) { run_words_cases(Lies::on_devices); }
TEST_P(CollectivesOverWords, EveryCaseOnTheHostMatchesTheTreeAndFloat64) { run_words_cases(Lies::on_host); }
TEST_P(CollectivesOverWords, EveryCaseOnBothMatchesTheTreeAndFloat64) { run_words_cases(Lies::on_both); }

TEST_P(CollectivesOverWords, MovesThatComeLateChangeNothing) {
  fake_nccl_late(300);
  emulated_late(100);
  for (const Lies lies : {Lies::on_host, Lies::on_both}) {
    run_over_words(lies, [](Group &group, CaseMemory &memory, Report *report) {
      run_few_cases(group, memory, report);
      run_large_cases(group, memory, report);
    });
  }
}

TEST_P(CollectivesOverWords, SplitGroupsRunAtTheSameTime) {
  run_over_words(Lies::on_both, [](Group &group, CaseMemory &memory, Report *report) { run_split_cases_in(group, report, memory); });
}

/// As optimizers on the host ask for.
TEST_P(CollectivesOverWords, GroupsOfTheHostAloneThatAreSplitFromThemMoveOverNcclToo) {
  run_over_words(Lies::on_host, [](Group &group, CaseMemory &memory, Report *report) {
    std::shared_ptr<Group> child;
    const std::shared_ptr<const Reducer> on_host = test_reducer();
    const Status status = group.queue()->run(split(group, 0, -group.rank(), &child, on_host));
    report->expect(status.ok(), status.text());
    if (child == nullptr) return;
    run_few_cases(*child, memory, report);
    run_large_cases(*child, memory, report);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesOverWords, testing::Values(2, 3, 4));

/// Element i of a rank's contribution to a sum that no round holds.
int32_t part_of_sum(int64_t rank, int64_t index) { return static_cast<int32_t>((rank + 1) * (index % 1009)); }

TEST(NcclRounds, ASumTakesSeveralRounds) {
  fake_nccl_reset();
  emulated_late(0);
  constexpr int64_t kCount = 9'000'001;
  run_ranks(3, Lies::on_devices, [](Group &group, CaseMemory &memory, Report *report) {
    std::vector<int32_t> values(kCount);
    for (int64_t i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = part_of_sum(group.rank(), i);
    const int64_t nbytes = kCount * dtype_nbytes(DType::i32);
    void *data = memory.alloc(nbytes);
    memory.write(data, values.data(), nbytes);
    const int64_t rounds = fake_nccl_groups();
    const Status status = group.queue()->run(all_reduce(group, data, data, kCount, DType::i32, ReduceOp::sum));
    report->expect(status.ok(), status.text());
    report->expect(fake_nccl_groups() - rounds > 2 * group.size(), "few rounds");
    memory.read(values.data(), data, nbytes);
    memory.free(data, nbytes);
    int64_t wrong = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      wrong += values[static_cast<size_t>(i)] != part_of_sum(0, i) + part_of_sum(1, i) + part_of_sum(2, i) ? 1 : 0;
    }
    report->expect(wrong == 0, std::to_string(wrong) + " wrong elements");
  });
}

/// Calls of NCCL by all ranks.
struct Calls {
  int64_t gathers, broadcasts, sends;
  static Calls now() { return {fake_nccl_calls("ncclAllGather"), fake_nccl_calls("ncclBroadcast"), fake_nccl_calls("ncclSend")}; }
};

void expect_calls(Report *report, Group &group, const Calls &before, const Calls &wanted, const char *what) {
  // All have ended once all have come here.
  const Status status = group.queue()->run(barrier(group));
  report->expect(status.ok(), status.text());
  const Calls now = Calls::now();
  const bool right = now.gathers - before.gathers == wanted.gathers && now.broadcasts - before.broadcasts == wanted.broadcasts &&
                     now.sends - before.sends == wanted.sends;
  report->expect(right, std::string(what) + ": " + std::to_string(now.gathers - before.gathers) + " gathers, " +
                            std::to_string(now.broadcasts - before.broadcasts) + " broadcasts, " +
                            std::to_string(now.sends - before.sends) + " sends");
}

/// Rank r's elements are r + 1.
void gather_in_place(Group &group, CaseMemory &memory, const Cuts &cuts, Report *report) {
  constexpr int64_t kElement = sizeof(float);
  std::vector<float> values(static_cast<size_t>(cuts.back().end), static_cast<float>(group.rank() + 1));
  const auto nbytes = std::ssize(values) * kElement;
  auto *whole = static_cast<std::byte *>(memory.alloc(nbytes));
  memory.write(whole, values.data(), nbytes);
  const std::byte *mine = whole + cuts[static_cast<size_t>(group.rank())].begin * kElement;
  const Status status = group.queue()->run(all_gather(group, mine, whole, cuts, DType::f32));
  report->expect(status.ok(), status.text());
  memory.read(values.data(), whole, nbytes);
  memory.free(whole, nbytes);
  for (size_t rank = 0; rank < cuts.size(); ++rank) {
    for (int64_t i = cuts[rank].begin; i < cuts[rank].end; ++i) {
      report->expect(values[static_cast<size_t>(i)] == static_cast<float>(rank + 1), "rank " + std::to_string(rank) + "'s part");
    }
  }
}

/// What each rank gives to all leaves it once: an all-gather of NCCL where parts are alike and lie in their places, otherwise a broadcast
/// of each. What is meant for one rank is sent.
TEST(NcclRounds, WhatGoesToAllIsSpreadByNccl) {
  fake_nccl_reset();
  emulated_late(0);
  constexpr int64_t kRanks = 3;
  run_ranks(kRanks, Lies::on_devices, [](Group &group, CaseMemory &memory, Report *report) {
    Calls before = Calls::now();
    gather_in_place(group, memory, {{0, 700}, {700, 1400}, {1400, 2100}}, report);
    expect_calls(report, group, before, {kRanks, 0, 0}, "parts alike");
    before = Calls::now();
    gather_in_place(group, memory, {{0, 700}, {700, 1300}, {1300, 2100}}, report);
    expect_calls(report, group, before, {0, kRanks * kRanks, 0}, "parts of different lengths");
    before = Calls::now();
    gather_in_place(group, memory, {{0, 0}, {0, 1300}, {1300, 1300}}, report);
    expect_calls(report, group, before, {0, kRanks, 0}, "one part");
    before = Calls::now();
    run_collective_case(group, {OperationKind::all_gather, DType::f32, ReduceOp::sum, 900, 0}, report, memory);
    expect_calls(report, group, before, {0, kRanks * kRanks, 0}, "parts in memory of their own");
    before = Calls::now();
    run_collective_case(group, {OperationKind::broadcast, DType::f32, ReduceOp::sum, 900, 1}, report, memory);
    expect_calls(report, group, before, {0, kRanks, 0}, "a broadcast");
    before = Calls::now();
    run_collective_case(group, {OperationKind::all_to_all, DType::f32, ReduceOp::sum, 900, 0}, report, memory);
    expect_calls(report, group, before, {0, 0, kRanks * (kRanks - 1)}, "pieces for one rank each");
  });
}

/// What the root of a reduction receives from all others at once outgrows its area, for which memory is to be had only while no other rank
/// waits for it on its device.
TEST(NcclRounds, AreasGrowBeforeAnythingMoves) {
  fake_nccl_reset();
  emulated_late(0);
  emulated_alloc_waits(1);
  run_ranks(3, Lies::on_devices, [](Group &group, CaseMemory &memory, Report *report) {
    for (const int64_t count : {int64_t{1} << 10, int64_t{3} << 20, int64_t{5} << 20}) {
      run_collective_case(group, {OperationKind::reduce, DType::i32, ReduceOp::sum, count, 1}, report, memory);
    }
  });
  emulated_alloc_waits(0);
}

/// Pieces of the host fill many rounds of the transport underneath.
TEST(NcclRounds, LargePiecesOfTheHostArrive) {
  fake_nccl_reset();
  emulated_late(0);
  for (const Lies lies : {Lies::on_host, Lies::on_both}) {
    run_ranks(3, lies, [](Group &group, CaseMemory &memory, Report *report) {
      for (const OperationKind kind : {OperationKind::all_gather, OperationKind::broadcast, OperationKind::all_to_all}) {
        run_collective_case(group, {kind, DType::f64, ReduceOp::sum, 99'999, 1}, report, memory);
      }
    });
  }
}

}  // namespace
}  // namespace zero::test::nccl_collectives_test
