/// @file zero/group.h: the documented rules that only calls can show. Numbers are tested where
/// collectives are.
#include "api_world.h"
#include "variables.h"

#include <unistd.h>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace zero::test::group_test {
namespace {

std::string unique_name(const char *stem) {
  static int counter = 0;
  return std::string("libzero-api-") + stem + "-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
}

class Pair : public testing::Test {
 protected:
  /// Waits for a request and gives it back.
  static int32_t finish(zero_request *request) {
    const int32_t status = zero_request_wait(request);
    zero_request_release(request);
    return status;
  }
  TwoRanks ranks{unique_name("pair").c_str(), 2000};
};

TEST_F(Pair, KnowsItsPlace) {
  for (int64_t i = 0; i < 2; ++i) {
    zero_group *group = ranks.rank[static_cast<size_t>(i)];
    int64_t value = -1;
    ZERO_EXPECT_OK(zero_group_rank(group, &value));
    EXPECT_EQ(i, value);
    ZERO_EXPECT_OK(zero_group_size(group, &value));
    EXPECT_EQ(2, value);
    ZERO_EXPECT_OK(zero_group_local_rank(group, &value));
    EXPECT_EQ(i, value);
    ZERO_EXPECT_OK(zero_group_local_size(group, &value));
    EXPECT_EQ(2, value);
    ZERO_EXPECT_OK(zero_group_host_count(group, &value));
    EXPECT_EQ(1, value);
  }
}

TEST_F(Pair, SharesFollowTheFormula) {
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{1024}, INT64_MAX}) {
    for (int64_t rank = 0; rank < 2; ++rank) {
      int64_t offset = -1;
      int64_t share = -1;
      ZERO_EXPECT_OK(zero_group_share(ranks.rank[0], count, rank, &offset, &share));
      EXPECT_EQ(rank == 0 ? 0 : count / 2, offset);
      EXPECT_EQ(rank == 0 ? count / 2 : count - count / 2, share);
    }
  }
}

TEST_F(Pair, RequestsEndOnceBothRanksHaveCome) {
  zero_request *first = nullptr;
  zero_request *second = nullptr;
  ZERO_ASSERT_OK(zero_group_barrier_async(ranks.rank[0], &first));
  int64_t done = -1;
  ZERO_EXPECT_OK(zero_request_test(first, &done));
  EXPECT_EQ(0, done);
  ZERO_ASSERT_OK(zero_group_barrier_async(ranks.rank[1], &second));
  while (done == 0) {
    ZERO_ASSERT_OK(zero_request_test(first, &done));
    ZERO_ASSERT_OK(zero_group_status(ranks.rank[1]));
  }
  EXPECT_EQ(1, done);
  ZERO_EXPECT_OK(finish(second));
  ZERO_EXPECT_OK(finish(first));
}

TEST_F(Pair, SendsMeetReceives) {
  const int64_t sent[3] = {1, 2, 3};
  int64_t received[3] = {};
  zero_request *request = nullptr;
  ZERO_ASSERT_OK(zero_group_send_async(ranks.rank[0], sent, 3, ZERO_DTYPE_I64, 1, nullptr, &request));
  ZERO_EXPECT_OK(zero_group_recv(ranks.rank[1], received, 3, ZERO_DTYPE_I64, 0, nullptr));
  ZERO_EXPECT_OK(finish(request));
  EXPECT_EQ(0, std::memcmp(sent, received, sizeof sent));
}

TEST_F(Pair, SplitLeavesOutNegativeColors) {
  zero_request *requests[2] = {};
  ZERO_ASSERT_OK(zero_group_split_async(ranks.rank[0], 3, 0, &requests[0]));
  ZERO_ASSERT_OK(zero_group_split_async(ranks.rank[1], -1, 0, &requests[1]));
  int64_t done = 0;
  while (done != 2) {
    done = 0;
    for (zero_request *request : requests) {
      int64_t one = 0;
      ZERO_ASSERT_OK(zero_request_test(request, &one));
      done += one;
    }
  }
  zero_group *made[2] = {nullptr, ranks.rank[0]};
  for (int i = 0; i < 2; ++i) {
    ZERO_EXPECT_OK(zero_request_group(requests[i], &made[i]));
    zero_request_release(requests[i]);
  }
  int64_t size = 0;
  ZERO_EXPECT_OK(zero_group_size(made[0], &size));
  EXPECT_EQ(1, size);
  EXPECT_EQ(nullptr, made[1]);
  zero_group_release(made[0]);
}

TEST_F(Pair, ADeadlineEndsACallAndPoisonsTheGroup) {
  ZERO_ASSERT_OK(zero_group_set_deadline(ranks.rank[0], 100));
  EXPECT_TRUE(failed_with(zero_group_barrier(ranks.rank[0]), ZERO_E_TIMEOUT, "barrier"));
  EXPECT_EQ(ZERO_E_TIMEOUT, zero_group_status(ranks.rank[0]));
  EXPECT_EQ(ZERO_E_TIMEOUT, zero_group_barrier(ranks.rank[0]));
}

TEST_F(Pair, ATimeoutTellsTheDeadlineThatTheCallHad) {
  zero_request *request = nullptr;
  ZERO_ASSERT_OK(zero_group_set_deadline(ranks.rank[0], 100));
  ZERO_ASSERT_OK(zero_group_barrier_async(ranks.rank[0], &request));
  ZERO_ASSERT_OK(zero_group_set_deadline(ranks.rank[0], 60'000));
  EXPECT_TRUE(failed_with(finish(request), ZERO_E_TIMEOUT, "waited 100 ms in #1 barrier"));
}

TEST_F(Pair, AbortReachesTheOtherRankWithItsReason) {
  zero_request *request = nullptr;
  ZERO_ASSERT_OK(zero_group_barrier_async(ranks.rank[1], &request));
  ZERO_EXPECT_OK(zero_group_abort(ranks.rank[0], "enough of this"));
  EXPECT_TRUE(failed_with(zero_request_wait(request), ZERO_E_ABORTED, "enough of this"));
  EXPECT_EQ(ZERO_E_ABORTED, zero_group_status(ranks.rank[0]));
  int64_t done = 0;
  EXPECT_EQ(ZERO_E_ABORTED, zero_request_test(request, &done));
  EXPECT_EQ(1, done);
  zero_request_release(request);
}

TEST_F(Pair, AbortOfAGroupThatHasFailedReachesThoseSplitFromIt) {
  zero_request *requests[2] = {};
  for (int i = 0; i < 2; ++i) ZERO_ASSERT_OK(zero_group_split_async(ranks.rank[i], 0, 0, &requests[i]));
  zero_group *children[2] = {};
  for (int64_t done = 0; done == 0;) {
    ZERO_ASSERT_OK(zero_request_test(requests[1], &done));
    ZERO_ASSERT_OK(zero_request_test(requests[0], &done));
  }
  for (int i = 0; i < 2; ++i) {
    ZERO_ASSERT_OK(zero_request_wait(requests[i]));
    ZERO_ASSERT_OK(zero_request_group(requests[i], &children[i]));
    zero_request_release(requests[i]);
  }
  ZERO_ASSERT_OK(zero_group_set_deadline(ranks.rank[0], 100));
  EXPECT_EQ(ZERO_E_TIMEOUT, zero_group_barrier(ranks.rank[0]));
  zero_request *waits = nullptr;
  ZERO_ASSERT_OK(zero_group_set_deadline(children[0], 20'000));
  ZERO_ASSERT_OK(zero_group_barrier_async(children[0], &waits));
  ZERO_EXPECT_OK(zero_group_abort(ranks.rank[0], "enough of this"));
  EXPECT_TRUE(failed_with(zero_request_wait(waits), ZERO_E_ABORTED, "enough of this"));
  EXPECT_EQ(ZERO_E_TIMEOUT, zero_group_status(ranks.rank[0]));
  zero_request_release(waits);
  for (zero_group *child : children) zero_group_release(child);
}

/// Its steps wait for no other rank.
TEST_F(Pair, AbortReachesAnOptimizerOfARankThatIsAloneInItsGroup) {
  zero_request *requests[2] = {};
  for (int i = 0; i < 2; ++i) ZERO_ASSERT_OK(zero_group_split_async(ranks.rank[i], i, 0, &requests[i]));
  for (int64_t done = 0; done == 0;) {
    ZERO_ASSERT_OK(zero_request_test(requests[0], &done));
    ZERO_ASSERT_OK(zero_request_test(requests[1], &done));
  }
  zero_group *alone = nullptr;
  ZERO_ASSERT_OK(zero_request_group(requests[1], &alone));
  for (zero_request *request : requests) ZERO_ASSERT_OK(finish(request));
  zero_optimizer *optimizer = nullptr;
  ZERO_ASSERT_OK(zero_optimizer_create(alone, nullptr, &optimizer));
  ZERO_ASSERT_OK(zero_optimizer_seal(optimizer));
  ZERO_ASSERT_OK(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  ZERO_EXPECT_OK(zero_optimizer_step(optimizer, nullptr, nullptr));
  ZERO_EXPECT_OK(zero_group_abort(ranks.rank[0], "enough of this"));
  EXPECT_TRUE(failed_with(zero_optimizer_step(optimizer, nullptr, nullptr), ZERO_E_ABORTED, "enough of this"));
  zero_optimizer_release(optimizer);
  zero_group_release(alone);
}

TEST_F(Pair, MemoryOfAFailedCallIsTheCallersAgain) {
  int64_t quiet = -7;
  ZERO_EXPECT_OK(zero_group_quiet(ranks.rank[0], &quiet));
  EXPECT_EQ(1, quiet);
  float data[4] = {};
  zero_request *request = nullptr;
  ZERO_ASSERT_OK(zero_group_all_reduce_async(ranks.rank[1], data, 4, data, 4, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, nullptr, &request));
  ZERO_EXPECT_OK(zero_group_abort(ranks.rank[0], "enough of this"));
  EXPECT_EQ(ZERO_E_ABORTED, finish(request));
  for (zero_group *group : ranks.rank) {
    quiet = -7;
    ZERO_EXPECT_OK(zero_group_quiet(group, &quiet));
    EXPECT_EQ(1, quiet);
  }
}

TEST_F(Pair, QuietNeedsAGroupAndAPlace) {
  int64_t quiet = -7;
  EXPECT_TRUE(failed_with(zero_group_quiet(nullptr, &quiet), ZERO_E_BAD_HANDLE, "group is NULL"));
  zero_group *const released = ranks.rank[0];
  zero_group_release(released);
  ranks.rank[0] = nullptr;
  EXPECT_TRUE(failed_with(zero_group_quiet(released, &quiet), ZERO_E_BAD_HANDLE, "was released"));
  EXPECT_EQ(-7, quiet);
  EXPECT_TRUE(failed_with(zero_group_quiet(ranks.rank[1], nullptr), ZERO_E_INVALID_ARGUMENT, "out"));
}

TEST_F(Pair, RequestsKeepTheirGroupAlive) {
  zero_request *first = nullptr;
  zero_request *second = nullptr;
  ZERO_ASSERT_OK(zero_group_barrier_async(ranks.rank[0], &first));
  zero_group_release(ranks.rank[0]);
  ranks.rank[0] = nullptr;
  ZERO_ASSERT_OK(zero_group_barrier_async(ranks.rank[1], &second));
  ZERO_EXPECT_OK(finish(first));
  ZERO_EXPECT_OK(finish(second));
}

/// Memory of 8 elements in which sends and receives are laid.
class Overlap : public Pair {
 protected:
  float memory[16] = {};
  const int32_t f32 = ZERO_DTYPE_F32;
  const int32_t sum = ZERO_REDUCE_SUM;

  testing::AssertionResult overlaps(int32_t status) { return failed_with(status, ZERO_E_INVALID_ARGUMENT, "send and recv overlap"); }
};

TEST_F(Overlap, AllReduceMayOnlyBeInPlaceAsAWhole) {
  EXPECT_TRUE(overlaps(zero_group_all_reduce(ranks.rank[0], memory, 4, memory + 1, 4, f32, sum, nullptr)));
  EXPECT_TRUE(overlaps(zero_group_all_reduce(ranks.rank[0], memory + 3, 4, memory, 4, f32, sum, nullptr)));
  EXPECT_TRUE(overlaps(zero_group_reduce(ranks.rank[0], memory, 4, memory + 1, 4, f32, sum, 0, nullptr)));
}

TEST_F(Overlap, SharesMayOnlyLieInTheirOwnPlace) {
  // Rank 1 owns elements 4 .. 8 of 8.
  EXPECT_TRUE(overlaps(zero_group_reduce_scatter(ranks.rank[1], memory, 8, memory, 4, f32, sum, nullptr)));
  EXPECT_TRUE(overlaps(zero_group_reduce_scatter(ranks.rank[1], memory, 8, memory + 5, 4, f32, sum, nullptr)));
  EXPECT_TRUE(overlaps(zero_group_all_gather(ranks.rank[1], memory, 4, memory, 8, f32, nullptr)));
  EXPECT_TRUE(overlaps(zero_group_gather(ranks.rank[1], memory + 1, 4, memory, 8, 8, f32, 1, nullptr)));
  EXPECT_TRUE(overlaps(zero_group_scatter(ranks.rank[1], memory, 8, memory, 4, 8, f32, 1, nullptr)));
  EXPECT_TRUE(overlaps(zero_group_all_to_all(ranks.rank[1], memory, 8, memory, 8, f32, nullptr)));
}

TEST_F(Overlap, EqualSizesDoNotHideAShift) {
  zero_group *group = solo_group();
  EXPECT_TRUE(overlaps(zero_group_all_gather(group, memory + 1, 8, memory, 8, f32, nullptr)));
  EXPECT_TRUE(overlaps(zero_group_reduce_scatter(group, memory, 8, memory + 1, 8, f32, sum, nullptr)));
  zero_group_release(group);
}

TEST_F(Overlap, AllowedPlacesWork) {
  for (int i = 0; i < 8; ++i) memory[i] = static_cast<float>(i);
  zero_group *group = solo_group();
  ZERO_EXPECT_OK(zero_group_all_reduce(group, memory, 8, memory, 8, f32, sum, nullptr));
  ZERO_EXPECT_OK(zero_group_reduce(group, memory, 8, memory, 8, f32, sum, 0, nullptr));
  ZERO_EXPECT_OK(zero_group_reduce_scatter(group, memory, 8, memory, 8, f32, sum, nullptr));
  ZERO_EXPECT_OK(zero_group_all_gather(group, memory, 8, memory, 8, f32, nullptr));
  ZERO_EXPECT_OK(zero_group_gather(group, memory, 8, memory, 8, 8, f32, 0, nullptr));
  ZERO_EXPECT_OK(zero_group_scatter(group, memory, 8, memory, 8, 8, f32, 0, nullptr));
  ZERO_EXPECT_OK(zero_group_all_to_all(group, memory, 8, memory + 8, 8, f32, nullptr));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(static_cast<float>(i % 8), memory[i]);
  zero_group_release(group);
}

TEST_F(Pair, CountsMustFitTheRank) {
  float data[16] = {};
  zero_group *group = ranks.rank[1];
  const int32_t f32 = ZERO_DTYPE_F32;
  EXPECT_TRUE(failed_with(zero_group_all_reduce(group, data, 3, data + 8, 4, f32, ZERO_REDUCE_SUM, nullptr), ZERO_E_INVALID_ARGUMENT,
                          "recv_count is 4"));
  EXPECT_TRUE(failed_with(zero_group_reduce_scatter(group, data, 5, data + 8, 2, f32, ZERO_REDUCE_SUM, nullptr), ZERO_E_INVALID_ARGUMENT,
                          "rank 1 of 2 has a share of 3 of the 5 elements in send_count"));
  EXPECT_TRUE(
      failed_with(zero_group_gather(group, data, 2, data + 8, 4, 4, f32, 0, nullptr), ZERO_E_INVALID_ARGUMENT, "must be 0 on rank 1"));
  EXPECT_TRUE(
      failed_with(zero_group_all_to_all(group, data, 3, data + 8, 3, f32, nullptr), ZERO_E_INVALID_ARGUMENT, "multiple of the 2 ranks"));
  EXPECT_TRUE(failed_with(zero_group_send(group, data, 1, f32, 1, nullptr), ZERO_E_INVALID_ARGUMENT, "this rank itself"));
}

TEST(CreateEnv, ALauncherThatStartedTooManyRanksIsNamed) {
  Variables variables;
  for (const char *name : {"RANK", "LOCAL_RANK"}) variables.set(name, "3");
  for (const char *name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) variables.set(name, "1025");
  variables.set("TORCHELASTIC_RUN_ID", "job");
  variables.set("MASTER_ADDR", "127.0.0.1");
  variables.set("MASTER_PORT", "29500");
  zero_group *group = nullptr;
  EXPECT_TRUE(failed_with(zero_group_create_env(nullptr, &group), ZERO_E_LAUNCHER, "torchrun started 1025 ranks, but a group of one host"));
  zero_config *config = nullptr;
  ZERO_ASSERT_OK(zero_config_create(&config));
  ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_NCCL, 1));
  ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_DEVICE, 0));
  for (const char *name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) variables.set(name, "65");
  EXPECT_TRUE(failed_with(zero_group_create_env(config, &group), ZERO_E_LAUNCHER, "that reaches devices has at most 64"));
  zero_config_release(config);
}

std::string launcher_variable() {
  std::array<char, 64> text{};
  ZERO_EXPECT_OK(zero_group_launcher(text.data(), static_cast<int64_t>(text.size()), nullptr));
  return text.data();
}

TEST(Launcher, IsNamedByTheVariableThatCountsItsRanks) {
  EXPECT_EQ(launcher_variable(), "");
  Variables variables;
  variables.set("OMPI_COMM_WORLD_RANK", "0");
  EXPECT_TRUE(failed_with(zero_group_launcher(nullptr, 0, nullptr), ZERO_E_LAUNCHER, "OMPI_COMM_WORLD_SIZE is not"));
  variables.set("OMPI_COMM_WORLD_SIZE", "2");
  EXPECT_EQ(launcher_variable(), "OMPI_COMM_WORLD_SIZE");
  std::array<char, 5> cut{};
  int64_t needed = 0;
  ZERO_EXPECT_OK(zero_group_launcher(cut.data(), static_cast<int64_t>(cut.size()), &needed));
  EXPECT_STREQ(cut.data(), "OMPI");
  EXPECT_EQ(needed, static_cast<int64_t>(sizeof "OMPI_COMM_WORLD_SIZE"));
}

TEST_F(Pair, AnAbortWithoutAReasonSaysSo) {
  ZERO_EXPECT_OK(zero_group_abort(ranks.rank[0], nullptr));
  EXPECT_TRUE(failed_with(zero_group_barrier(ranks.rank[1]), ZERO_E_ABORTED, "no reason given"));
}

TEST_F(Pair, ElementsMustNotReachPastTheEndOfAllAddresses) {
  auto *last = reinterpret_cast<float *>(~uintptr_t{0} - 7);
  float data[4] = {};
  EXPECT_TRUE(failed_with(zero_group_all_reduce(ranks.rank[0], last, 4, data, 4, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, nullptr),
                          ZERO_E_INVALID_ARGUMENT, "past the end of all addresses"));
}

TEST_F(Pair, NoElementsNeedNoMemory) {
  zero_request *requests[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    ZERO_ASSERT_OK(
        zero_group_reduce_scatter_async(ranks.rank[i], nullptr, 0, nullptr, 0, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, nullptr, &requests[i]));
  }
  for (zero_request *request : requests) ZERO_EXPECT_OK(finish(request));
  for (size_t i = 0; i < 2; ++i) {
    ZERO_ASSERT_OK(zero_group_all_gather_async(ranks.rank[i], nullptr, 0, nullptr, 0, ZERO_DTYPE_F32, nullptr, &requests[i]));
  }
  for (zero_request *request : requests) ZERO_EXPECT_OK(finish(request));
}

TEST(Group, RanksThatNeverComeAreNamed) {
  zero_config *config = nullptr;
  ZERO_ASSERT_OK(zero_config_create(&config));
  ZERO_ASSERT_OK(zero_config_set_i64(config, ZERO_KEY_RENDEZVOUS_MS, 100));
  zero_group *group = nullptr;
  EXPECT_TRUE(
      failed_with(zero_group_create_local(unique_name("alone").c_str(), 0, 2, config, &group), ZERO_E_RENDEZVOUS, "missing: rank 1"));
  EXPECT_EQ(nullptr, group);
  zero_request *request = nullptr;
  ZERO_ASSERT_OK(zero_group_create_local_async(unique_name("alone").c_str(), 0, 2, config, &request));
  zero_config_release(config);
  EXPECT_EQ(ZERO_E_RENDEZVOUS, zero_request_wait(request)) << last_text();
  EXPECT_EQ(ZERO_E_RENDEZVOUS, zero_request_group(request, &group)) << last_text();
  EXPECT_EQ(nullptr, group);
  zero_request_release(request);
}

/// Call k of one rank meets call k of the other only where both ranks keep the order in which their
/// threads called.
TEST(Group, CallsOfSeveralThreadsRunInTheOrderInWhichTheyWereMade) {
  constexpr int64_t kThreads = 4;
  constexpr int64_t kCalls = 200;
  TwoRanks ranks(unique_name("order").c_str(), 60'000);
  std::atomic<int64_t> made[2] = {};
  std::vector<std::jthread> threads;
  const auto make_every_nth = [&](int64_t rank, int64_t first) {
    for (int64_t k = first; k < kCalls; k += kThreads) {
      while (made[rank] != k) std::this_thread::yield();
      int64_t value = rank == 0 ? 1000 * k : k;
      zero_request *request = nullptr;
      EXPECT_EQ(ZERO_OK, zero_group_all_reduce_async(ranks.rank[static_cast<size_t>(rank)], &value, 1, &value, 1, ZERO_DTYPE_I64,
                                                     ZERO_REDUCE_SUM, nullptr, &request))
          << last_text();
      made[rank] = k + 1;
      EXPECT_EQ(ZERO_OK, zero_request_wait(request)) << last_text();
      EXPECT_EQ(1001 * k, value);
      zero_request_release(request);
    }
  };
  for (int64_t thread = 0; thread < 2 * kThreads; ++thread) threads.emplace_back(make_every_nth, thread % 2, thread / 2);
  threads.clear();
  for (zero_group *group : ranks.rank) {
    zero_traffic_stats traffic;
    ZERO_ASSERT_OK(zero_traffic_stats_init(&traffic, sizeof traffic));
    ZERO_EXPECT_OK(zero_stats_group_traffic(group, ZERO_OPERATION_ALL_REDUCE, &traffic));
    EXPECT_EQ(kCalls, traffic.call_count);
  }
}

TEST(Group, DescriptionsAreCutToFit) {
  zero_group *group = solo_group();
  int64_t needed = 0;
  ZERO_ASSERT_OK(zero_describe_group(group, nullptr, 0, &needed));
  std::string text(static_cast<size_t>(needed), '#');
  ZERO_ASSERT_OK(zero_describe_group(group, text.data(), needed, nullptr));
  EXPECT_EQ('\0', text.back());
  EXPECT_NE(std::string::npos, text.find("rank 0 of 1"));
  char cut[5] = "####";
  ZERO_ASSERT_OK(zero_describe_group(group, cut, 4, &needed));
  EXPECT_EQ(text.substr(0, 3), cut);
  ZERO_ASSERT_OK(zero_describe_library(nullptr, 0, &needed));
  EXPECT_GT(needed, 10);
  zero_group_release(group);
}

}  // namespace
}  // namespace zero::test::group_test
