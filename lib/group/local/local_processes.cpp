/// @file Process ids turned into descriptors that become readable when the process ends.
#include "group/local/local_processes.h"

#include "core/clock.h"
#include "core/file_text.h"
#include "core/owned_fd.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

namespace zero {

ProcessState process_state(int64_t process) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%lld/stat", lld(process));
  char text[512] = {};
  const int64_t nbytes = read_file(path, {text, sizeof text - 1});
  // For want of a descriptor, say, nothing is known against it.
  if (nbytes < 0) return errno == ENOENT || errno == ESRCH ? ProcessState::ended : ProcessState::running;
  // The name before the state may hold anything, brackets included.
  const char *name_end = std::strrchr(text, ')');
  if (nbytes == 0 || name_end == nullptr || std::strlen(name_end) < 3) return ProcessState::ended;
  switch (name_end[2]) {
    case 'T':
    case 't':
      return ProcessState::stopped;
    case 'Z':
    case 'X':
      return ProcessState::ended;
    default:
      return ProcessState::running;
  }
}

namespace {

/// A descriptor that becomes readable when the process ends.
OwnedFd watch_process(int64_t process) {
  return open_fd([process] { return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0)); });
}

}  // namespace

LocalProcesses::~LocalProcesses() {
  for (const pollfd &watch : watches_) {
    if (watch.fd >= 0) ::close(watch.fd);
  }
}

Status LocalProcesses::open(std::vector<int64_t> processes) {
  processes_ = std::move(processes);
  watch_of_rank_.assign(processes_.size(), -1);
  std::map<int64_t, int> known{{::getpid(), -1}};
  watches_.reserve(processes_.size());
  watched_.reserve(processes_.size());
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    const auto [entry, inserted] = known.try_emplace(processes_[rank], static_cast<int>(watches_.size()));
    watch_of_rank_[rank] = entry->second;
    if (!inserted) continue;
    OwnedFd fd = watch_process(processes_[rank]);
    ZERO_CHECK(fd.valid() || errno == ESRCH, ZERO_E_SYSTEM, "cannot watch rank %zu (process %lld) by pidfd_open: %s", rank,
               lld(processes_[rank]), std::strerror(errno));
    watches_.push_back({fd.release(), POLLIN, 0});
    watched_.push_back(processes_[rank]);
  }
  ended_ = std::make_unique<std::atomic<bool>[]>(watches_.size());
  for (size_t i = 0; i < watches_.size(); ++i) ended_[i] = watches_[i].fd < 0;
  return {};
}

void LocalProcesses::look() {
  constexpr int64_t kIntervalNs = 2'000'000;
  if (watches_.empty()) return;
  const int64_t now = now_ns();
  if (now < next_look_ns_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(look_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  next_look_ns_.store(now + kIntervalNs, std::memory_order_relaxed);
  const int told = ::poll(watches_.data(), watches_.size(), 0);
  // A system that refuses to tell which have ended is asked for each.
  const bool refused = told < 0 && errno != EINTR;
  if (told <= 0 && !refused) return;
  for (size_t i = 0; i < watches_.size(); ++i) {
    pollfd &watch = watches_[i];
    const bool ended = refused ? process_state(watched_[i]) == ProcessState::ended : watch.revents != 0 && has_ended(&watch, watched_[i]);
    if (!ended) continue;
    ended_[i].store(true, std::memory_order_release);
    watches_[i].events = 0;
  }
}

/// The number of a descriptor that was closed may stand for another file by now, which is the program's.
bool LocalProcesses::has_ended(pollfd *watch, int64_t process) const {
  const bool closed = (watch->revents & POLLNVAL) != 0;
  const bool ours = !closed && (::syscall(SYS_pidfd_send_signal, watch->fd, 0, nullptr, 0) == 0 || errno != EBADF);
  if (ours) return (watch->revents & POLLIN) != 0;
  OwnedFd fd = watch_process(process);
  // Without a descriptor there is a look at the process now, and another try at the next.
  if (!fd.valid()) return process_state(process) == ProcessState::ended;
  watch->fd = fd.release();
  return false;
}

bool LocalProcesses::ended(int64_t rank) const {
  const int watch = watch_of_rank_[static_cast<size_t>(rank)];
  return watch >= 0 && ended_[static_cast<size_t>(watch)].load(std::memory_order_acquire);
}

}  // namespace zero
