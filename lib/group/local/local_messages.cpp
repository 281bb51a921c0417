/// @file LocalMessages: point-to-point messages of the local transport, as chunks through two slots
/// per pair of ranks. A message is announced by a fingerprint, which the receiver compares before
/// it writes. The sender is done when all chunks have been taken, so a mismatch is reported to it
/// too.
#include "group/local/local_messages.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace zero {

Status LocalMessages::make_ways() {
  try {
    std::call_once(ways_made_, [this] { ways_.resize(static_cast<size_t>(peers_.size())); });
    return {};
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "rank %lld is out of memory for messages between %lld ranks", name_of(peers_.rank()),
                         lld(peers_.size()));
  }
}

Status LocalMessages::send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) {
  ZERO_TRY(peers_.health());
  ZERO_TRY(make_ways());
  way(peer).sending = {fingerprint, const_cast<std::byte *>(static_cast<const std::byte *>(offer.data)), offer.nbytes};
  return {};
}

Status LocalMessages::send_poll(int64_t peer, bool *out_done) {
  const Status before = peers_.health();
  Moving &sending = way(peer).sending;
  Mailbox &mailbox = peers_.own().mailbox(peer, Lane::messages);
  for (;;) {
    const uint64_t index = mailbox.posted.load(std::memory_order_relaxed);
    const bool all_posted = sending.announced && sending.moved_nbytes == sending.nbytes;
    const uint64_t taken = mailbox.taken.load(std::memory_order_acquire);
    *out_done = all_posted && taken == index;
    if (*out_done) return {};
    if (all_posted || taken + 2 <= index) break;
    post_chunk(peer, mailbox, index);
  }
  ZERO_TRY(before);
  peers_.processes().look();
  return peers_.check_peer(peer, mailbox.taken, mailbox.posted.load(std::memory_order_relaxed), &sending.fingerprint);
}

void LocalMessages::post_chunk(int64_t peer, Mailbox &mailbox, uint64_t index) {
  Moving &sending = way(peer).sending;
  Message &message = mailbox.slots[index % 2];
  const std::byte *data = sending.data + sending.moved_nbytes;
  message.has_fingerprint = sending.announced ? 0 : 1;
  message.fingerprint = sending.fingerprint;
  message.nbytes = std::min(sending.nbytes - sending.moved_nbytes, message_chunk_nbytes(peers_.size(), peers_.round_nbytes()));
  if (message.nbytes == 0) {
    message.kind = MessageKind::none;
  } else if (mappings_.find_offered(data, sending.nbytes - sending.moved_nbytes, &message.mapping_id, &message.offset)) {
    message.kind = MessageKind::arena;
    message.nbytes = sending.nbytes - sending.moved_nbytes;
  } else {
    message.kind = MessageKind::staged;
    message.offset = peers_.own().chunk_offset(peer, index % 2);
    way(peer).chunk_copy.copy(peers_.own().at(message.offset), data, message.nbytes);
  }
  sending.announced = true;
  sending.moved_nbytes += message.nbytes;
  mailbox.posted.store(index + 1, std::memory_order_release);
  peers_.ring(peer);
}

Status LocalMessages::recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) {
  ZERO_TRY(peers_.health());
  ZERO_TRY(make_ways());
  way(peer).receiving = {fingerprint, static_cast<std::byte *>(data), nbytes};
  return {};
}

Status LocalMessages::recv_poll(int64_t peer, bool *out_done) {
  const Status before = peers_.health();
  Moving &receiving = way(peer).receiving;
  Mailbox &mailbox = peers_.segment(peer).mailbox(peers_.rank(), Lane::messages);
  for (;;) {
    *out_done = receiving.announced && receiving.moved_nbytes == receiving.nbytes;
    if (*out_done) return {};
    const uint64_t index = mailbox.taken.load(std::memory_order_relaxed);
    if (mailbox.posted.load(std::memory_order_acquire) <= index) break;
    const Message &message = mailbox.slots[index % 2];
    const Status taken = take_chunk(peer, receiving, message);
    if (!taken.ok()) return peers_.fail(taken);
    if (message.kind == MessageKind::arena && peers_.may_have_read_torn()) return peers_.health();
    mailbox.taken.store(index + 1, std::memory_order_release);
    peers_.ring(peer);
  }
  ZERO_TRY(before);
  peers_.processes().look();
  return peers_.check_peer(peer, mailbox.posted, mailbox.taken.load(std::memory_order_relaxed) + 1, &receiving.fingerprint);
}

Status LocalMessages::take_chunk(int64_t peer, Moving &receiving, const Message &message) {
  const bool in_order = receiving.announced == (message.has_fingerprint == 0);
  ZERO_CHECK(in_order, ZERO_E_TRANSPORT, "rank %lld got a message from rank %lld that is out of order in %s", name_of(peers_.rank()),
             name_of(peer), to_text(receiving.fingerprint).c_str());
  if (!receiving.announced) ZERO_TRY(compare(receiving.fingerprint, name_of(peers_.rank()), message.fingerprint, name_of(peer)));
  ZERO_CHECK(message.nbytes >= 0 && message.nbytes <= receiving.nbytes - receiving.moved_nbytes, ZERO_E_TRANSPORT,
             "rank %lld sent %lld bytes, rank %lld has room for %lld in %s", name_of(peer), lld(message.nbytes), name_of(peers_.rank()),
             lld(receiving.nbytes - receiving.moved_nbytes), to_text(receiving.fingerprint).c_str());
  const void *data = nullptr;
  ZERO_TRY(mappings_.resolve(peer, message, 0, &data));
  if (message.nbytes > 0) std::memcpy(receiving.data + receiving.moved_nbytes, data, static_cast<size_t>(message.nbytes));
  receiving.announced = true;
  receiving.moved_nbytes += message.nbytes;
  return {};
}

}  // namespace zero
