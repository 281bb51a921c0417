/// @file FileReader: reads one file of a save block by block. Checks hashes first, then the header
/// against the plan, then hands out the wanted parts.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/file_plan.h"
#include "checkpoint/manifest.h"
#include "checkpoint/save_reader.h"
#include "checkpoint/transfers.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zero::checkpoint {

class FileReader {
 public:
  /// All arguments must outlive the reader.
  FileReader(const Manifest &manifest, PlannedFile planned, StreamedFile *file, Transfers *transfers)
      : manifest_(manifest), report_(manifest.files[static_cast<size_t>(planned.file)]), planned_(std::move(planned)), file_(*file),
        transfers_(*transfers) {}

  /// Checks the size, and lays out the header of the plan.
  Status prepare();
  /// Reads the blocks of the parts and of the header. If `sink` is nullptr, reads and checks all
  /// blocks.
  Status read(std::span<const FilePart> parts, std::span<const Wanted> wanted, BlockSink *sink, Progress *progress, StreamCounts *counts);

 private:
  /// A run of whole blocks that is read at once.
  struct Chunk {
    int64_t begin;
    int64_t end;
  };
  /// A wanted part at its place in the file.
  struct Placed {
    int64_t begin;
    int64_t end;
    int64_t wanted;
    int64_t wanted_offset;
  };

  Status place(std::span<const FilePart> parts, std::span<const Wanted> wanted);
  void make_chunks(bool all);
  void add_chunks(int64_t first_block, int64_t end_block);
  Status check_blocks(const Chunk &chunk, std::span<const std::byte> bytes) const;
  Status take_header(const Chunk &chunk, std::span<const std::byte> bytes);
  Status check_header() const;
  Status check_index() const;
  Status hand_out(const Chunk &chunk, std::span<const std::byte> bytes, std::span<const Wanted> wanted, BlockSink *sink);
  std::string where(int64_t begin, int64_t end) const;

  const Manifest &manifest_;
  const FileReport &report_;
  const PlannedFile planned_;
  StreamedFile &file_;
  Transfers &transfers_;
  Header expected_;
  int64_t head_nbytes_ = 0;  ///< bytes of the header, or of the whole index
  std::vector<std::byte> head_;
  std::vector<Placed> placed_;
  size_t first_placed_ = 0;
  std::vector<Chunk> chunks_;
};

}  // namespace zero::checkpoint
