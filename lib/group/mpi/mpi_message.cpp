/// @file Point-to-point messages: notices cross first, so that a wrong count is an error on both
/// sides before any data moves.
#include "group/mpi/mpi_message.h"

#include <algorithm>
#include <cstring>

namespace zero {

Status MpiMessage::start(MpiLinks &links, const Fingerprint &fingerprint, std::byte *data, int64_t nbytes, int64_t chunk_nbytes) {
  if (block_ == nullptr) block_ = std::make_unique<MpiBlock>(kSlots);
  ZERO_CHECK(block_->idle(), ZERO_E_INTERNAL, "a message with rank %lld was started before the last one ended", lld(peer_));
  chunk_nbytes_ = chunk_nbytes;
  block_->reserve(static_cast<int64_t>(2 * sizeof(Fingerprint)) + std::min(nbytes, chunk_nbytes));
  fingerprint_ = fingerprint;
  data_ = data;
  nbytes_ = nbytes;
  moved_ = 0;
  met_ = false;
  const MpiStream mine = direction_ == Direction::send ? kSendNotices : kRecvNotices;
  const MpiStream theirs = direction_ == Direction::send ? kRecvNotices : kSendNotices;
  std::memcpy(block_->data(), &fingerprint, sizeof fingerprint);
  ZERO_TRY(links.recv(peer_, theirs, block_->data() + sizeof fingerprint, sizeof fingerprint, &block_->request(kTheirNotice)));
  return links.send(peer_, mine, block_->data(), sizeof fingerprint, &block_->request(kMyNotice));
}

/// Waits for the peer's notice and compares.
Status MpiMessage::meet(MpiLinks &links) {
  const MpiStream theirs = direction_ == Direction::send ? kRecvNotices : kSendNotices;
  ZERO_TRY(links.test_recv(peer_, theirs, &block_->request(kTheirNotice), &met_));
  if (!met_) return {};
  Fingerprint notice;
  std::memcpy(&notice, block_->data() + sizeof notice, sizeof notice);
  return compare(fingerprint_, links.rank(), notice, peer_);
}

Status MpiMessage::move_send(MpiLinks &links) {
  MpiRequest &chunk = block_->request(kChunk);
  ZERO_TRY(links.root().test(&chunk));
  while (!chunk.active && moved_ < nbytes_) {
    const int64_t nbytes = std::min(chunk_nbytes_, nbytes_ - moved_);
    std::memcpy(chunk_data(), data_ + moved_, static_cast<size_t>(nbytes));
    ZERO_TRY(links.send(peer_, kMessages, chunk_data(), nbytes, &chunk));
    moved_ += nbytes;
    ZERO_TRY(links.root().test(&chunk));
  }
  return {};
}

Status MpiMessage::move_recv(MpiLinks &links) {
  MpiRequest &chunk = block_->request(kChunk);
  while (moved_ < nbytes_) {
    const int64_t nbytes = std::min(chunk_nbytes_, nbytes_ - moved_);
    if (!chunk.active) ZERO_TRY(links.recv(peer_, kMessages, chunk_data(), nbytes, &chunk));
    bool arrived = false;
    ZERO_TRY(links.test_recv(peer_, kMessages, &chunk, &arrived));
    if (!arrived) break;
    ZERO_CHECK(chunk.nbytes == nbytes, ZERO_E_INTERNAL, "rank %lld sent %lld bytes where %lld were agreed", lld(peer_), lld(chunk.nbytes),
               lld(nbytes));
    std::memcpy(data_ + moved_, chunk_data(), static_cast<size_t>(nbytes));
    moved_ += nbytes;
  }
  return {};
}

Status MpiMessage::poll(MpiLinks &links, bool *out_done) {
  *out_done = false;
  ZERO_TRY(links.root().test(&block_->request(kMyNotice)));
  if (!met_) ZERO_TRY(meet(links));
  if (!met_) return {};
  ZERO_TRY(direction_ == Direction::send ? move_send(links) : move_recv(links));
  *out_done = moved_ == nbytes_ && block_->idle();
  return {};
}

}  // namespace zero
