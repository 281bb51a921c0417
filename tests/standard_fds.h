/// @file A program that has closed some of its standard input, output and error and goes on printing: what a library opens must not come to
/// lie there. Knows nothing of libzero.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

namespace zero::test {

/// Bit i stands for descriptor i.
inline constexpr int kStandardFdSets = 8;

inline void close_standard_fds(int closed) {
  for (int fd = 0; fd < 3; ++fd) {
    if ((closed >> fd & 1) != 0) ::close(fd);
  }
}

/// Which of 0, 1 and 2 are closed.
inline int closed_standard_fds() {
  int closed = 0;
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) closed |= 1 << fd;
  }
  return closed;
}

/// The part of a program that prints although there is nothing to print to: all the time, on a thread of its own. It does not read: the C
/// library's malloc itself reads a file of the system's once, when it first gives back memory of a thread, and any number may be free then.
class StubbornPrinter {
 public:
  explicit StubbornPrinter(int closed) : closed_(closed) {
    ::signal(SIGPIPE, SIG_IGN);
    thread_ = std::thread([this] { run(); });
  }
  StubbornPrinter(const StubbornPrinter &) = delete;
  ~StubbornPrinter() { stop(); }

  /// What it reached; empty when every try has failed as on a closed descriptor.
  std::string stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
    return reached_;
  }

 private:
  void run() {
    while (!stopped_) {
      for (int fd = 0; fd < 3; ++fd) {
        if ((closed_ >> fd & 1) == 0) continue;
        const char byte = 'x';
        note(::write(fd, &byte, 1), fd);
      }
      ::sched_yield();
    }
  }

  void note(ssize_t result, int fd) {
    if (!reached_.empty() || (result < 0 && errno == EBADF)) return;
    const std::string outcome = result < 0 ? std::strerror(errno) : "done";
    char file[256] = "";
    if (::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), file, sizeof file - 1) < 0) file[0] = '\0';
    reached_ = "write to " + std::to_string(fd) + ": " + outcome + ", " + file;
  }

  int closed_;
  std::atomic<bool> stopped_{false};
  std::string reached_;  ///< the thread's until it has ended
  std::thread thread_;
};

}  // namespace zero::test
