/// @file Ranks as processes forked from a test, with their exit codes and what they wrote, under an outer time limit.
/// Knows nothing of groups. Call it only while the test binary has one thread and has not used libzero outside forked children.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zero::test {

/// What became of each rank's process.
struct ProcessResults {
  std::vector<int> exit_codes;     ///< as exited, 128 + signal when killed by one
  std::vector<std::string> texts;  ///< what the rank wrote to its out_fd
  std::vector<int64_t> cpu_ns;     ///< processor time the rank used
  bool timed_out = false;          ///< the time limit passed and ranks that were left were killed

  bool all_exited_with(int code) const {
    for (const int exit_code : exit_codes) {
      if (exit_code != code) return false;
    }
    return !timed_out;
  }
  /// Everything, for a failed assertion's message.
  std::string describe() const {
    std::string text = timed_out ? "timed out\n" : "";
    for (size_t rank = 0; rank < exit_codes.size(); ++rank) {
      text += "rank " + std::to_string(rank) + " exit " + std::to_string(exit_codes[rank]) + ": " + texts[rank] + "\n";
    }
    return text;
  }
};

/// Called in the parent once all ranks run, with their process ids: to stop, continue or kill some.
using WhileRunning = std::function<void(const std::vector<pid_t> &)>;

/// Writes a text to a rank's out_fd.
inline void write_text(int out_fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(out_fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

namespace process_ranks {

struct Child {
  pid_t pid = -1;
  int read_fd = -1;
};

inline Child start(int64_t rank, const std::function<int(int64_t, int)> &function) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    // A test that is killed takes its ranks along.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::close(ends[0]);
    const int code = function(rank, ends[1]);
    std::fflush(nullptr);
    ::_exit(code);
  }
  ::close(ends[1]);
  if (pid > 0) return {pid, ends[0]};
  ::close(ends[0]);
  return {};
}

/// Reads until every rank has closed its pipe; false when the time has passed.
inline bool collect(std::vector<Child> &children, int64_t timeout_ms, std::vector<std::string> *texts) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    std::vector<pollfd> polls;
    for (const Child &child : children) polls.push_back({child.read_fd, POLLIN, 0});
    bool open = false;
    for (const Child &child : children) open = open || child.read_fd >= 0;
    if (!open) return true;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    ::poll(polls.data(), polls.size(), static_cast<int>(left));
    for (size_t i = 0; i < children.size(); ++i) {
      if (children[i].read_fd < 0 || polls[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t nbytes = ::read(children[i].read_fd, buffer, sizeof buffer);
      if (nbytes > 0) (*texts)[i].append(buffer, static_cast<size_t>(nbytes));
      if (nbytes == 0) ::close(std::exchange(children[i].read_fd, -1));
    }
  }
}

}  // namespace process_ranks

/// Forks `size` processes that run function(rank, out_fd) and exit with its result. Ranks that have not ended after timeout_ms are killed.
inline ProcessResults run_process_ranks(int64_t size, const std::function<int(int64_t rank, int out_fd)> &function, int64_t timeout_ms,
                                        const WhileRunning &while_running = {}) {
  ProcessResults results;
  results.exit_codes.assign(static_cast<size_t>(size), -1);
  results.texts.resize(static_cast<size_t>(size));
  results.cpu_ns.assign(static_cast<size_t>(size), 0);
  std::vector<process_ranks::Child> children;
  std::vector<pid_t> pids;
  for (int64_t rank = 0; rank < size; ++rank) {
    children.push_back(process_ranks::start(rank, function));
    pids.push_back(children.back().pid);
  }
  if (while_running) while_running(pids);
  results.timed_out = !process_ranks::collect(children, timeout_ms, &results.texts);
  for (size_t i = 0; i < children.size(); ++i) {
    if (children[i].read_fd >= 0) ::close(children[i].read_fd);
    if (pids[i] <= 0) continue;
    if (results.timed_out) ::kill(pids[i], SIGKILL);
    int state = 0;
    rusage usage{};
    while (::wait4(pids[i], &state, 0, &usage) < 0 && errno == EINTR) {
    }
    results.exit_codes[i] = WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
    results.cpu_ns[i] =
        (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000'000 + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1'000;
  }
  return results;
}

}  // namespace zero::test
