/// @file Snapshot: the source of the bytes in a rank's files: the optimizers' memory, or copies of
/// it. Knows pieces and their places; never files, nor the time of a copy.
#pragma once

#include "engine/checkpoint/file_work.h"
#include "engine/checkpoint/saved_things.h"
#include "engine/optimizer/read_gate.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace zero {

/// Memory for copies that a run reuses for its next saves: fresh pages cost more than the copy.
class SnapshotMemory {
 public:
  int64_t nbytes() const { return nbytes_; }
  /// Returns ZERO_E_OUT_OF_MEMORY on failure. Growing discards earlier copies.
  Status reserve(int64_t nbytes);
  std::byte *data() const { return data_.get(); }

 private:
  std::unique_ptr<std::byte[]> data_;
  int64_t nbytes_ = 0;
};

/// State of a save that reads the optimizers' memory while training continues.
struct LazyRead {
  LazyRead(const std::shared_ptr<OperationQueue> &saves, std::shared_ptr<WorkBell> rung, int64_t most)
      : bell(std::move(rung)), most_nbytes(most), gate(saves, [this] { bell->ring(); }) {}

  const std::shared_ptr<WorkBell> bell;
  const int64_t most_nbytes;  ///< largest copy that is made while a step waits
  ReadGate gate;              ///< steps wait here
  /// This rank's files need no more bytes of the optimizers.
  std::atomic<bool> has_read{false};
  std::atomic<bool> wishes_ended{false};  ///< no rank's files need more bytes of another rank
};

class Snapshot {
 public:
  Snapshot(const SavedThings &things, const checkpoint::SaveDescription &description) : things_(things), description_(description) {}
  Snapshot(const Snapshot &) = delete;

  /// Lists this rank's parts of these files and, if `for_others`, its parts that other ranks' files
  /// need.
  void list(const std::vector<int64_t> &files, bool for_others);
  /// Number of listed bytes that are in buffers and carried values.
  int64_t buffer_nbytes() const;
  int64_t nbytes() const;
  /// Copies the listed buffers and carried values, or all listed pieces, to memory that must
  /// outlive this object.
  Status copy_buffers(std::byte *memory) { return copy_listed(memory, true); }
  Status copy_all(std::byte *memory) { return copy_listed(memory, false); }

  /// Reads entries of a slot from `first` on. This rank must have them. Listed pieces may be read
  /// by one thread at a time.
  Status read(int64_t section, int64_t tensor, int64_t slot, int64_t first, std::span<std::byte> out);
  /// Number of bytes in listed pieces that were neither copied nor completely read.
  int64_t unread_nbytes() const { return unread_nbytes_; }
  /// Copies the unread pieces if memory is available. Call it on the reading thread.
  Status copy_unread();
  int64_t late_nbytes() const { return late_nbytes_; }

 private:
  struct Piece {
    int64_t section;
    int64_t tensor;
    int64_t slot;
    int64_t begin;
    int64_t entry_nbytes;
    int64_t nbytes;
    int64_t unread_nbytes;
    const std::byte *copied;  ///< nullptr: read from its original place
  };

  int64_t entry_nbytes(int64_t section, int64_t tensor, int64_t slot) const;
  bool in_buffer(const Piece &piece) const { return things_.state(piece.section) == nullptr; }
  void add(const checkpoint::EntrySource &entry);
  void list_for_others();
  Piece *find(int64_t section, int64_t tensor, int64_t slot);
  Status copy_piece(Piece &piece, std::byte *to);
  Status copy_listed(std::byte *memory, bool buffers_only);

  const SavedThings &things_;
  const checkpoint::SaveDescription &description_;
  std::vector<Piece> pieces_;  ///< in the order of section, tensor and slot
  int64_t unread_nbytes_ = 0;
  int64_t late_nbytes_ = 0;
  std::unique_ptr<std::byte[]> late_;
};

}  // namespace zero
