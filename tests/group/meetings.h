/// @file What tests of the rendezvous share: ranks that try to meet, and bare sockets of those who are none.
/// Knows sockets and ranks, not groups.
#pragma once

#include "core/clock.h"
#include "group/local/rendezvous.h"
#include "group/local/rendezvous_socket.h"
#include "tests/fresh_number.h"
#include "tests/group/thread_ranks.h"
#include "tests/group/transport_driver.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace zero::test {

inline std::string fresh_name() { return "meeting." + std::to_string(fresh_number()); }

inline int64_t open_descriptors() {
  int64_t count = 0;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

/// While it lives, this process can open no more files, or so many more.
class NoMoreFiles {
 public:
  explicit NoMoreFiles(int more = 0) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    int past = 0;
    for (; more > 0; ++past) more -= ::fcntl(past, F_GETFD) < 0 ? 1 : 0;
    const rlimit limit{static_cast<rlim_t>(past), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

inline Joiner joiner_with(const std::string &text) {
  Joiner joiner;
  const auto bytes = std::as_bytes(std::span(text));
  joiner.blob.assign(bytes.begin(), bytes.end());
  return joiner;
}

inline std::string text_of(const Joiner &joiner) { return {reinterpret_cast<const char *>(joiner.blob.data()), joiner.blob.size()}; }

inline MeetingTerms terms_of(std::string name, int64_t rank, int64_t size, int64_t deadline_ms = 20'000) {
  return {.name = std::move(name), .rank = rank, .size = size, .agree = 7, .deadline_ms = deadline_ms};
}

struct Attempt {
  int64_t rank = 0;
  int64_t size = 0;
  uint64_t agree = 7;
  int64_t deadline_ms = 20'000;
  int64_t delay_ms = 0;
};

/// Runs attempts at the same time and returns what each got.
inline std::vector<Status> run_attempts(const std::string &name, const std::vector<Attempt> &attempts) {
  std::vector<Status> results(attempts.size());
  run_thread_ranks(static_cast<int64_t>(attempts.size()), [&](int64_t index) {
    const Attempt &attempt = attempts[static_cast<size_t>(index)];
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt.delay_ms));
    MeetingTerms terms = terms_of(name, attempt.rank, attempt.size, attempt.deadline_ms);
    terms.agree = attempt.agree;
    std::vector<Joiner> out;
    results[static_cast<size_t>(index)] = run_task(rendezvous(std::move(terms), joiner_with("x"), &out));
  });
  return results;
}

/// Of an Attempt without settings of its own.
inline PacketHeader hello_of(int64_t rank, int64_t size) {
  PacketHeader hello;
  hello.rank = rank;
  hello.size = size;
  hello.process = ::getpid();
  hello.agree = 7;
  return hello;
}

using Attach = int (*)(int, const sockaddr *, socklen_t);

/// An abstract socket that is connected or bound to the name, or -1.
inline int attach_raw(const std::string &name, int type, Attach attach) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "libzero." + std::to_string(::geteuid()) + "." + name;
  std::memcpy(address.sun_path + 1, path.data(), path.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  const int fd = ::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (attach(fd, reinterpret_cast<const sockaddr *>(&address), length) == 0) return fd;
  ::close(fd);
  return -1;
}
inline int connect_raw(const std::string &name, int type) { return attach_raw(name, type, ::connect); }
inline int bind_raw(const std::string &name) { return attach_raw(name, SOCK_SEQPACKET, ::bind); }

/// Connects as soon as somebody leads the meeting.
inline int connect_stranger(const std::string &name) {
  for (;;) {
    const int fd = connect_raw(name, SOCK_SEQPACKET);
    if (fd >= 0) return fd;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace zero::test
