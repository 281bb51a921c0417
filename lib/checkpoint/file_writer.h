/// @file Writes a new file: its head and its entries pass through the staging buffers to the disk
/// and are hashed on the way.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/transfers.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zero::checkpoint {

/// Provides the bytes of entries, by their number in the header.
class EntryBytes {
 public:
  virtual ~EntryBytes() = default;
  virtual Status copy(size_t entry, int64_t offset, std::span<std::byte> out) = 0;
};

struct NewFile {
  std::string head;  ///< bytes before the data; all bytes if the file has no entries
  Header header;
  StreamedFile file;

  int64_t nbytes() const { return header.file_nbytes; }
};

/// Creates the file and reserves its blocks.
Status create_file(const Folder &folder, const std::string &name, const StreamOptions &options, NewFile *out);

/// Writes all bytes, syncs and closes. After an error a transfer may still be in progress: call
/// Transfers::end() for each buffer before the file is closed. `out_hashes` may be nullptr.
Status write_file(NewFile *file, EntryBytes &bytes, const StreamOptions &options, Transfers *transfers, Progress *progress,
                  std::vector<uint64_t> *out_hashes, StreamCounts *counts);

}  // namespace zero::checkpoint
