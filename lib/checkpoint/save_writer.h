/// @file SaveWriter: the files of one rank in a new save, and the steps of rank 0 around them. The
/// caller exchanges the status of all ranks between the steps. Knows no groups. The order of the
/// calls:
///
/// - rank 0: create_save. Sends status and name to all ranks.
/// - each rank: SaveWriter::open, preallocate. First exchange of status.
/// - each rank: SaveWriter::write: stream, fsync, close, fsync of the folder. Second exchange of
///   status; reports go to rank 0.
/// - rank 0: commit_save. Acknowledges the save to all ranks.
/// - rank 0: rotate_saves of saves.h. No rank waits for it.
/// - after a failure: SaveWriter::remove on each rank, then remove_save on rank 0.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/file_plan.h"
#include "checkpoint/manifest.h"
#include "core/file.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zero::checkpoint {

class Transfers;

/// Makes the new folder `name` (save_name()) in the folder of saves, durably.
Status create_save(const Folder &saves, const std::string &name, bool sync);

class SaveWriter {
 public:
  /// `files` holds the plan's numbers of the files that this rank writes: its state file, its model
  /// files, and on rank 0 the index and the extra file. The description is not needed afterwards.
  SaveWriter(const SaveDescription &description, const std::vector<int64_t> &files, const StreamOptions &options);
  SaveWriter(const SaveWriter &) = delete;
  ~SaveWriter();

  /// Lists the files of a rank, given the writers of the model files (assign_model_files).
  static std::vector<int64_t> files_of(const SaveDescription &description, std::span<const int64_t> model_writers, int64_t rank);

  /// Opens the folder that rank 0 made. Retries for `retry_ms`, because a client of a network file
  /// system may not see it at once.
  Status open(const Folder &saves, const std::string &name, int64_t retry_ms);
  /// Creates the files and reserves their blocks, so that a full disk is detected before a byte is
  /// written. Allocates staging.
  Status preallocate();
  /// Streams, syncs and closes all files, then syncs the folder.
  Status write(BlockSource &source, Progress *progress);

  /// One report per file. Valid after write().
  const std::vector<FileReport> &reports() const { return reports_; }
  const StreamCounts &counts() const { return counts_; }

  /// Removes the files that this writer has created, after a failure on any rank. A file that
  /// cannot be removed stays, uncommitted.
  void remove() noexcept;

 private:
  struct Output;

  const StreamOptions options_;
  Status prepared_;  ///< status of the headers; open() returns it
  std::vector<Output> outputs_;
  Folder folder_;
  std::unique_ptr<Transfers> transfers_;
  std::vector<FileReport> reports_;
  StreamCounts counts_;
};

/// Writes the manifest and renames it into place. After an error *out_maybe is true if the rename
/// may have taken effect, so that the save may be committed. Then nothing may be removed or
/// rotated, and the next find_save() decides.
Status commit_save(const Folder &saves, const std::string &name, const Manifest &manifest, bool sync, bool *out_maybe);

/// Removes the remains of an uncommitted save, on rank 0. Never removes a save with a manifest.
void remove_save(const Folder &saves, const std::string &name) noexcept;

}  // namespace zero::checkpoint
