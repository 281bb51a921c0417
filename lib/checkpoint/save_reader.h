/// @file SaveReader: reads ranges of a save by whole blocks, and checks their hashes before it
/// hands out a byte. Every rank has its own reader and needs no other rank. Knows no groups.
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

/// A range of entries of one slot, or of an extra (section -1: `tensor` is the number of the extra,
/// slot -1).
struct Wanted {
  int64_t section = -1;
  int64_t tensor = -1;
  int64_t slot = -1;
  /// For per_rank slots: rank of the section; for Scope::each: state file; otherwise -1.
  int64_t copy = -1;
  Range entries;
  int64_t user = 0;  ///< value of the caller
};

/// A run of bytes in one file that covers part of a wanted range.
struct FilePart {
  int64_t file;
  int64_t entry_offset;  ///< bytes within the entry of the wanted slot or extra in that file
  int64_t nbytes;
  int64_t wanted;         ///< index
  int64_t wanted_offset;  ///< bytes within the wanted range
};

/// Finds the runs of bytes that hold the wanted ranges. Proves that they cover each range exactly:
/// no gap, no overlap, element counts that match shape and dtype. ZERO_E_CHECKPOINT names the
/// tensor and the missing range.
Status plan_reads(const Manifest &manifest, std::span<const Wanted> wanted, std::vector<FilePart> *out);

/// Gives the same proof for all slots of all tensors of a save.
Status prove_cover(const Manifest &manifest);

class SaveReader {
 public:
  /// The manifest must outlive the reader.
  SaveReader(const Manifest &manifest, const StreamOptions &options);
  SaveReader(const SaveReader &) = delete;
  ~SaveReader();

  /// Opens the save's folder by the name that rank 0 chose. Retries for `retry_ms` if it is not
  /// visible at once.
  Status open(const Folder &saves, const std::string &name, int64_t retry_ms);

  /// Plans the reads, proves that they cover the ranges, then reads. A block goes to the sink only
  /// after its hash and the header of its file were checked. After an error the sink has received
  /// some of the ranges.
  Status read(std::span<const Wanted> wanted, BlockSink &sink, Progress *progress);

  /// Reads all files whole: every block, every header against the plan, the index against the
  /// description.
  Status verify(Progress *progress);
  /// Reads one file whole: its blocks and its header.
  Status verify_file(int64_t file, Progress *progress);

  const StreamCounts &counts() const { return counts_; }

 private:
  Status read_file(int64_t file, std::span<const FilePart> parts, std::span<const Wanted> wanted, BlockSink *sink, Progress *progress);

  const Manifest &manifest_;
  const StreamOptions options_;
  const FilePlan plan_;
  Folder folder_;
  int64_t retry_ms_ = 0;
  std::unique_ptr<Transfers> transfers_;
  StreamCounts counts_;
};

}  // namespace zero::checkpoint
