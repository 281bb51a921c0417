/// @file Lists and copies this rank's contributions to a save.
#include "engine/checkpoint/snapshot.h"

#include "core/number_text.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>

namespace zero {

using checkpoint::EntrySource;
using checkpoint::Placement;
using checkpoint::SavedSlot;
using checkpoint::Section;

Status SnapshotMemory::reserve(int64_t nbytes) {
  if (nbytes <= nbytes_) return {};
  data_.reset();
  nbytes_ = 0;
  data_.reset(new (std::nothrow) std::byte[static_cast<size_t>(nbytes)]);
  ZERO_CHECK(data_ != nullptr, ZERO_E_OUT_OF_MEMORY, "cannot allocate %s for the copy of an asynchronous save",
             nbytes_text(static_cast<double>(nbytes)).c_str());
  nbytes_ = nbytes;
  return {};
}

int64_t Snapshot::entry_nbytes(int64_t section, int64_t tensor, int64_t slot) const {
  const Section &in = description_.sections[static_cast<size_t>(section)];
  return checkpoint::disk_type_nbytes(in.tensors[static_cast<size_t>(tensor)].slots[static_cast<size_t>(slot)].type);
}

void Snapshot::add(const EntrySource &entry) {
  const int64_t each = entry_nbytes(entry.section, entry.tensor, entry.slot);
  const int64_t nbytes = entry.count * each;
  if (nbytes == 0) return;
  pieces_.push_back({entry.section, entry.tensor, entry.slot, entry.begin, each, nbytes, nbytes, nullptr});
  unread_nbytes_ += nbytes;
}

/// Lists parts of parameters in model files that this rank does not have whole.
void Snapshot::list_for_others() {
  const int64_t rank = things_.group()->rank();
  for (size_t s = 0; s < things_.optimizers().size(); ++s) {
    const Section &section = description_.sections[s];
    for (size_t t = 0; t < section.tensors.size(); ++t) {
      for (size_t index = 0; index < section.tensors[t].slots.size(); ++index) {
        const SavedSlot &slot = section.tensors[t].slots[index];
        EntrySource entry{static_cast<int64_t>(s), static_cast<int64_t>(t), static_cast<int64_t>(index), -1, 0, 0};
        if (slot.placement != Placement::whole || things_.has(description_, entry)) continue;
        const Range own = checkpoint::entries_of(slot, section.cut(entry.tensor, rank));
        entry.begin = own.begin;
        entry.count = own.count();
        add(entry);
      }
    }
  }
}

void Snapshot::list(const std::vector<int64_t> &files, bool for_others) {
  const checkpoint::FilePlan plan(description_);
  for (const int64_t number : files) {
    for (const EntrySource &entry : plan.file(description_, number).sources) {
      if (entry.section >= 0 && things_.has(description_, entry)) add(entry);
    }
  }
  if (for_others) list_for_others();
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece &a, const Piece &b) {
    return std::tie(a.section, a.tensor, a.slot) < std::tie(b.section, b.tensor, b.slot);
  });
}

int64_t Snapshot::buffer_nbytes() const {
  int64_t nbytes = 0;
  for (const Piece &piece : pieces_) nbytes += in_buffer(piece) ? piece.nbytes : 0;
  return nbytes;
}

int64_t Snapshot::nbytes() const {
  int64_t nbytes = 0;
  for (const Piece &piece : pieces_) nbytes += piece.nbytes;
  return nbytes;
}

Status Snapshot::copy_piece(Piece &piece, std::byte *to) {
  const std::span<std::byte> out(to, static_cast<size_t>(piece.nbytes));
  ZERO_TRY(things_.copy(description_, piece.section, piece.tensor, piece.slot, piece.begin, out));
  piece.copied = to;
  unread_nbytes_ -= piece.nbytes;
  return {};
}

Status Snapshot::copy_listed(std::byte *memory, bool buffers_only) {
  for (Piece &piece : pieces_) {
    if (buffers_only && !in_buffer(piece)) continue;
    ZERO_TRY(copy_piece(piece, memory));
    memory += piece.nbytes;
  }
  return {};
}

Status Snapshot::copy_unread() {
  if (unread_nbytes_ == 0) return {};
  late_.reset(new (std::nothrow) std::byte[static_cast<size_t>(unread_nbytes_)]);
  if (late_ == nullptr) return {};
  late_nbytes_ = unread_nbytes_;
  std::byte *to = late_.get();
  for (Piece &piece : pieces_) {
    if (piece.copied != nullptr || piece.unread_nbytes == 0) continue;
    ZERO_TRY(copy_piece(piece, to));
    to += piece.nbytes;
  }
  return {};
}

Snapshot::Piece *Snapshot::find(int64_t section, int64_t tensor, int64_t slot) {
  const auto key = std::tie(section, tensor, slot);
  const auto found = std::lower_bound(pieces_.begin(), pieces_.end(), key, [](const Piece &piece, const auto &wanted) {
    return std::tie(piece.section, piece.tensor, piece.slot) < wanted;
  });
  const bool is_it = found != pieces_.end() && std::tie(found->section, found->tensor, found->slot) == key;
  return is_it ? &*found : nullptr;
}

Status Snapshot::read(int64_t section, int64_t tensor, int64_t slot, int64_t first, std::span<std::byte> out) {
  if (out.empty()) return {};
  Piece *piece = find(section, tensor, slot);
  if (piece == nullptr) return things_.copy(description_, section, tensor, slot, first, out);
  if (piece->copied != nullptr) {
    std::memcpy(out.data(), piece->copied + (first - piece->begin) * piece->entry_nbytes, out.size());
    return {};
  }
  ZERO_TRY(things_.copy(description_, section, tensor, slot, first, out));
  piece->unread_nbytes -= std::ssize(out);
  if (piece->unread_nbytes == 0) unread_nbytes_ -= piece->nbytes;
  return {};
}

}  // namespace zero
