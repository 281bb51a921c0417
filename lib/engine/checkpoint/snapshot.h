/// @file Snapshot: what a rank's files get their bytes from: the optimizers' memory, or copies of it. Knows pieces and where they lie; never
/// files, nor when a copy is due.
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

/// Memory for copies, which a run keeps from one save to the next: new pages cost more than the copy.
class SnapshotMemory {
 public:
  int64_t nbytes() const { return nbytes_; }
  /// ZERO_E_OUT_OF_MEMORY. What was copied before is lost where there must be more.
  Status reserve(int64_t nbytes);
  std::byte *data() const { return data_.get(); }

 private:
  std::unique_ptr<std::byte[]> data_;
  int64_t nbytes_ = 0;
};

/// Of a save that reads the optimizers while they go on.
struct LazyRead {
  LazyRead(const std::shared_ptr<OperationQueue> &saves, std::shared_ptr<WorkBell> rung, int64_t most)
      : bell(std::move(rung)), most_nbytes(most), gate(saves, [this] { bell->ring(); }) {}

  const std::shared_ptr<WorkBell> bell;
  const int64_t most_nbytes;              ///< of a copy that is made where a step waits
  ReadGate gate;                          ///< steps wait here
  std::atomic<bool> has_read{false};      ///< this rank's files need nothing of the optimizers any more
  std::atomic<bool> wishes_ended{false};  ///< no rank's files need anything of another rank any more
};

class Snapshot {
 public:
  Snapshot(const SavedThings &things, const checkpoint::SaveDescription &description) : things_(things), description_(description) {}
  Snapshot(const Snapshot &) = delete;

  /// Lists what this rank has of these files and, if `for_others`, what other ranks' files need of it.
  void list(const std::vector<int64_t> &files, bool for_others);
  /// Bytes of what is listed and lies in buffers only, or everywhere.
  int64_t buffer_nbytes() const;
  int64_t nbytes() const;
  /// Copies buffers, or all, to memory that outlives this.
  Status copy_buffers(std::byte *memory) { return copy_listed(memory, true); }
  Status copy_all(std::byte *memory) { return copy_listed(memory, false); }

  /// Entries of a slot, from `first` on, which this rank has. One thread at a time for what is listed.
  Status read(int64_t section, int64_t tensor, int64_t slot, int64_t first, std::span<std::byte> out);
  /// Bytes of listed pieces that were neither copied nor read to their end.
  int64_t unread_nbytes() const { return unread_nbytes_; }
  /// Copies those, if there is memory. On the thread that reads.
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
    const std::byte *copied;  ///< nullptr: it is read where it lies
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
