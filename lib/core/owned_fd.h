/// @file OwnedFd: a file descriptor with one owner, and the one way in which the library comes to descriptors: none of them is ever 0, 1
/// or 2. Knows nothing of what they are.
#pragma once

#include <utility>

namespace zero {

/// A file descriptor that is closed with its owner.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) noexcept : fd_(fd) {}
  OwnedFd(OwnedFd &&other) noexcept : fd_(other.release()) {}
  OwnedFd &operator=(OwnedFd &&other) noexcept {
    reset(other.release());
    return *this;
  }
  ~OwnedFd() { reset(-1); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd) noexcept;

 private:
  int fd_ = -1;
};

/// While one lives, 0, 1 and 2 are taken, so that nothing that is opened meanwhile becomes the standard input, output or error of a
/// program that has closed them: what it prints would land there. They are taken by descriptors that are good for nothing (O_PATH):
/// reading and writing fails with EBADF, as with closed ones. With the last holder they are closed again. Does not change errno.
class StandardFdsHeld {
 public:
  StandardFdsHeld() noexcept;
  StandardFdsHeld(const StandardFdsHeld &) = delete;
  ~StandardFdsHeld();
};

/// `fd`, or a duplicate above 2 in its place (-1 and errno when there is none): where 0, 1 and 2 could not be held.
int above_standard_fds(int fd) noexcept;

/// What `open` opens. Every call that makes a descriptor is made through here; the laws of the layers see to it. Invalid, with the call's
/// errno, when it fails.
template <class Open>
OwnedFd open_fd(Open open) {
  const StandardFdsHeld held;
  return OwnedFd(above_standard_fds(open()));
}

/// Another descriptor of the same file.
OwnedFd duplicate(int fd) noexcept;

}  // namespace zero
