/// @file The processes of a group's ranks, watched for their end.
/// Knows process ids and ranks; never what the end of one means.
#pragma once

#include "core/status.h"

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace zero {

enum class ProcessState { running, stopped, ended };

/// As /proc tells it.
ProcessState process_state(int64_t process);

class LocalProcesses {
 public:
  LocalProcesses() = default;
  LocalProcesses(const LocalProcesses &) = delete;

  /// Begins to watch; `processes` by rank. This process itself is not watched.
  Status open(std::vector<int64_t> processes);
  /// Those of some ranks of another group, `members` in the new order, by that group's descriptors.
  void open_among(const LocalProcesses &all, std::span<const int64_t> members);

  /// True when all ranks are threads of this process.
  bool all_here() const { return all_here_; }
  int64_t process(int64_t rank) const { return processes_[static_cast<size_t>(rank)]; }

  /// Looks for ended processes, at most every 2 ms. A program that closes descriptors which are not its own, as some do that begin anew
  /// in a child or as a daemon, ends no process by it: that one is watched by another descriptor then. Any thread.
  void look();
  /// As of the last look.
  bool ended(int64_t rank) const;

 private:
  /// Descriptors of processes, held by all groups of their ranks.
  struct Watch {
    Watch() = default;
    Watch(const Watch &) = delete;
    ~Watch();

    std::vector<pollfd> fds;         ///< one per process: a pidfd, -1 when it had ended before
    std::vector<int64_t> processes;  ///< of each
    std::unique_ptr<std::atomic<bool>[]> ended;
    std::mutex look_mutex;
    std::atomic<int64_t> next_look_ns{0};
  };

  /// What the watch that has something to tell is about.
  bool has_ended(pollfd *watch, int64_t process) const;

  std::vector<int64_t> processes_;
  std::vector<int> watch_of_rank_;  ///< index into the watch, -1 for ranks of this process
  std::shared_ptr<Watch> watch_;
  bool all_here_ = true;
};

}  // namespace zero
