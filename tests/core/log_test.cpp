/// @file The log: silent without ZERO_LOG, whole lines with it. The file is opened once per
/// process, so each case is a process.
#include "core/log.h"

#include "tests/group/process_ranks.h"
#include "tests/log_file.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace zero::log_test {
namespace {

using test::LogFile;

void in_child(const std::function<bool()> &body) {
  const auto results = test::run_process_ranks(
      1, [&](int64_t, int) { return body() ? 0 : 1; }, 30'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

/// True when a line goes nowhere: the file, once opened, would stay open.
bool opens_nothing() {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  log_line("nobody reads this");
  return open_files() == before;
}

TEST(Log, IsOffWithoutTheVariableOrWithAnEmptyOne) {
  in_child([] {
    ::unsetenv("ZERO_LOG");
    return opens_nothing();
  });
  in_child([] {
    ::setenv("ZERO_LOG", "", 1);
    return opens_nothing();
  });
}

TEST(Log, IsOffWhenTheFileCannotBeOpened) {
  in_child([] {
    ::setenv("ZERO_LOG", "/nonexistent/folder/log", 1);
    return opens_nothing();
  });
}

TEST(Log, IsOffWhenTheFileIsAPipe) {
  const LogFile file;
  ASSERT_EQ(::mkfifo(file.path(), 0600), 0);
  const int reader = ::open(file.path(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  in_child([&] {
    ::setenv("ZERO_LOG", file.path(), 1);
    return opens_nothing();
  });
  ::close(reader);
}

TEST(Log, LinesHoldTimeProcessThreadAndText) {
  const LogFile file;
  in_child([&] {
    ::setenv("ZERO_LOG", file.path(), 1);
    log_line("rank %d joined", 3);
    log_line("%s", "second");
    return true;
  });
  const auto lines = file.lines();
  ASSERT_EQ(lines.size(), 2U);
  long long seconds = 0;
  int microseconds = 0;
  int process = 0;
  int thread = 0;
  int read = 0;
  ASSERT_EQ(std::sscanf(lines[0].c_str(), "%lld.%6d %d/%d rank 3 joined%n", &seconds, &microseconds, &process, &thread, &read), 4);
  EXPECT_EQ(static_cast<size_t>(read), lines[0].size()) << lines[0];
  EXPECT_GT(seconds, 0);
  EXPECT_EQ(process, thread) << "written by the first thread of the process";
}

TEST(Log, ALongLineIsCutAndEndsWithANewline) {
  const LogFile file;
  in_child([&] {
    ::setenv("ZERO_LOG", file.path(), 1);
    log_line("%s", std::string(10'000, 'x').c_str());
    log_line("next");
    return true;
  });
  const auto lines = file.lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_GT(lines[0].size(), 1'000U);
  EXPECT_LT(lines[0].size(), 1'200U);
  EXPECT_EQ(lines[0].back(), 'x');
}

TEST(Log, LinesOfSeveralProcessesDoNotMix) {
  const LogFile file;
  const auto results = test::run_process_ranks(
      4,
      [&](int64_t rank, int) {
        ::setenv("ZERO_LOG", file.path(), 1);
        for (int i = 0; i < 200; ++i) log_line("%s", std::string(300, static_cast<char>('a' + rank)).c_str());
        return 0;
      },
      30'000);
  ASSERT_TRUE(results.all_exited_with(0)) << results.describe();
  const auto lines = file.lines();
  EXPECT_EQ(lines.size(), 800U);
  for (const std::string &line : lines) {
    const size_t text = line.find(' ', line.find(' ') + 1) + 1;
    ASSERT_EQ(line.substr(text), std::string(300, line[text])) << line;
  }
}

}  // namespace
}  // namespace zero::log_test
