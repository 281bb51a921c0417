/// @file Cutting parts into chunks and hashing these (XXH3 of 64 bits).
#include "engine/checksums.h"

#include "core/hash.h"
#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>

namespace zero {
namespace {

/// Below this many chunks per thread, waking a thread costs more than it saves.
constexpr int64_t kLeastChunks = 8;

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

uint64_t chunk_hash(const SlotPart &chunk) { return hash_of(chunk.data, static_cast<size_t>(chunk.nbytes())); }

}  // namespace

void Checksums::add(const SlotPart &part) {
  if (part.count == 0) return;
  entries_.push_back({part, chunk_count()});
  const int64_t chunks = (part.count + entries_per_chunk(part) - 1) / entries_per_chunk(part);
  hashes_.resize(hashes_.size() + static_cast<size_t>(chunks));
  nbytes_ += part.nbytes();
}

void Checksums::clear() {
  entries_.clear();
  hashes_.clear();
  nbytes_ = 0;
}

Range Checksums::chunks_of(size_t entry) const {
  return {entries_[entry].first_chunk, entry + 1 < entries_.size() ? entries_[entry + 1].first_chunk : chunk_count()};
}

/// Calls visit(index, chunk) for chunks of a range, in order.
template <class Visit>
void Checksums::over_chunks(Range chunks, Visit &&visit) const {
  const auto after = [](int64_t index, const Entry &entry) { return index < entry.first_chunk; };
  auto entry = static_cast<size_t>(std::upper_bound(entries_.begin(), entries_.end(), chunks.begin, after) - entries_.begin());
  if (entry > 0) --entry;
  for (; entry < entries_.size() && entries_[entry].first_chunk < chunks.end; ++entry) {
    const Range part = intersect(chunks, chunks_of(entry));
    for (int64_t index = part.begin; index < part.end; ++index)
      visit(index, chunk_of(entries_[entry].part, index - entries_[entry].first_chunk));
  }
}

template <class Visit>
void Checksums::over_all(const HostKernels &kernels, Visit &&visit) const {
  const int64_t pieces = std::clamp<int64_t>(chunk_count() / kLeastChunks, 1, kernels.threads());
  parallel_pieces(pieces, [&](int64_t piece) { over_chunks(even_share(chunk_count(), piece, pieces), visit); });
}

SlotPart Checksums::chunk(int64_t index) const {
  SlotPart found{};
  over_chunks({index, index + 1}, [&](int64_t, const SlotPart &chunk) { found = chunk; });
  return found;
}

void Checksums::take(const HostKernels &kernels) {
  over_all(kernels, [this](int64_t index, const SlotPart &chunk) { hashes_[static_cast<size_t>(index)] = chunk_hash(chunk); });
}

void Checksums::take(int64_t param, int32_t slot) {
  for (size_t entry = 0; entry < entries_.size(); ++entry) {
    if (entries_[entry].part.param != param || entries_[entry].part.slot != slot) continue;
    over_chunks(chunks_of(entry),
                [this](int64_t index, const SlotPart &chunk) { hashes_[static_cast<size_t>(index)] = chunk_hash(chunk); });
  }
}

Checksums::Changes Checksums::changes(const HostKernels &kernels) const {
  std::atomic<int64_t> count{0};
  std::atomic<int64_t> first{chunk_count()};
  over_all(kernels, [&](int64_t index, const SlotPart &chunk) {
    if (chunk_hash(chunk) == hashes_[static_cast<size_t>(index)]) return;
    count.fetch_add(1, std::memory_order_relaxed);
    int64_t lowest = first.load(std::memory_order_relaxed);
    while (index < lowest && !first.compare_exchange_weak(lowest, index, std::memory_order_relaxed)) {
    }
  });
  return {count.load(), count.load() > 0 ? first.load() : -1};
}

}  // namespace zero
