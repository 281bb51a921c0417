/// @file A rank that is lost in the middle of a save or an export. A program of its own: ranks are
/// processes that are forked before libzero is used.
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

/// A call of all ranks that writes into a folder.
using Write = int32_t (*)(zero_group *group, zero_optimizer *optimizer, const char *folder);

int32_t save(zero_group *, zero_optimizer *optimizer, const char *folder) { return zero_optimizer_save(optimizer, folder, nullptr); }

std::string exported_file(const char *folder) { return std::string(folder) + "/model.safetensors"; }

int32_t export_params(zero_group *group, zero_optimizer *optimizer, const char *folder) {
  zero_checkpoint *checkpoint = nullptr;
  int32_t status = zero_checkpoint_create(group, nullptr, &checkpoint);
  if (status == ZERO_OK) status = zero_checkpoint_add_optimizer(checkpoint, "", optimizer);
  if (status == ZERO_OK) status = zero_checkpoint_export(checkpoint, exported_file(folder).c_str(), ZERO_EXPORT_AS_KEPT, nullptr, nullptr);
  zero_checkpoint_release(checkpoint);
  return status;
}

/// One rank; `lost` ends after its first call. The exit code says what went wrong.
int run_rank(const std::string &name, int64_t rank, int64_t lost, const char *folder, Write write) {
  zero_group *group = nullptr;
  if (zero_group_create_local(name.c_str(), rank, kRanks, nullptr, &group) != ZERO_OK) return 10;
  zero_optimizer *optimizer = sealed_optimizer(group);
  if (optimizer == nullptr || zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL) != ZERO_OK) return 11;
  if (write(group, optimizer, folder) != ZERO_OK) return 12;
  if (rank == lost) return 0;
  const int32_t status = write(group, optimizer, folder);
  return status == ZERO_E_PEER_LOST || status == ZERO_E_PEER_LEFT || status == ZERO_E_PEER_FAILED ? 0 : 13;
}

/// All ranks of a world in which one is lost between two calls: the others learn it long before the
/// deadline.
void lose_one(int64_t lost, const char *folder, Write write) {
  static int64_t worlds = 0;
  const std::string name = "libzero-lost-" + std::to_string(::getpid()) + "-" + std::to_string(++worlds);
  std::array<pid_t, kRanks> processes{};
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    processes[static_cast<size_t>(rank)] = ::fork();
    if (processes[static_cast<size_t>(rank)] == 0) ::_exit(run_rank(name, rank, lost, folder, write));
  }
  const auto begun = std::chrono::steady_clock::now();
  for (const pid_t process : processes) {
    int status = 0;
    ASSERT_EQ(process, ::waitpid(process, &status, 0));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(60));  // the deadline is 600 s
}

/// Nothing of the save counts that the rank did not take part in.
TEST(CheckpointLost, EndsTheSaveOfAll) {
  for (int64_t lost = 0; lost < kRanks; ++lost) {
    std::string folder = testing::TempDir() + "/zero_lost.XXXXXX";
    ASSERT_NE(nullptr, ::mkdtemp(folder.data()));
    lose_one(lost, folder.c_str(), save);
    int64_t committed = 0;
    for (const auto &entry : std::filesystem::directory_iterator(folder)) committed += std::filesystem::exists(entry.path() / "manifest.safetensors") ? 1 : 0;
    EXPECT_EQ(committed, 1);
    std::filesystem::remove_all(folder);
  }
}

/// The file of the first export stays, whole.
TEST(CheckpointLost, EndsTheExportOfAll) {
  for (int64_t lost = 0; lost < kRanks; ++lost) {
    std::string folder = testing::TempDir() + "/zero_lost.XXXXXX";
    ASSERT_NE(nullptr, ::mkdtemp(folder.data()));
    lose_one(lost, folder.c_str(), export_params);
    EXPECT_EQ(std::filesystem::file_size(exported_file(folder.c_str())), static_cast<uintmax_t>(4096 + 4 * kCount));
    std::filesystem::remove_all(folder);
  }
}

}  // namespace
}  // namespace zero::test::checkpoint_lost_test
