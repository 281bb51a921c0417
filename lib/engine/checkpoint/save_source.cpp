/// @file Finds the bytes of a save's files.
#include "engine/checkpoint/save_source.h"

#include <cstring>

namespace zero {

using checkpoint::EntrySource;

SavedExtras::SavedExtras(const SavedThings &things, bool copies) : extras_(things.extras()) {
  for (SavedThings::Extra &extra : extras_) {
    const auto nbytes = static_cast<size_t>(extra.count * dtype_nbytes(extra.dtype));
    if (!copies || nbytes == 0) continue;
    copies_.emplace_back(extra.data, extra.data + nbytes);
    extra.data = copies_.back().data();
  }
}

Status SaveSource::copy(const EntrySource &entry, int64_t offset, std::span<std::byte> out) {
  ZERO_TRY(work_->advance(0));  // cancelled work must no longer read the caller's memory
  if (entry.section < 0) {
    if (!out.empty()) std::memcpy(out.data(), extras_.data(entry.tensor) + offset, out.size());
    return {};
  }
  const int64_t entry_nbytes = checkpoint::disk_type_nbytes(slot_of(entry).type);
  const int64_t first = entry.begin + offset / entry_nbytes;
  if (!things_.has(description_, entry))
    return work_->wish({entry.section, entry.tensor, entry.slot, first, std::ssize(out) / entry_nbytes, out.data()});
  ZERO_TRY(is_hurried() ? snapshot_.copy_unread() : Status());
  ZERO_TRY(snapshot_.read(entry.section, entry.tensor, entry.slot, first, out));
  note_read();
  return {};
}

int64_t SaveSource::wishes_nbytes(const std::vector<int64_t> &files) const {
  const checkpoint::FilePlan plan(description_);
  int64_t nbytes = 0;
  for (const int64_t number : files) {
    const checkpoint::PlannedFile file = plan.file(description_, number);
    for (const EntrySource &entry : file.sources) {
      if (entry.section >= 0 && !things_.has(description_, entry)) nbytes += entry.count * checkpoint::disk_type_nbytes(slot_of(entry).type);
    }
  }
  return nbytes;
}

/// True if a step waits and the unread rest is small enough to be copied.
bool SaveSource::is_hurried() const {
  return lazy_ != nullptr && !lazy_->has_read.load() && lazy_->gate.is_awaited() && lazy_->wishes_ended.load() &&
         snapshot_.unread_nbytes() <= lazy_->most_nbytes;
}

void SaveSource::note_read() {
  if (lazy_ == nullptr || snapshot_.unread_nbytes() > 0 || lazy_->has_read.exchange(true)) return;
  lazy_->bell->ring();
}

const checkpoint::SavedSlot &SaveSource::slot_of(const EntrySource &entry) const {
  const checkpoint::Section &section = description_.sections[static_cast<size_t>(entry.section)];
  return section.tensors[static_cast<size_t>(entry.tensor)].slots[static_cast<size_t>(entry.slot)];
}

}  // namespace zero
