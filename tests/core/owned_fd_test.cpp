/// @file OwnedFd: a descriptor is closed once, by its last owner, and a new descriptor is never 0,
/// 1 or 2.
#include "core/owned_fd.h"

#include "tests/group/process_ranks.h"
#include "tests/standard_fds.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace zero::owned_fd_test {
namespace {

int open_one() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(OwnedFd, IsClosedWithItsOwner) {
  const int fd = open_one();
  ASSERT_TRUE(is_open(fd));
  {
    const OwnedFd owner(fd);
    EXPECT_TRUE(owner.valid());
    EXPECT_EQ(owner.get(), fd);
  }
  EXPECT_FALSE(is_open(fd));
  EXPECT_FALSE(OwnedFd().valid());
}

TEST(OwnedFd, WhatIsTakenOverBelongsToTheNewOwnerAlone) {
  const int first = open_one();
  const int second = open_one();
  OwnedFd owner(first);
  OwnedFd other(second);
  owner = std::move(other);
  EXPECT_FALSE(is_open(first));
  EXPECT_EQ(owner.get(), second);
  const OwnedFd last(std::move(owner));
  EXPECT_TRUE(is_open(second));
  EXPECT_EQ(last.get(), second);
}

TEST(OwnedFd, WhatIsReleasedStaysOpen) {
  const int fd = open_one();
  {
    OwnedFd owner(fd);
    EXPECT_EQ(owner.release(), fd);
    EXPECT_FALSE(owner.valid());
  }
  ASSERT_TRUE(is_open(fd));
  OwnedFd again(fd);
  again.reset(-1);
  EXPECT_FALSE(is_open(fd));
}

/// In a process of its own: closing these would silence the test.
TEST(OwnedFd, WhatIsOpenedIsNoStandardStreamEvenWhereTheseAreClosed) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    const OwnedFd first = open_fd(open_one);
    const OwnedFd second = duplicate(first.get());
    const bool above = first.get() > 2 && second.get() > 2;
    ::_exit(above && !is_open(0) && !is_open(1) && !is_open(2) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// Runs `body` in a process with these of 0, 1 and 2 closed; it returns what went wrong.
template <class Body>
void expect_right_without(int closed, Body &&body) {
  const auto run = [&](int64_t, int out_fd) {
    test::close_standard_fds(closed);
    test::write_text(out_fd, body());
    return 0;
  };
  const test::ProcessResults results = test::run_process_ranks(1, run, 60'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  EXPECT_EQ(results.texts[0], "") << "closed: " << closed;
}

std::string open_several(int closed) {
  std::vector<OwnedFd> opened;
  for (int i = 0; i < 3; ++i) {
    opened.push_back(open_fd(open_one));
    opened.push_back(open_fd([] { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }));
    opened.push_back(duplicate(opened.front().get()));
  }
  std::string wrong;
  for (const OwnedFd &fd : opened) {
    if (fd.get() < 3) wrong += "opened " + std::to_string(fd.get()) + "; ";
  }
  if (test::closed_standard_fds() != closed) wrong += "now closed: " + std::to_string(test::closed_standard_fds());
  return wrong;
}

TEST(OwnedFd, WhatIsOpenedIsNoStandardDescriptorAndThoseStayClosed) {
  for (int closed = 0; closed < test::kStandardFdSets; ++closed) {
    expect_right_without(closed, [closed] { return open_several(closed); });
  }
}

TEST(OwnedFd, WhatPrintsMeanwhileReachesNothing) {
  expect_right_without(7, [] {
    test::StubbornPrinter printer(7);
    for (int i = 0; i < 20'000; ++i) open_fd(open_one);
    return printer.stop();
  });
}

TEST(OwnedFd, AnOpenThatFailsTellsItsReason) {
  expect_right_without(7, [] {
    const OwnedFd fd = open_fd([] { return ::open("/nowhere", O_RDONLY | O_CLOEXEC); });
    const int reason = errno;
    return std::string(fd.valid() || reason != ENOENT ? std::to_string(reason) : "");
  });
}

TEST(OwnedFd, WhatIsLowAllTheSameIsMoved) {
  expect_right_without(7, [] {
    const int low = open_one();
    const OwnedFd moved(above_standard_fds(low));
    return std::string(low == 0 && moved.get() >= 3 && test::closed_standard_fds() == 7 ? "" : "low, moved or closed is wrong");
  });
}

TEST(OwnedFd, WhatTheProgramPutsInAHeldPlaceStays) {
  expect_right_without(7, [] {
    {
      const StandardFdsHeld outer;
      const StandardFdsHeld inner;
      const OwnedFd file = open_fd(open_one);
      ::dup2(file.get(), 1);
    }
    return std::string(test::closed_standard_fds() == 5 ? "" : "closed: " + std::to_string(test::closed_standard_fds()));
  });
}

}  // namespace
}  // namespace zero::owned_fd_test
