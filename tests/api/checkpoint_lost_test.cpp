/// @file A rank that is lost in the middle of a save. A program of its own: ranks are processes that are forked before libzero is used.
#include "api_world.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace zero::test::checkpoint_lost_test {
namespace {

constexpr int64_t kCount = 3000;
constexpr int64_t kRanks = 3;

/// Sealed, with one tensor; nullptr after an error.
zero_optimizer *sealed_optimizer(zero_group *group) {
  zero_optimizer *optimizer = nullptr;
  int64_t id = 0;
  const bool made = zero_optimizer_create(group, nullptr, &optimizer) == ZERO_OK &&
                    zero_optimizer_add_param(optimizer, nullptr, "weight", ZERO_DTYPE_F32, &kCount, 1, &id) == ZERO_OK &&
                    zero_optimizer_seal(optimizer) == ZERO_OK;
  return made ? optimizer : nullptr;
}

/// Of one rank; `lost` ends after its first save. The exit code says what went wrong.
int run_rank(const std::string &name, int64_t rank, int64_t lost, const char *folder) {
  zero_group *group = nullptr;
  if (zero_group_create_local(name.c_str(), rank, kRanks, nullptr, &group) != ZERO_OK) return 10;
  zero_optimizer *optimizer = sealed_optimizer(group);
  if (optimizer == nullptr || zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL) != ZERO_OK) return 11;
  if (zero_optimizer_save(optimizer, folder, nullptr) != ZERO_OK) return 12;
  if (rank == lost) return 0;
  const int32_t status = zero_optimizer_save(optimizer, folder, nullptr);
  return status == ZERO_E_PEER_LOST || status == ZERO_E_PEER_LEFT || status == ZERO_E_PEER_FAILED ? 0 : 13;
}

/// The others learn it long before the deadline, and nothing of that save counts.
TEST(CheckpointLost, EndsTheSaveOfAll) {
  for (int64_t lost = 0; lost < kRanks; ++lost) {
    std::string folder = testing::TempDir() + "/zero_lost.XXXXXX";
    ASSERT_NE(nullptr, ::mkdtemp(folder.data()));
    const std::string name = "libzero-lost-" + std::to_string(::getpid()) + "-" + std::to_string(lost);
    std::array<pid_t, kRanks> processes{};
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      processes[static_cast<size_t>(rank)] = ::fork();
      if (processes[static_cast<size_t>(rank)] == 0) ::_exit(run_rank(name, rank, lost, folder.c_str()));
    }
    const auto begun = std::chrono::steady_clock::now();
    for (const pid_t process : processes) {
      int status = 0;
      ASSERT_EQ(process, ::waitpid(process, &status, 0));
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(60));  // the deadline is 600 s
    int64_t committed = 0;
    for (const auto &entry : std::filesystem::directory_iterator(folder)) committed += std::filesystem::exists(entry.path() / "manifest.safetensors") ? 1 : 0;
    EXPECT_EQ(committed, 1);
    std::filesystem::remove_all(folder);
  }
}

}  // namespace
}  // namespace zero::test::checkpoint_lost_test
