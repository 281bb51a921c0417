/// @file OwnedFd: a file descriptor with one owner, and the only way in which the library opens
/// descriptors. None of them is ever 0, 1 or 2. Knows nothing of the files.
#pragma once

#include <utility>

namespace zero {

/// A file descriptor that is closed when its owner is destroyed.
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

/// Keeps 0, 1 and 2 taken during its lifetime. Otherwise a new descriptor could become the standard
/// input, output or error of a program that has closed them, and receive the program's output.
/// Closed numbers are taken by O_PATH descriptors, on which reading and writing fails with EBADF,
/// as on closed ones. The last holder closes them again. Does not change errno.
class StandardFdsHeld {
 public:
  StandardFdsHeld() noexcept;
  StandardFdsHeld(const StandardFdsHeld &) = delete;
  ~StandardFdsHeld();
};

/// Returns `fd`, or if it is below 3 a duplicate above 2 in its place (-1 and errno if there is
/// none). Needed if 0, 1 and 2 could not be held.
int above_standard_fds(int fd) noexcept;

/// Returns the descriptor that `open` opens. Every call that creates a descriptor goes through
/// here, as the laws of the layers require. Invalid, with the call's errno, if it fails.
template <class Open>
OwnedFd open_fd(Open open) {
  const StandardFdsHeld held;
  return OwnedFd(above_standard_fds(open()));
}

/// Returns another descriptor of the same file.
OwnedFd duplicate(int fd) noexcept;

}  // namespace zero
