/// @file SaveSource: supplies the bytes of a save to the writer of its files: the program's
/// tensors, this rank's parts of the optimizers, and the parts that other ranks send. Knows the
/// places of bytes; never files.
#pragma once

#include "checkpoint/blocks.h"
#include "engine/checkpoint/file_work.h"
#include "engine/checkpoint/saved_things.h"
#include "engine/checkpoint/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace zero {

/// Module buffers and tensors of the program: their memory, or copies made when the save was
/// called.
class SavedExtras {
 public:
  SavedExtras(const SavedThings &things, bool copies);
  const std::byte *data(int64_t number) const { return extras_[static_cast<size_t>(number)].data; }

 private:
  std::vector<SavedThings::Extra> extras_;
  std::vector<std::vector<std::byte>> copies_;
};

class SaveSource final : public checkpoint::BlockSource {
 public:
  SaveSource(const SavedThings &things, const checkpoint::SaveDescription &description, const SavedExtras &extras, Snapshot &snapshot)
      : things_(things), description_(description), extras_(extras), snapshot_(snapshot) {}

  void set_work(FileWork *work) { work_ = work; }
  void read_lazily(std::shared_ptr<LazyRead> lazy) { lazy_ = std::move(lazy); }

  Status copy(const checkpoint::EntrySource &entry, int64_t offset, std::span<std::byte> out) override;

  /// Number of bytes of these files that other ranks hold.
  int64_t wishes_nbytes(const std::vector<int64_t> &files) const;

 private:
  bool is_hurried() const;
  void note_read();
  const checkpoint::SavedSlot &slot_of(const checkpoint::EntrySource &entry) const;

  const SavedThings &things_;
  const checkpoint::SaveDescription &description_;
  const SavedExtras &extras_;
  Snapshot &snapshot_;
  std::shared_ptr<LazyRead> lazy_;
  FileWork *work_ = nullptr;
};

}  // namespace zero
