/// @file Makes allocations of libzero fail one after the other, once and permanently, in a whole
/// run from creation to release. There is no crash, no hang and no leak, and a rank whose peer
/// failed gets an error.
#include "allocation_faults.h"
#include "api_world.h"
#include "holdings.h"
#include "tests/sizes.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

namespace zero::test::oom_test {
namespace {

constexpr int64_t kCount = 600;
/// Runs that must succeed have a long deadline, because the machine may be busy. The others have a
/// short one, the cost of a lost rank.
constexpr int64_t kLongMs = 30'000;
constexpr int64_t kShortMs = 1000;

/// The result of one rank's run.
struct Outcome {
  int32_t status = ZERO_OK;  ///< the first error
  int calls = 0;             ///< calls that succeeded
  int last_collective = 0;   ///< calls that had succeeded when the last collective succeeded
  std::string text;
};

/// A folder of this process.
std::string scratch_folder() {
  const std::string path = testing::TempDir() + "/zero_oom." + std::to_string(::getpid());
  std::filesystem::create_directories(path);
  return path;
}

/// One rank from creation to release. After the first error other calls are skipped, but never
/// releases.
class Run {
 public:
  Run(int64_t rank, int64_t size, const std::string &name, int64_t deadline_ms) {
    zero_config *config = nullptr;
    if (go(zero_config_create(&config)) && go(zero_config_set_i64(config, ZERO_KEY_DEADLINE_MS, deadline_ms)) &&
        go(zero_config_set_i64(config, ZERO_KEY_RENDEZVOUS_MS, deadline_ms)) && go(zero_config_set_i64(config, ZERO_KEY_STAGE, 3)) &&
        go(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "adam")) &&
        go(zero_group_create_local(name.c_str(), rank, size, config, &group_))) {
      buffer(config);
      optimizer(config);
      plain_files();
    }
    zero_checkpoint_release(checkpoint_);
    zero_optimizer_release(optimizer_);
    zero_buffer_release(buffer_);
    zero_group_release(group_);
    zero_config_release(config);
  }

  Outcome outcome;

 private:
  bool go(int32_t status) {
    if (outcome.status != ZERO_OK) return false;
    if (status == ZERO_OK) {
      ++outcome.calls;
      return true;
    }
    outcome.status = status;
    outcome.text = last_text();
    return false;
  }

  bool collective(int32_t status) {
    if (!go(status)) return false;
    outcome.last_collective = outcome.calls;
    return true;
  }

  void buffer(const zero_config *config) {
    std::array<float, kCount> data{};
    void *whole = nullptr;
    zero_request *request = nullptr;
    if (!collective(zero_buffer_create(group_, config, ZERO_DTYPE_F32, kCount, &buffer_))) return;
    if (!collective(zero_buffer_write(buffer_, 0, data.data(), kCount, nullptr))) return;
    if (!collective(zero_buffer_whole_acquire(buffer_, nullptr, &whole)) || !go(zero_buffer_whole_release(buffer_))) return;
    if (go(zero_group_barrier_async(group_, &request))) collective(zero_request_wait(request));
    zero_request_release(request);
  }

  void optimizer(const zero_config *config) {
    if (outcome.status != ZERO_OK || !go(zero_optimizer_create(group_, config, &optimizer_))) return;
    for (const char *name : {"first", "second"}) {
      int64_t id = -1;
      if (!go(zero_optimizer_add_param(optimizer_, nullptr, name, ZERO_DTYPE_F32, &kCount, 1, &id))) return;
    }
    if (!collective(zero_optimizer_seal(optimizer_)) || !collective(zero_optimizer_begin(optimizer_, ZERO_SOURCE_ROOT))) return;
    for (int step = 0; step < 2; ++step) {
      for (int64_t id = 0; id < 2; ++id) {
        void *data = nullptr;
        int64_t accumulate = 0;
        if (!collective(zero_optimizer_param_acquire(optimizer_, id, nullptr, 0, nullptr, &data))) return;
        if (!go(zero_optimizer_grad_acquire(optimizer_, id, nullptr, &data, &accumulate))) return;
        std::fill_n(static_cast<float *>(data), kCount, 1.0F);
        if (!go(zero_optimizer_grad_ready(optimizer_, id, nullptr, 0, kCount, nullptr))) return;
        if (!go(zero_optimizer_param_release(optimizer_, id))) return;
      }
      if (!collective(zero_optimizer_step(optimizer_, nullptr, nullptr))) return;
    }
  }

  /// Exports parameters, and loads them again.
  void plain_files() {
    const std::string path = scratch_folder() + "/model.safetensors";
    if (!go(zero_checkpoint_create(group_, nullptr, &checkpoint_)) || !go(zero_checkpoint_add_optimizer(checkpoint_, "", optimizer_))) return;
    if (!collective(zero_checkpoint_export(checkpoint_, path.c_str(), ZERO_DTYPE_BF16, nullptr, nullptr))) return;
    collective(zero_checkpoint_load(checkpoint_, path.c_str(), ZERO_PART_PARAMS, nullptr, nullptr));
  }

  zero_group *group_ = nullptr;
  zero_buffer *buffer_ = nullptr;
  zero_optimizer *optimizer_ = nullptr;
  zero_checkpoint *checkpoint_ = nullptr;
};

/// Runs all ranks while the index-th request fails, and returns their results.
std::vector<Outcome> run_ranks(int64_t size, int64_t index, bool always, int64_t *out_requests) {
  static int counter = 0;
  const std::string name = "libzero-oom-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
  std::vector<Outcome> outcomes(static_cast<size_t>(size));
  const int64_t deadline_ms = index < 0 ? kLongMs : kShortMs;
  allocation_faults_begin(index, always ? 1 : 0);
  {
    std::vector<std::jthread> threads;
    for (int64_t rank = 1; rank < size; ++rank) {
      threads.emplace_back([&, rank] { outcomes[static_cast<size_t>(rank)] = Run(rank, size, name, deadline_ms).outcome; });
    }
    outcomes[0] = Run(0, size, name, deadline_ms).outcome;
  }
  *out_requests = allocation_faults_end();
  return outcomes;
}

struct Tally {
  int64_t runs = 0;
  int64_t failed = 0;
  int64_t slowest_ms = 0;
};

void check_outcomes(const std::vector<Outcome> &outcomes, int64_t index, bool always, Tally &tally) {
  const int all_collectives = std::max_element(outcomes.begin(), outcomes.end(), [](const Outcome &a, const Outcome &b) {
                                return a.last_collective < b.last_collective;
                              })->last_collective;
  bool some_failed = false;
  bool one_missed_a_collective = false;
  for (const Outcome &outcome : outcomes) {
    if (outcome.status == ZERO_OK) continue;
    some_failed = true;
    one_missed_a_collective |= outcome.last_collective < all_collectives;
    EXPECT_FALSE(outcome.text.empty());
    EXPECT_NE(ZERO_E_INTERNAL, outcome.status) << "request " << index << (always ? " and later" : "") << ": " << outcome.text;
    EXPECT_NE(ZERO_E_BAD_HANDLE, outcome.status) << outcome.text;
  }
  ++tally.runs;
  tally.failed += some_failed;
  // If a rank completed all calls, none of its peers may have missed a collective.
  if (!one_missed_a_collective) return;
  for (const Outcome &outcome : outcomes) {
    EXPECT_NE(ZERO_OK, outcome.status) << "request " << index << (always ? " and later" : "")
                                       << " failed on another rank, and this one does not know";
  }
}

/// Fails every stride-th request of a run.
void run_series(int64_t size, int64_t requests, int64_t stride, bool always, Tally &tally) {
  for (int64_t index = 0; index < requests; index += stride) {
    int64_t seen = 0;
    const auto begin = std::chrono::steady_clock::now();
    check_outcomes(run_ranks(size, index, always, &seen), index, always, tally);
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
    tally.slowest_ms = std::max<int64_t>(tally.slowest_ms, passed);
  }
}

/// Growth of resources after a whole series of failures.
struct Growth {
  int64_t files;
  int64_t maps;
  int64_t heap_nbytes;
};

/// Caches keep a bounded number of blocks, which varies a little between series.
constexpr int64_t kCachedNbytes = 512;

/// Caches may still fill in the first series; a leak grows in each series.
Growth growth_of_series(int64_t size, int64_t requests, int64_t stride, Tally &tally) {
  Growth growth{};
  for (int series = 0; series < 4; ++series) {
    const Holdings before;
    for (const bool always : {false, true}) run_series(size, requests, stride, always, tally);
    const Holdings after;
    growth = {after.files - before.files, after.maps - before.maps, after.heap_nbytes - before.heap_nbytes};
    if (growth.heap_nbytes < kCachedNbytes) break;
  }
  return growth;
}

class OutOfMemory : public testing::TestWithParam<int64_t> {};

TEST_P(OutOfMemory, EveryAllocationMayFail) {
  const int64_t size = GetParam();
  int64_t cold = 0;
  int64_t warm = 0;
  for (const Outcome &outcome : run_ranks(size, -1, false, &cold)) ASSERT_EQ(ZERO_OK, outcome.status) << outcome.text;
  for (const Outcome &outcome : run_ranks(size, -1, false, &warm)) ASSERT_EQ(ZERO_OK, outcome.status) << outcome.text;
  ASSERT_GT(warm, 0);
  const bool full = full_tests();
  const int64_t stride = full ? 1 : std::max<int64_t>(1, warm / 24);

  Tally tally;
  for (const bool always : {false, true}) run_series(size, warm, stride, always, tally);
  const Growth growth = growth_of_series(size, warm, stride, tally);
  std::printf(
      "ranks = %lld, requests of a first run = %lld, of a later one = %lld, runs = %lld, runs with an error = %lld, slowest = %lld ms, "
      "growth: files %lld, mappings %lld, heap %lld bytes\n",
      static_cast<long long>(size), static_cast<long long>(cold), static_cast<long long>(warm), static_cast<long long>(tally.runs),
      static_cast<long long>(tally.failed), static_cast<long long>(tally.slowest_ms), static_cast<long long>(growth.files),
      static_cast<long long>(growth.maps), static_cast<long long>(growth.heap_nbytes));
  EXPECT_EQ(0, growth.files);
  EXPECT_EQ(0, growth.maps);
  // A leak of one byte, which takes a block of 32, in one of three runs would exceed the limit.
  EXPECT_LT(growth.heap_nbytes, kCachedNbytes);
  EXPECT_GT(tally.failed, 0);

  for (const Outcome &outcome : run_ranks(size, -1, false, &warm)) EXPECT_EQ(ZERO_OK, outcome.status) << outcome.text;
  std::filesystem::remove_all(scratch_folder());
}

INSTANTIATE_TEST_SUITE_P(Ranks, OutOfMemory, testing::Values(1, 2));

TEST(OutOfMemoryAtFirst, TheMpiModuleIsAbsentWhereThereIsNoMemoryToLoadIt) {
  allocation_faults_begin(0, 1);
  const int64_t has = zero_has_feature(ZERO_FEATURE_MPI);
  allocation_faults_end();
  EXPECT_EQ(has, 0);
}

/// The first run of a process, before caches, pools and the table of handles exist.
TEST(OutOfMemoryAtFirst, ACreationThatFailedLeavesNothingBehind) {
  zero_config *config = nullptr;
  allocation_faults_begin(0, 1);
  const int32_t status = zero_config_create(&config);
  allocation_faults_end();
  EXPECT_TRUE(failed_with(status, ZERO_E_OUT_OF_MEMORY, ""));
  EXPECT_FALSE(last_text().empty());
  EXPECT_EQ(nullptr, config);
  ZERO_ASSERT_OK(zero_config_create(&config));
  zero_config_release(config);
}

}  // namespace
}  // namespace zero::test::oom_test
