/// @file Checksums: hashes of parts of slots, chunk by chunk, as of the last take(). Knows no ranks
/// and no steps.
#pragma once

#include "core/partition.h"
#include "engine/compute/step_kernels.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// A contiguous part of one slot of one parameter, in entries of the slot.
struct SlotPart {
  int64_t param;
  int32_t slot;  ///< a zero_slot
  int64_t offset;
  int64_t count;
  const std::byte *data;
  int64_t entry_nbytes;

  int64_t nbytes() const { return count * entry_nbytes; }
};

class Checksums {
 public:
  /// Most bytes of a chunk; each chunk has one hash.
  static constexpr int64_t kChunkNbytes = 65'536;

  void add(const SlotPart &part);
  void clear();

  int64_t chunk_count() const { return static_cast<int64_t>(chunks_.size()); }
  SlotPart chunk(int64_t index) const;
  int64_t nbytes() const { return nbytes_; }

  /// Computes all hashes.
  Status take(const Kernels &kernels);
  /// Computes the hashes of one slot of one parameter.
  Status take(const Kernels &kernels, int64_t param, int32_t slot);
  /// The hashes of the last take(), by chunk.
  std::span<const uint64_t> hashes() const { return hashes_; }

  /// The chunks whose hash has changed since the last take().
  struct Changes {
    int64_t count = 0;
    int64_t first = -1;
  };
  Status find_changes(const Kernels &kernels, Changes *out);

 private:
  struct Entry {
    SlotPart part;
    int64_t first_chunk;
  };

  std::vector<Entry> entries_;
  std::vector<kernels::Bytes> chunks_;
  std::vector<uint64_t> hashes_;
  std::vector<uint64_t> now_;  ///< the hashes that find_changes() computed
  int64_t nbytes_ = 0;
};

}  // namespace zero
