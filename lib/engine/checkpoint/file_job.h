/// @file FileJob: the work of a rank with the files of a save, a load or an export, and the
/// exchange of progress with the other ranks, which work with theirs at the same time. Knows ranks
/// and the bytes that they need of one another; never the names of files.
#pragma once

#include "checkpoint/manifest.h"
#include "core/task.h"
#include "engine/checkpoint/file_work.h"
#include "engine/checkpoint/snapshot.h"
#include "group/group.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace zero {

/// Everything that the thread of the work uses. It outlives the call if that thread hangs.
struct FileJob : std::enable_shared_from_this<FileJob> {
  /// Those that derive from it end the work first: it uses what they hold.
  virtual ~FileJob() = default;

  /// Starts work; as FileWork::start.
  void start(std::shared_ptr<WorkBell> bell, std::function<Status()> files);
  /// Awaits the end of the work of all ranks. Each tells the others how far it is and, in saves and
  /// exports, which bytes of theirs it needs: about `wishes_nbytes` of what `description` says. An
  /// error of one rank ends the work of all; the vote that follows says whose it was.
  /// ZERO_E_TIMEOUT when a rank neither reads nor writes for `progress_ms`. A collective.
  Task attend(Group &group, int64_t progress_ms, const checkpoint::SaveDescription *description = nullptr, int64_t wishes_nbytes = 0);
  /// Awaits the work of this rank, number `rank` of the caller's group, while no other rank waits
  /// for it.
  Task attend_alone(int64_t rank, int64_t progress_ms);

  std::shared_ptr<void> owner;  ///< the checkpoint
  std::shared_ptr<FileWork> work;
  std::unique_ptr<Snapshot> snapshot;  ///< for saves and exports
  /// For saves that read the optimizers while training continues; otherwise nullptr.
  std::shared_ptr<LazyRead> lazy;

 private:
  Task wind_up(int64_t deadline_ms);
  Task grant_wishes(Group &group, const checkpoint::SaveDescription &description, const std::vector<int64_t> &all);
};

}  // namespace zero
