/// @file OwnedFd: a file descriptor with one owner. Knows nothing of what it is.
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

}  // namespace zero
