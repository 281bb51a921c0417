/// @file Cutting parts into chunks and comparing their hashes.
#include "engine/integrity/checksums.h"

#include <algorithm>

namespace zero {
namespace {

int64_t entries_per_chunk(const SlotPart &part) { return Checksums::kChunkNbytes / part.entry_nbytes; }

/// Chunk `index` of a part.
SlotPart chunk_of(const SlotPart &part, int64_t index) {
  const int64_t begin = index * entries_per_chunk(part);
  SlotPart chunk = part;
  chunk.offset += begin;
  chunk.count = std::min(entries_per_chunk(part), part.count - begin);
  chunk.data += begin * part.entry_nbytes;
  return chunk;
}

}  // namespace

void Checksums::add(const SlotPart &part) {
  if (part.count == 0) return;
  entries_.push_back({part, chunk_count()});
  const int64_t count = (part.count + entries_per_chunk(part) - 1) / entries_per_chunk(part);
  for (int64_t index = 0; index < count; ++index) {
    const SlotPart chunk = chunk_of(part, index);
    chunks_.push_back({chunk.data, chunk.nbytes()});
  }
  hashes_.resize(chunks_.size());
  now_.resize(chunks_.size());
  nbytes_ += part.nbytes();
}

void Checksums::clear() {
  entries_.clear();
  chunks_.clear();
  hashes_.clear();
  now_.clear();
  nbytes_ = 0;
}

SlotPart Checksums::chunk(int64_t index) const {
  const auto after = [](int64_t wanted, const Entry &entry) { return wanted < entry.first_chunk; };
  const Entry &entry = *(std::upper_bound(entries_.begin(), entries_.end(), index, after) - 1);
  return chunk_of(entry.part, index - entry.first_chunk);
}

Status Checksums::take(const Kernels &kernels) { return kernels.hash(chunks_, hashes_.data()); }

Status Checksums::take(const Kernels &kernels, int64_t param, int32_t slot) {
  for (size_t index = 0; index < entries_.size(); ++index) {
    if (entries_[index].part.param != param || entries_[index].part.slot != slot) continue;
    const auto first = static_cast<size_t>(entries_[index].first_chunk);
    const size_t end = index + 1 < entries_.size() ? static_cast<size_t>(entries_[index + 1].first_chunk) : chunks_.size();
    ZERO_TRY(kernels.hash(std::span(chunks_).subspan(first, end - first), &hashes_[first]));
  }
  return {};
}

Status Checksums::find_changes(const Kernels &kernels, Changes *out) {
  ZERO_TRY(kernels.hash(chunks_, now_.data()));
  *out = {};
  for (int64_t index = chunk_count() - 1; index >= 0; --index) {
    if (now_[static_cast<size_t>(index)] == hashes_[static_cast<size_t>(index)]) continue;
    ++out->count;
    out->first = index;
  }
  return {};
}

}  // namespace zero
