/// @file The fork guard: quiet in the first process, true in every child of it.
#include "core/fork_guard.h"

#include "core/frame_cache.h"
#include "tests/core/failures.h"
#include "tests/group/process_ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

namespace zero::fork_guard_test {
namespace {

// Each test uses a child as the "first process", so that the guard is not made in the test program
// itself.
TEST(ForkGuard, ChildrenAndGrandchildrenAreForked) {
  const auto results = test::run_process_ranks(
      1,
      [](int64_t, int) {
        if (forked() || forked()) return 1;
        const auto children = test::run_process_ranks(
            1,
            [](int64_t, int) {
              const auto grandchildren = test::run_process_ranks(
                  1, [](int64_t, int) { return forked() ? 7 : 0; }, 10'000);
              return forked() && grandchildren.all_exited_with(7) ? 7 : 0;
            },
            20'000);
        return children.all_exited_with(7) && !forked() ? 0 : 2;
      },
      30'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST(ForkGuard, AProcessThatForksBeforeItsFirstUseIsNotForked) {
  const auto results = test::run_process_ranks(
      2, [](int64_t, int) { return forked() ? 1 : 0; }, 30'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST(ForkGuard, SaysNothingWhereTheSystemHasNoSuchPages) {
  const auto results = test::run_process_ranks(
      1,
      [](int64_t, int) {
        const test::FailingCall failing(test::SystemCall::madvise, 1);
        if (forked()) return 1;
        const auto children = test::run_process_ranks(
            1, [](int64_t, int) { return forked() ? 1 : 0; }, 10'000);
        return children.all_exited_with(0) ? 0 : 2;
      },
      30'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

/// Forks while another thread holds the lock of the cache of frames, which no thread of the child
/// ever lets go.
int fork_while_caches_change() {
  if (forked()) return 1;
  cached_free(cached_allocate(100), 100);
  std::atomic<bool> held{false};
  std::thread holder([&held] {
    const test::HangingNew hanging(&held);
    for (;;) reserve_frame_cache();
  });
  holder.detach();
  while (!held) std::this_thread::yield();
  const auto children = test::run_process_ranks(
      1, [](int64_t, int) -> int { std::exit(7); }, 5'000);
  return children.all_exited_with(7) ? 0 : 2;
}

TEST(ForkGuard, AChildEndsWhateverTheParentsThreadsHeld) {
  const auto results = test::run_process_ranks(
      1, [](int64_t, int) { return fork_while_caches_change(); }, 30'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

}  // namespace
}  // namespace zero::fork_guard_test
