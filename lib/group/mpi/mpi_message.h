/// @file MpiMessage: one point-to-point message at a time to or from one peer, announced on both
/// sides and moved in chunks through library memory. Knows nothing of rounds.
#pragma once

#include "group/mpi/mpi_links.h"

#include <cstddef>
#include <memory>
#include <utility>

namespace zero {

/// Used under the root's lock.
class MpiMessage {
 public:
  enum class Direction { send, recv };
  MpiMessage(Direction direction, int64_t peer) : direction_(direction), peer_(peer) {}

  /// data is read or written by poll until the message is done.
  Status start(MpiLinks &links, const Fingerprint &fingerprint, std::byte *data, int64_t nbytes, int64_t chunk_nbytes);
  Status poll(MpiLinks &links, bool *out_done);

  std::unique_ptr<MpiBlock> take_block() { return std::move(block_); }
  int64_t staging_nbytes() const { return block_ != nullptr ? block_->nbytes() : 0; }

 private:
  enum Slot : int64_t { kMyNotice = 0, kTheirNotice = 1, kChunk = 2, kSlots = 3 };
  Status meet(MpiLinks &links);
  Status move_send(MpiLinks &links);
  Status move_recv(MpiLinks &links);
  std::byte *chunk_data() { return block_->data() + 2 * sizeof(Fingerprint); }

  const Direction direction_;
  const int64_t peer_;
  std::unique_ptr<MpiBlock> block_;
  Fingerprint fingerprint_;
  std::byte *data_ = nullptr;
  int64_t nbytes_ = 0;
  int64_t chunk_nbytes_ = 0;
  int64_t moved_ = 0;
  bool met_ = false;
};

}  // namespace zero
