/// @file Opens descriptors that become readable when a process ends.
#include "group/local/local_processes.h"

#include "core/clock.h"
#include "core/descriptor_room.h"
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
  // If the file exists but cannot be read, for example for lack of descriptors, the process counts
  // as running.
  if (nbytes < 0) return errno == ENOENT || errno == ESRCH ? ProcessState::ended : ProcessState::running;
  // The name in front of the state may contain any character, brackets included.
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

/// Returns a descriptor that becomes readable when the process ends.
OwnedFd watch_process(int64_t process) {
  return open_fd([process] { return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0)); });
}

}  // namespace

LocalProcesses::Watch::~Watch() {
  for (const pollfd &watch : fds) {
    if (watch.fd >= 0) ::close(watch.fd);
  }
}

Status LocalProcesses::open(std::vector<int64_t> processes) {
  processes_ = std::move(processes);
  watch_of_rank_.assign(processes_.size(), -1);
  watch_ = std::make_shared<Watch>();
  std::vector<pollfd> &fds = watch_->fds;
  std::map<int64_t, int> known{{::getpid(), -1}};
  fds.reserve(processes_.size());
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    const auto [entry, inserted] = known.try_emplace(processes_[rank], static_cast<int>(fds.size()));
    watch_of_rank_[rank] = entry->second;
    if (!inserted) continue;
    OwnedFd fd = watch_process(processes_[rank]);
    ZERO_CHECK(fd.valid() || errno == ESRCH, ZERO_E_SYSTEM, "cannot watch rank %zu (process %lld) by pidfd_open: %s", rank,
               lld(processes_[rank]), system_error_text(errno).c_str());
    fds.push_back({fd.release(), POLLIN, 0});
    watch_->processes.push_back(processes_[rank]);
  }
  all_here_ = fds.empty();
  watch_->ended = std::make_unique<std::atomic<bool>[]>(fds.size());
  for (size_t i = 0; i < fds.size(); ++i) watch_->ended[i] = fds[i].fd < 0;
  return {};
}

void LocalProcesses::open_among(const LocalProcesses &all, std::span<const int64_t> members) {
  watch_ = all.watch_;
  for (const int64_t member : members) {
    processes_.push_back(all.processes_[static_cast<size_t>(member)]);
    watch_of_rank_.push_back(all.watch_of_rank_[static_cast<size_t>(member)]);
    all_here_ = all_here_ && watch_of_rank_.back() < 0;
  }
}

void LocalProcesses::look() {
  constexpr int64_t kIntervalNs = 2'000'000;
  if (all_here_) return;
  const int64_t now = now_ns();
  if (now < watch_->next_look_ns.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(watch_->look_mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  watch_->next_look_ns.store(now + kIntervalNs, std::memory_order_relaxed);
  std::vector<pollfd> &fds = watch_->fds;
  const int told = ::poll(fds.data(), fds.size(), 0);
  // If poll fails, each process is looked up.
  const bool refused = told < 0 && errno != EINTR;
  if (told <= 0 && !refused) return;
  for (size_t i = 0; i < fds.size(); ++i) {
    const int64_t process = watch_->processes[i];
    const bool ended = refused ? process_state(process) == ProcessState::ended : fds[i].revents != 0 && has_ended(&fds[i], process);
    if (!ended) continue;
    watch_->ended[i].store(true, std::memory_order_release);
    fds[i].events = 0;
  }
}

/// The number of a closed descriptor may now belong to another file of the program.
bool LocalProcesses::has_ended(pollfd *watch, int64_t process) const {
  const bool closed = (watch->revents & POLLNVAL) != 0;
  const bool ours = !closed && (::syscall(SYS_pidfd_send_signal, watch->fd, 0, nullptr, 0) == 0 || errno != EBADF);
  if (ours) return (watch->revents & POLLIN) != 0;
  OwnedFd fd = watch_process(process);
  // Without a descriptor, the process is looked up now, and the next look tries again.
  if (!fd.valid()) return process_state(process) == ProcessState::ended;
  watch->fd = fd.release();
  return false;
}

bool LocalProcesses::ended(int64_t rank) const {
  const int watch = watch_of_rank_[static_cast<size_t>(rank)];
  return watch >= 0 && watch_->ended[static_cast<size_t>(watch)].load(std::memory_order_acquire);
}

}  // namespace zero
