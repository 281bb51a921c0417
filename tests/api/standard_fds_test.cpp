/// @file Programs without some of standard input, output and error: groups, buffers and training
/// have the same results, and what the program prints and reads meanwhile does not reach the
/// library. Knows only the public API.
#include "tests/api/api_world.h"
#include "tests/api/trained_values.h"
#include "tests/group/process_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/standard_fds.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <string>
#include <vector>

namespace zero::test {
namespace {

constexpr int64_t kClosedFdsTimeoutMs = 60'000;

std::string train_as(const std::string &name, int64_t rank, int64_t size) {
  zero_group *group = nullptr;
  if (zero_group_create_local(name.c_str(), rank, size, nullptr, &group) != ZERO_OK) return last_text();
  std::string values = trained_values(group);
  zero_group_release(group);
  return values;
}

/// Returns the text of a body that trains while its process prints to closed descriptors.
template <class Body>
std::string without_standard_fds(int closed, Body &&body) {
  close_standard_fds(closed);
  StubbornPrinter printer(closed);
  std::string text = body();
  const std::string reached = printer.stop();
  if (!reached.empty()) text += "; printed: " + reached;
  if (closed_standard_fds() != closed) text += "; now closed: " + std::to_string(closed_standard_fds());
  return text;
}

/// Ranks as threads of one process.
std::vector<std::string> as_threads(int closed, int64_t size) {
  const std::string name = "closed_fds." + std::to_string(::getpid()) + "." + std::to_string(closed);
  const auto run = [&](int64_t, int out_fd) {
    write_text(out_fd, without_standard_fds(closed, [&] {
                 std::vector<std::string> texts(static_cast<size_t>(size));
                 run_thread_ranks(size, [&](int64_t rank) { texts[static_cast<size_t>(rank)] = train_as(name, rank, size); });
                 std::string all;
                 for (const std::string &text : texts) all += text + "\n";
                 return all;
               }));
    return 0;
  };
  const ProcessResults results = run_process_ranks(1, run, kClosedFdsTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  return results.texts;
}

std::vector<std::string> as_processes(int closed, int64_t size) {
  const std::string name = "closed_fds." + std::to_string(::getpid()) + "." + std::to_string(closed);
  const auto run = [&](int64_t rank, int out_fd) {
    write_text(out_fd, without_standard_fds(closed, [&] { return train_as(name, rank, size); }));
    return 0;
  };
  const ProcessResults results = run_process_ranks(size, run, kClosedFdsTimeoutMs);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  return results.texts;
}

TEST(ClosedStandardFds, RanksAsThreadsTrainAlikeAndKeepAway) {
  const std::vector<std::string> wanted = as_threads(0, 3);
  ASSERT_EQ(wanted[0].substr(0, 8), "trained ") << wanted[0];
  for (int closed = 1; closed < kStandardFdSets; ++closed) EXPECT_EQ(as_threads(closed, 3), wanted) << "closed: " << closed;
}

TEST(ClosedStandardFds, RanksAsProcessesTrainAlikeAndKeepAway) {
  const std::vector<std::string> wanted = as_processes(0, 3);
  ASSERT_EQ(wanted[0].substr(0, 8), "trained ") << wanted[0];
  for (int closed = 1; closed < kStandardFdSets; ++closed) EXPECT_EQ(as_processes(closed, 3), wanted) << "closed: " << closed;
}

}  // namespace
}  // namespace zero::test
