/// @file LocalProcesses: watches the processes of a group's ranks for their end. Knows process ids
/// and ranks; never the consequences of an end.
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

/// Reads the state from /proc.
ProcessState process_state(int64_t process);

class LocalProcesses {
 public:
  LocalProcesses() = default;
  LocalProcesses(const LocalProcesses &) = delete;

  /// Begins to watch; `processes` by rank. This process is not watched.
  Status open(std::vector<int64_t> processes);
  /// Watches the processes of some ranks of another group with that group's descriptors; `members`
  /// in the new order.
  void open_among(const LocalProcesses &all, std::span<const int64_t> members);

  /// True when all ranks are threads of this process.
  bool all_here() const { return all_here_; }
  int64_t process(int64_t rank) const { return processes_[static_cast<size_t>(rank)]; }

  /// Looks for ended processes, at most every 2 ms. Any thread. A program may close descriptors of
  /// this library, for example when it becomes a daemon. Its process does not count as ended then;
  /// it is watched by a new descriptor.
  void look();
  /// The result of the last look.
  bool ended(int64_t rank) const;

 private:
  /// Descriptors of processes, shared by all groups of their ranks.
  struct Watch {
    Watch() = default;
    Watch(const Watch &) = delete;
    ~Watch();

    std::vector<pollfd> fds;         ///< one pidfd per process; -1 if it had ended before
    std::vector<int64_t> processes;  ///< process id of each descriptor
    std::unique_ptr<std::atomic<bool>[]> ended;
    std::mutex look_mutex;
    std::atomic<int64_t> next_look_ns{0};
  };

  /// True if the process of a watch with events has ended. Reopens a descriptor that the program
  /// has closed.
  bool has_ended(pollfd *watch, int64_t process) const;

  std::vector<int64_t> processes_;
  std::vector<int> watch_of_rank_;  ///< index into the watch; -1 for ranks of this process
  std::shared_ptr<Watch> watch_;
  bool all_here_ = true;
};

}  // namespace zero
