/// @file BlockSource gives bytes and BlockSink takes them, chunk by chunk; Progress counts them and
/// may stop the work. The caller that knows the memory implements them; writers and readers call
/// them.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace zero::checkpoint {

struct EntrySource;
struct Wanted;

/// Called on the thread that called write(). Entries come in the order of the file, offsets rise
/// without gaps.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  /// Fills `out` with the bytes of the entry from `offset` (bytes within the entry) on: always
  /// whole elements. May block.
  virtual Status copy(const EntrySource &entry, int64_t offset, std::span<std::byte> out) = 0;
};

/// Called on the thread that called read(). Every byte was hashed before.
class BlockSink {
 public:
  virtual ~BlockSink() = default;
  /// `data` holds the bytes of the wanted range from `offset` (bytes within the range) on: always
  /// whole elements. Parts of one range arrive in any order, each byte once.
  virtual Status take(const Wanted &wanted, int64_t offset, std::span<const std::byte> data) = 0;
};

class Progress {
 public:
  virtual ~Progress() = default;
  /// Called after each staging buffer, at the latest. An error ends the work, and the call returns
  /// it.
  virtual Status advance(int64_t nbytes) = 0;
};

/// The manner in which files are written and read.
struct StreamOptions {
  /// Two buffers of half this size, each a multiple of 1 MiB, at least 1 MiB.
  int64_t staging_nbytes = 32 << 20;
  bool direct = true;  ///< bypasses the page cache if the file system allows it
  bool sync = true;    ///< false: nothing is durable (tests, scratch folders)
};

/// Bytes that a writer or a reader holds while it works, beyond headers.
int64_t staging_need(const StreamOptions &options);

struct StreamCounts {
  int64_t nbytes = 0;
  int64_t copy_ns = 0;  ///< copies in the source or sink, and hashing
  int64_t wait_ns = 0;  ///< waits for the disk
  int64_t sync_ns = 0;
  bool direct = true;  ///< all files bypassed the page cache
};

}  // namespace zero::checkpoint
