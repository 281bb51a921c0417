/// @file File descriptors that a process needs for its ranks, and the error text if it lacks them.
/// Each case is a child process with its own limit.
#include "many_ranks.h"
#include "tests/group/process_ranks.h"
#include "tests/group/thread_ranks.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace zero::test {
namespace {

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

TEST(DescriptorLimit, WhoLacksDescriptorsToMeetIsToldTheLimitAndMeetsUnderAHigherOne) {
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

TEST(DescriptorLimit, OfOneProcessSealWithoutDescriptors) {
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
TEST(DescriptorLimit, WhoLacksDescriptorsToSealIsToldTheLimitAndSealsUnderAHigherOne) {
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

}  // namespace
}  // namespace zero::test
