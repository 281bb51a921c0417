/// @file zero/group.h with ZERO_KEY_NCCL: collectives on memory of a device, in the order of the
/// caller's streams, and what is refused. Ranks are threads: several over an NCCL of threads and
/// emulated devices, one over NCCL where there is a CUDA device.
#include "nccl_world.h"

#include <barrier>
#include <chrono>
#include <thread>

namespace zero::test::nccl_test {
namespace {

template <class Body>
void run_ranks(Body &&body) {
  const std::string name = fresh_name();
  run_thread_ranks(kRanks, [&](int64_t rank) {
    Rank self(name, rank);
    if (self.group != nullptr) body(self);
  });
}

class NcclCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (*caller_missing() != '\0') GTEST_SKIP() << caller_missing();
  }
};

/// The module is loaded once per process: this comes first.
TEST_F(NcclCalls, AMissingModuleIsAnErrorThatNamesIt) {
  const NcclConfig keys(0);
  ZERO_ASSERT_OK(zero_config_set_str(keys.config, ZERO_KEY_NCCL_MODULE, "/nowhere/libzero_nccl.so"));
  zero_group *group = nullptr;
  EXPECT_TRUE(failed_with(zero_group_create_local(nullptr, 0, 1, keys.config, &group), ZERO_E_MODULE, "/nowhere/libzero_nccl.so"));
  EXPECT_EQ(group, nullptr);
}

TEST_F(NcclCalls, ADeviceMustBeNamed) {
  const NcclConfig keys(-1);
  zero_group *group = nullptr;
  EXPECT_TRUE(failed_with(zero_group_create_local(nullptr, 0, 1, keys.config, &group), ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_DEVICE"));
}

TEST_F(NcclCalls, ARankWithoutItsDeviceTellsTheOthers) {
  const std::string name = fresh_name();
  run_thread_ranks(kRanks, [&](int64_t rank) {
    const NcclConfig keys(rank == 0 ? 1000 : rank % kDevices);
    zero_group *group = nullptr;
    const int32_t status = zero_group_create_local(name.c_str(), rank, kRanks, keys.config, &group);
    EXPECT_TRUE(failed_with(status, rank == 0 ? ZERO_E_DEVICE : ZERO_E_PEER_FAILED, rank == 0 ? "1000" : "rank 0 failed: ZERO_E_DEVICE"));
  });
}

TEST_F(NcclCalls, ReductionsTakeMemoryOfDevicesInTheOrderOfStreams) {
  constexpr float kSum = kRanks * (kRanks + 1) / 2;
  constexpr int64_t kShare = kCount / kRanks;
  run_ranks([](Rank &self) {
    const auto mine = static_cast<float>(self.rank + 1);
    float *data = self.memory(kCount, mine);
    ZERO_EXPECT_OK(zero_group_all_reduce(self.group, data, kCount, data, kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, self.stream));
    EXPECT_EQ(self.seen(data, kCount), all(kCount, kSum));

    float *whole = self.memory(kCount, mine);
    float *share = self.memory(kShare, 0);
    ZERO_EXPECT_OK(zero_group_reduce_scatter(self.group, whole, kCount, share, kShare, ZERO_DTYPE_F32, ZERO_REDUCE_MAX, self.stream));
    EXPECT_EQ(self.seen(share, kShare), all(kShare, kRanks));

    float *sum = self.memory(kCount, 0);
    const int64_t got = self.rank == 0 ? kCount : 0;
    ZERO_EXPECT_OK(zero_group_reduce(self.group, whole, kCount, sum, got, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, 0, self.stream));
    EXPECT_EQ(self.seen(sum, got), all(got, kSum));
  });
}

TEST_F(NcclCalls, MovesTakeMemoryOfDevicesInTheOrderOfStreams) {
  constexpr int64_t kShare = kCount / kRanks;
  run_ranks([](Rank &self) {
    const auto mine = static_cast<float>(self.rank + 1);
    float *whole = self.memory(kCount, 0);
    float *share = self.memory(kShare, mine);
    std::vector<float> gathered;
    for (int64_t rank = 0; rank < kRanks; ++rank) gathered.insert(gathered.end(), kShare, static_cast<float>(rank + 1));
    ZERO_EXPECT_OK(zero_group_all_gather(self.group, share, kShare, whole, kCount, ZERO_DTYPE_F32, self.stream));
    EXPECT_EQ(self.seen(whole, kCount), gathered);

    float *data = self.memory(kCount, mine);
    ZERO_EXPECT_OK(zero_group_broadcast(self.group, data, kCount, ZERO_DTYPE_F32, kRanks - 1, self.stream));
    EXPECT_EQ(self.seen(data, kCount), all(kCount, kRanks));

    float *to = self.memory(kCount, 0);
    ZERO_EXPECT_OK(zero_group_all_to_all(self.group, self.memory(kCount, mine), kCount, to, kCount, ZERO_DTYPE_F32, self.stream));
    EXPECT_EQ(self.seen(to, kCount), gathered);

    const int64_t of_root = self.rank == 0 ? kCount : 0;
    float *root = self.memory(kCount, 0);
    ZERO_EXPECT_OK(zero_group_gather(self.group, self.memory(kShare, mine), kShare, root, of_root, kCount, ZERO_DTYPE_F32, 0, self.stream));
    EXPECT_EQ(self.seen(root, of_root), std::vector<float>(gathered.begin(), gathered.begin() + of_root));
    float *part = self.memory(kShare, 0);
    ZERO_EXPECT_OK(zero_group_scatter(self.group, root, of_root, part, kShare, kCount, ZERO_DTYPE_F32, 0, self.stream));
    EXPECT_EQ(self.seen(part, kShare), all(kShare, mine));
  });
}

#if ZERO_TEST_RANKS > 1
TEST_F(NcclCalls, MessagesTakeMemoryOfDevices) {
  run_ranks([](Rank &self) {
    const int64_t next = (self.rank + 1) % kRanks;
    const int64_t previous = (self.rank + kRanks - 1) % kRanks;
    float *sent = self.memory(kCount, static_cast<float>(self.rank + 1));
    float *got = self.memory(kCount, 0, 0);
    zero_request *request = nullptr;
    ZERO_EXPECT_OK(zero_group_send_async(self.group, sent, kCount, ZERO_DTYPE_F32, next, self.stream, &request));
    ZERO_EXPECT_OK(zero_group_recv(self.group, got, kCount, ZERO_DTYPE_F32, previous, self.stream));
    ZERO_EXPECT_OK(zero_request_wait(request));
    zero_request_release(request);
    EXPECT_EQ(self.seen(got, kCount), all(kCount, static_cast<float>(previous + 1)));
  });
}

/// A rank that is in a collective, or in another message, goes on with those that it has begun.
TEST_F(NcclCalls, MessagesThatHaveBegunGoOnInOtherCalls) {
  constexpr int64_t kMany = 1 << 20;
  run_ranks([](Rank &self) {
    const int64_t next = (self.rank + 1) % kRanks;
    const int64_t previous = (self.rank + kRanks - 1) % kRanks;
    float *sent = self.memory(kMany, static_cast<float>(self.rank + 1));
    const std::vector<float> sent_too = all(kMany, static_cast<float>(self.rank + 1));
    std::vector<float> got(kMany);
    zero_request *requests[2] = {};
    ZERO_EXPECT_OK(zero_group_send_async(self.group, sent, kMany, ZERO_DTYPE_F32, next, self.stream, &requests[0]));
    ZERO_EXPECT_OK(zero_group_send_async(self.group, sent_too.data(), kMany, ZERO_DTYPE_F32, next, self.stream, &requests[1]));
    const auto receive = [&] {
      ZERO_EXPECT_OK(zero_group_recv(self.group, got.data(), kMany, ZERO_DTYPE_F32, previous, self.stream));
      EXPECT_EQ(got, all(kMany, static_cast<float>(previous + 1)));
    };
    receive();
    if (self.rank == 0) receive();
    ZERO_EXPECT_OK(zero_group_barrier(self.group));
    if (self.rank != 0) receive();
    for (zero_request *request : requests) {
      ZERO_EXPECT_OK(zero_request_wait(request));
      zero_request_release(request);
    }
  });
}

TEST_F(NcclCalls, MemoryAndStreamsOfOtherDevicesAreRefusedAndTheGroupGoesOn) {
  run_ranks([](Rank &self) {
    const int64_t elsewhere = (self.rank + 1) % kDevices;
    void *there = caller_alloc(elsewhere, kCount * static_cast<int64_t>(sizeof(float)));
    void *stream = caller_stream_create(elsewhere);
    float *data = self.memory(kCount, 1);
    const auto call = [&](const void *send, void *recv, void *on) {
      return zero_group_all_reduce(self.group, send, kCount, recv, kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, on);
    };
    EXPECT_TRUE(failed_with(call(there, data, self.stream), ZERO_E_INVALID_ARGUMENT, "send is memory of device"));
    EXPECT_TRUE(failed_with(call(data, there, self.stream), ZERO_E_INVALID_ARGUMENT, "recv is memory of device"));
    EXPECT_TRUE(failed_with(call(data, data, stream), ZERO_E_INVALID_ARGUMENT, "stream is one of device"));
    EXPECT_TRUE(
        failed_with(zero_group_broadcast(self.group, there, 1, ZERO_DTYPE_F32, 0, self.stream), ZERO_E_INVALID_ARGUMENT, "data is"));
    ZERO_EXPECT_OK(call(data, data, self.stream));
    EXPECT_EQ(self.seen(data, kCount), all(kCount, kRanks));
    caller_stream_destroy(stream);
    caller_free(there);
  });
}

/// A transfer that never ends, and an abort that hangs: until it comes back memory is not the
/// caller's.
TEST_F(NcclCalls, MemoryOfACallThatFailedIsTheCallersWhenTheGroupIsQuiet) {
  fake_nccl_reset();
  std::barrier together(kRanks);
  run_ranks([&](Rank &self) {
    int64_t quiet = -1;
    float *data = self.memory(kCount, 1);
    ZERO_EXPECT_OK(zero_group_quiet(self.group, &quiet));
    EXPECT_EQ(quiet, 1);
    ZERO_EXPECT_OK(zero_group_set_deadline(self.group, 1000));
    together.arrive_and_wait();
    if (self.rank == 0) {
      fake_nccl_stick(1, 0);
      fake_nccl_hang_abort(fake_nccl_every_rank);
    }
    together.arrive_and_wait();
    const int32_t status = zero_group_all_reduce(self.group, data, kCount, data, kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, self.stream);
    EXPECT_TRUE(failed_with(status, ZERO_E_TIMEOUT, "NCCL has not moved"));
    ZERO_EXPECT_OK(zero_group_quiet(self.group, &quiet));
    EXPECT_EQ(quiet, 0);
    together.arrive_and_wait();
    fake_nccl_release();
    for (int wait = 0; wait < 10'000 && quiet == 0; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ZERO_EXPECT_OK(zero_group_quiet(self.group, &quiet));
    }
    EXPECT_EQ(quiet, 1);
  });
  fake_nccl_reset();
}
#endif

TEST_F(NcclCalls, CapturedStreamsAreRefusedAndNeitherTheGraphNorTheGroupIsLost) {
  run_ranks([](Rank &self) {
    float *data = self.memory(kCount, 1);
    float *copied = self.memory(kCount, 0);
    const auto call = [&] {
      return zero_group_all_reduce(self.group, data, kCount, data, kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, self.stream);
    };
    ZERO_EXPECT_OK(call());
    caller_wait(self.stream);
    caller_capture_begin(self.stream);
    caller_copy(self.stream, copied, data, kCount * static_cast<int64_t>(sizeof(float)), 0);
    EXPECT_TRUE(failed_with(call(), ZERO_E_STATE, "cannot become part of a CUDA graph"));
    EXPECT_TRUE(failed_with(zero_group_broadcast(self.group, data, kCount, ZERO_DTYPE_F32, 0, self.stream), ZERO_E_STATE, "CUDA graph"));
    zero_request *request = nullptr;
    EXPECT_TRUE(failed_with(zero_group_broadcast_async(self.group, data, kCount, ZERO_DTYPE_F32, 0, self.stream, &request), ZERO_E_STATE,
                            "CUDA graph"));
    void *graph = caller_capture_end(self.stream);
    ASSERT_NE(graph, nullptr);
    caller_replay(graph, self.stream);
    caller_wait(self.stream);
    EXPECT_EQ(self.seen(copied, kCount), all(kCount, kRanks));
    caller_graph_destroy(graph);
    ZERO_EXPECT_OK(call());
    EXPECT_EQ(self.seen(data, kCount), all(kCount, kRanks * kRanks));
  });
}

TEST_F(NcclCalls, RequestsAndSplitGroupsTakeMemoryOfDevices) {
  run_ranks([](Rank &self) {
    zero_group *half = nullptr;
    ZERO_ASSERT_OK(zero_group_split(self.group, self.rank % 2, 0, &half));
    float *data = self.memory(kCount, 1);
    float *other = self.memory(kCount, 1);
    zero_request *requests[2] = {};
    ZERO_EXPECT_OK(
        zero_group_all_reduce_async(half, data, kCount, data, kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, self.stream, &requests[0]));
    ZERO_EXPECT_OK(
        zero_group_all_reduce_async(self.group, other, kCount, other, kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, self.stream, &requests[1]));
    for (zero_request *request : requests) {
      ZERO_EXPECT_OK(zero_request_wait(request));
      zero_request_release(request);
    }
    int64_t members = 0;
    ZERO_EXPECT_OK(zero_group_size(half, &members));
    EXPECT_EQ(self.seen(data, kCount), all(kCount, static_cast<float>(members)));
    EXPECT_EQ(self.seen(other, kCount), all(kCount, kRanks));
    zero_group_release(half);
  });
}

TEST_F(NcclCalls, MemoryOfTheHostMovesAsWithoutDevices) {
  run_ranks([](Rank &self) {
    std::vector<float> data(kCount, static_cast<float>(self.rank + 1));
    ZERO_EXPECT_OK(zero_group_all_reduce(self.group, data.data(), kCount, data.data(), kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, nullptr));
    EXPECT_EQ(data, all(kCount, kRanks * (kRanks + 1) / 2));
  });
}

/// Plain gradient descent with rate 1: a step takes the average of all gradients away.
TEST_F(NcclCalls, AnOptimizerOnTheDeviceStepsOverIt) {
  run_ranks([](Rank &self) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      const NcclConfig keys(self.rank % kDevices);
      ZERO_EXPECT_OK(zero_config_set_i64(keys.config, ZERO_KEY_TIER, ZERO_TIER_DEVICE));
      ZERO_EXPECT_OK(zero_config_set_i64(keys.config, ZERO_KEY_STAGE, stage));
      ZERO_EXPECT_OK(zero_config_set_str(keys.config, ZERO_KEY_ALGORITHM, "sgd"));
      ZERO_EXPECT_OK(zero_config_set_f64(keys.config, ZERO_KEY_LR, 1));
      zero_optimizer *optimizer = nullptr;
      ZERO_ASSERT_OK(zero_optimizer_create(self.group, keys.config, &optimizer));
      const int64_t shape = kCount;
      int64_t id = -1;
      ZERO_ASSERT_OK(zero_optimizer_add_param(optimizer, nullptr, "w", ZERO_DTYPE_F32, &shape, 1, &id));
      ZERO_ASSERT_OK(zero_optimizer_seal(optimizer));
      ZERO_ASSERT_OK(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
      const float *gradient = self.memory(kCount, static_cast<float>(2 * self.rank));
      ZERO_ASSERT_OK(zero_optimizer_grad_ready(optimizer, id, gradient, 0, kCount, self.stream));
      ZERO_ASSERT_OK(zero_optimizer_step(optimizer, self.stream, nullptr));
      float *weight = self.memory(kCount, 7);
      void *at = nullptr;
      ZERO_ASSERT_OK(zero_optimizer_param_acquire(optimizer, id, weight, kCount, self.stream, &at));
      caller_wait(self.stream);
      EXPECT_EQ(self.seen(weight, kCount), all(kCount, -static_cast<float>(kRanks - 1))) << "stage " << stage;
      ZERO_EXPECT_OK(zero_optimizer_param_release(optimizer, id));
      zero_optimizer_release(optimizer);
    }
  });
}

}  // namespace
}  // namespace zero::test::nccl_test
