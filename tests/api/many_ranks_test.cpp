/// @file Many ranks of one process: they meet, seal, step and go, with the bits of few ranks; and what a process needs of file descriptors
/// for them, with the text when it lacks them.
#include "api_world.h"
#include "tests/group/process_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace zero::test {
namespace {

int64_t crowd_size() { return few_tests() ? 24 : full_tests() ? 1024 : 256; }

/// Tensors of no, one and odd numbers of elements, most of them fewer than there are ranks.
std::vector<int64_t> crowd_counts() {
  std::vector<int64_t> counts(few_tests() ? 50 : 1000);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = static_cast<int64_t>(i % 7 == 0 ? 0 : i % 100 == 1 ? 1031 : i % 23);
  return counts;
}

/// The soft limit of this process on descriptors.
void limit_descriptors(int64_t limit) {
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  now.rlim_cur = limit > 0 ? static_cast<rlim_t>(limit) : now.rlim_max;
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
}

int64_t descriptors_now() {
  int64_t count = 0;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd"); entry != std::filesystem::directory_iterator(); ++entry) ++count;
  return count;
}

int64_t peak_memory_nbytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return -1;
}

zero_group *join_crowd(const std::string &name, int64_t rank, int64_t size) {
  zero_group *group = nullptr;
  EXPECT_EQ(ZERO_OK, zero_group_create_local(name.c_str(), rank, size, nullptr, &group)) << last_text();
  return group;
}

zero_optimizer *crowd_optimizer(zero_group *group, int64_t stage, const std::vector<int64_t> &counts) {
  zero_config *config = nullptr;
  zero_optimizer *optimizer = nullptr;
  EXPECT_EQ(ZERO_OK, zero_config_create(&config));
  EXPECT_EQ(ZERO_OK, zero_config_set_i64(config, ZERO_KEY_STAGE, stage));
  EXPECT_EQ(ZERO_OK, zero_optimizer_create(group, config, &optimizer)) << last_text();
  zero_config_release(config);
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t id = -1;
    EXPECT_EQ(ZERO_OK, zero_optimizer_add_param(optimizer, nullptr, ("t" + std::to_string(i)).c_str(), ZERO_DTYPE_F32, &counts[i], 1, &id));
  }
  return optimizer;
}

/// The mean over any even number of ranks is exact.
void give_gradients(zero_optimizer *optimizer, int64_t rank, int64_t step, const std::vector<int64_t> &counts) {
  std::vector<float> grad;
  for (size_t i = 0; i < counts.size(); ++i) {
    grad.assign(static_cast<size_t>(counts[i]), 0);
    for (size_t at = 0; at < grad.size(); ++at) {
      const auto mean = static_cast<float>((i * 31 + at * 7 + static_cast<size_t>(step)) % 64) / 64 - 0.5F;
      grad[at] = mean + (rank % 2 == 0 ? 0.25F : -0.25F);
    }
    EXPECT_EQ(ZERO_OK, zero_optimizer_grad_ready(optimizer, static_cast<int64_t>(i), grad.data(), 0, counts[i], nullptr)) << last_text();
  }
}

std::vector<float> whole_model(zero_optimizer *optimizer, const std::vector<int64_t> &counts) {
  std::vector<float> model;
  for (size_t i = 0; i < counts.size(); ++i) {
    void *data = nullptr;
    const auto id = static_cast<int64_t>(i);
    EXPECT_EQ(ZERO_OK, zero_optimizer_param_acquire(optimizer, id, nullptr, 0, nullptr, &data)) << last_text();
    const auto *values = static_cast<const float *>(data);
    model.insert(model.end(), values, values + counts[i]);
    EXPECT_EQ(ZERO_OK, zero_optimizer_param_release(optimizer, id)) << last_text();
  }
  return model;
}

/// What the first and the last rank have after three steps.
struct CrowdModels {
  std::vector<float> first;
  std::vector<float> last;
};

CrowdModels train_crowd(int64_t size, int64_t stage) {
  const std::vector<int64_t> counts = crowd_counts();
  const std::string name = "crowd." + std::to_string(::getpid()) + "." + std::to_string(size) + "." + std::to_string(stage);
  CrowdModels models;
  std::barrier all(size);
  run_thread_ranks(size, [&](int64_t rank) {
    zero_group *group = join_crowd(name, rank, size);
    zero_optimizer *optimizer = crowd_optimizer(group, stage, counts);
    all.arrive_and_wait();
    const int64_t before = rank == 0 ? descriptors_now() : 0;
    all.arrive_and_wait();
    ZERO_EXPECT_OK(zero_optimizer_seal(optimizer));
    all.arrive_and_wait();
    if (rank == 0) {
      EXPECT_EQ(descriptors_now(), before) << "an optimizer of threads keeps no descriptors";
    }
    ZERO_EXPECT_OK(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
    for (int64_t step = 0; step < 3; ++step) {
      give_gradients(optimizer, rank, step, counts);
      ZERO_EXPECT_OK(zero_optimizer_step(optimizer, nullptr, nullptr));
    }
    // In stage 3 all ranks gather.
    std::vector<float> model;
    if (stage == 3 || rank == 0 || rank + 1 == size) model = whole_model(optimizer, counts);
    if (rank == 0) models.first = model;
    if (rank + 1 == size) models.last = model;
    zero_optimizer_release(optimizer);
    zero_group_release(group);
  });
  return models;
}

/// Stages 1 and 2: in stage 3 a thousand gathers would be of nothing but waiting.
TEST(ManyRanks, OfOneProcessTrainWithTheBitsOfFewRanks) {
  limit_descriptors(0);
  for (const int64_t stage : {1, 2}) {
    const CrowdModels few = train_crowd(4, stage);
    const CrowdModels many = train_crowd(crowd_size(), stage);
    ASSERT_FALSE(few.first.empty());
    EXPECT_NE(few.first[0], few.first[few.first.size() - 1]);
    EXPECT_EQ(many.first, few.first) << "stage " << stage;
    EXPECT_EQ(many.last, few.first) << "stage " << stage;
  }
  EXPECT_LT(peak_memory_nbytes(), int64_t{6} << 30);
}

/// In a child, whose limit is its own; `body` writes what is wrong.
void in_child(const std::function<std::string()> &body) {
  const ProcessResults results = run_process_ranks(
      1,
      [&](int64_t, int out_fd) {
        const std::string wrong = body();
        write_text(out_fd, wrong);
        return wrong.empty() && !testing::Test::HasFailure() ? 0 : 1;
      },
      120'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

/// Statuses and texts of ranks of one process that meet.
struct Met {
  std::vector<zero_group *> groups;
  std::vector<int32_t> codes;
  std::vector<std::string> texts;
};

Met meet_as_threads(const std::string &name, int64_t size) {
  Met met;
  met.groups.assign(static_cast<size_t>(size), nullptr);
  met.codes.assign(static_cast<size_t>(size), ZERO_OK);
  met.texts.resize(static_cast<size_t>(size));
  run_thread_ranks(size, [&](int64_t rank) {
    zero_config *config = nullptr;
    zero_config_create(&config);
    zero_config_set_i64(config, ZERO_KEY_RENDEZVOUS_MS, 10'000);
    const auto at = static_cast<size_t>(rank);
    met.codes[at] = zero_group_create_local(name.c_str(), rank, size, config, &met.groups[at]);
    met.texts[at] = last_text();
    zero_config_release(config);
  });
  return met;
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST(ManyRanks, WhoLacksDescriptorsToMeetIsToldTheLimitAndMeetsUnderAHigherOne) {
  in_child([]() -> std::string {
    constexpr int64_t kSize = 32;
    const int64_t open = descriptors_now();
    const int64_t limit = open + 2 * kSize;
    limit_descriptors(limit);
    const Met refused = meet_as_threads("refused." + std::to_string(::getpid()), kSize);
    const std::string named = "RLIMIT_NOFILE is " + std::to_string(limit) + "; raise it with ulimit -n";
    int64_t told = 0;
    for (size_t rank = 0; rank < kSize; ++rank) {
      if (refused.codes[rank] == ZERO_OK) return "rank " + std::to_string(rank) + " met the others";
      told += refused.texts[rank].find(named) != std::string::npos ? 1 : 0;
    }
    if (told == 0) return "nobody was told the limit: " + refused.texts[0];
    if (descriptors_now() > open) return "descriptors are left behind";
    limit_descriptors(open + 3 * kSize + 8);
    const Met met = meet_as_threads("met." + std::to_string(::getpid()), kSize);
    for (size_t rank = 0; rank < kSize; ++rank) {
      if (met.codes[rank] != ZERO_OK) return "rank " + std::to_string(rank) + ": " + met.texts[rank];
    }
    if (descriptors_now() > open) return "groups of threads keep descriptors";
    for (zero_group *group : met.groups) zero_group_release(group);
    return "";
  });
}

TEST(ManyRanks, OfOneProcessSealWithoutDescriptors) {
  in_child([]() -> std::string {
    constexpr int64_t kSize = 12;
    const Met met = meet_as_threads("sealed." + std::to_string(::getpid()), kSize);
    limit_descriptors(descriptors_now());
    std::atomic<int64_t> failed{0};
    std::vector<std::string> texts(kSize);
    run_thread_ranks(kSize, [&](int64_t rank) {
      zero_group *group = met.groups[static_cast<size_t>(rank)];
      for (int64_t number = 0; number < 3; ++number) {
        zero_optimizer *optimizer = crowd_optimizer(group, 1, {300, 7, 5000});
        if (zero_optimizer_seal(optimizer) != ZERO_OK || zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL) != ZERO_OK) {
          texts[static_cast<size_t>(rank)] = last_text();
          ++failed;
        }
        zero_optimizer_release(optimizer);
      }
    });
    limit_descriptors(0);
    for (zero_group *group : met.groups) zero_group_release(group);
    return failed == 0 ? "" : texts[0] + texts[1];
  });
}

/// Each rank a process: sealing takes descriptors. Nothing is lost by a seal that lacked them.
TEST(ManyRanks, WhoLacksDescriptorsToSealIsToldTheLimitAndSealsUnderAHigherOne) {
  constexpr int64_t kSize = 4;
  const std::string name = "processes." + std::to_string(::getpid());
  const ProcessResults results = run_process_ranks(
      kSize,
      [&](int64_t rank, int out_fd) {
        zero_group *group = join_crowd(name, rank, kSize);
        zero_optimizer *optimizer = crowd_optimizer(group, 1, {300, 7, 5000});
        const int64_t open = descriptors_now() - 1;
        if (rank == 2) limit_descriptors(open + 6);
        const int32_t refused = zero_optimizer_seal(optimizer);
        std::string text = last_text();
        const std::string named = rank == 2 ? "this process may open only" : "rank 2 failed in zero_optimizer_seal";
        if (refused != (rank == 2 ? ZERO_E_SYSTEM : ZERO_E_PEER_FAILED) || text.find(named) == std::string::npos) {
          write_text(out_fd, "the first seal: " + text);
          return 1;
        }
        if (rank == 2 && text.find("RLIMIT_NOFILE is " + std::to_string(open + 6)) == std::string::npos) {
          write_text(out_fd, "the limit is not named: " + text);
          return 1;
        }
        if (rank == 2) limit_descriptors(0);
        const bool sealed = zero_optimizer_seal(optimizer) == ZERO_OK && zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL) == ZERO_OK;
        if (!sealed) write_text(out_fd, "the second seal: " + last_text());
        zero_optimizer_release(optimizer);
        zero_group_release(group);
        return sealed ? 0 : 1;
      },
      60'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}
#endif

}  // namespace
}  // namespace zero::test
