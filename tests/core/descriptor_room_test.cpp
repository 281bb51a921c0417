/// @file Room for file descriptors: what is free below the limit, and texts that name it.
#include "core/descriptor_room.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace zero::test {
namespace {

/// Lowers the limit while it lives.
class LoweredLimit {
 public:
  explicit LoweredLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lowered{limit, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &lowered), 0);
  }
  LoweredLimit(const LoweredLimit &) = delete;
  ~LoweredLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

int64_t opened_until_refused() {
  std::vector<int> opened;
  for (int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) opened.push_back(fd);
  for (const int fd : opened) ::close(fd);
  return static_cast<int64_t>(opened.size());
}

TEST(DescriptorRoom, IsWhatCanBeOpenedUntilTheSystemRefuses) {
  for (const rlim_t limit : {20U, 64U, 100U, 129U, 300U}) {
    const LoweredLimit lowered(limit);
    const int64_t free = opened_until_refused();
    EXPECT_EQ(free_descriptors(100'000), free) << "limit " << limit;
    EXPECT_EQ(free_descriptors(free / 2), free / 2);
    EXPECT_TRUE(check_descriptors(free, "none lacks").ok());
    const Status lacks = check_descriptors(free + 1, "too few");
    EXPECT_EQ(lacks.code(), ZERO_E_SYSTEM);
    EXPECT_EQ(std::string(lacks.text()), "too few: " + std::to_string(free + 1) + " more are needed, but this process may open only " +
                                             std::to_string(free) + " (RLIMIT_NOFILE is " + std::to_string(limit) +
                                             "; raise it with ulimit -n)");
  }
}

TEST(DescriptorRoom, TakesNoneItself) {
  const LoweredLimit lowered(0);
  EXPECT_EQ(free_descriptors(10), 0);
}

TEST(DescriptorRoom, TheErrorOfTheSystemNamesTheLimit) {
  const LoweredLimit lowered(50);
  EXPECT_NE(system_error_text(EMFILE).find("RLIMIT_NOFILE is 50"), std::string::npos);
  EXPECT_EQ(system_error_text(ENOENT).find("RLIMIT_NOFILE"), std::string::npos);
}

}  // namespace
}  // namespace zero::test
