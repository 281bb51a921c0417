/// @file OwnedFd: a descriptor is closed once, by whoever owned it last.
#include "core/owned_fd.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <utility>

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

}  // namespace
}  // namespace zero::owned_fd_test
