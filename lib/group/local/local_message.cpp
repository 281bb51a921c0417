/// @file Point-to-point messages of the local transport: chunks through two slots per pair of ranks, announced by a fingerprint that the
/// receiver compares before it writes; the sender is done when all has been taken, so a mismatch reaches it too.
#include "group/local/local_transport.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace zero {

Status LocalTransport::make_messages() {
  try {
    std::call_once(messages_made_, [this] { messages_ = std::make_unique<Messages>(static_cast<size_t>(size_)); });
    return {};
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "rank %lld is out of memory for messages between %lld ranks", name_of(rank_), lld(size_));
  }
}

Status LocalTransport::send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) {
  ZERO_TRY(health());
  ZERO_TRY(make_messages());
  messages_->sendings[static_cast<size_t>(peer)] = {fingerprint, static_cast<const std::byte *>(offer.data), offer.nbytes, 0, false, true};
  return {};
}

Status LocalTransport::send_poll(int64_t peer, bool *out_done) {
  const Status before = health();
  Sending &sending = messages_->sendings[static_cast<size_t>(peer)];
  Mailbox &mailbox = own().mailbox(peer, Lane::messages);
  for (;;) {
    const uint64_t index = mailbox.posted.load(std::memory_order_relaxed);
    const bool all_posted = sending.announced && sending.posted_nbytes == sending.nbytes;
    const uint64_t taken = mailbox.taken.load(std::memory_order_acquire);
    *out_done = all_posted && taken == index;
    if (*out_done) {
      sending.active = false;
      return {};
    }
    if (all_posted || taken + 2 <= index) break;
    post_chunk(peer, sending, mailbox, index);
  }
  ZERO_TRY(before);
  processes_.look();
  return check_peer(peer, mailbox.taken, mailbox.posted.load(std::memory_order_relaxed), &sending.fingerprint);
}

void LocalTransport::post_chunk(int64_t peer, Sending &sending, Mailbox &mailbox, uint64_t index) {
  Message &message = mailbox.slots[index % 2];
  const std::byte *data = sending.data + sending.posted_nbytes;
  message.has_fingerprint = sending.announced ? 0 : 1;
  message.fingerprint = sending.fingerprint;
  message.nbytes = std::min(sending.nbytes - sending.posted_nbytes, message_chunk_nbytes(size_, round_nbytes_));
  if (message.nbytes == 0) {
    message.kind = MessageKind::none;
  } else if (find_offered(data, sending.nbytes - sending.posted_nbytes, &message.mapping_id, &message.offset)) {
    message.kind = MessageKind::arena;
    message.nbytes = sending.nbytes - sending.posted_nbytes;
  } else {
    message.kind = MessageKind::staged;
    message.offset = own().chunk_offset(peer, index % 2);
    messages_->chunk_copies[static_cast<size_t>(peer)].copy(own().at(message.offset), data, message.nbytes);
  }
  sending.announced = true;
  sending.posted_nbytes += message.nbytes;
  mailbox.posted.store(index + 1, std::memory_order_release);
  segment(peer).header().bell.ring();
}

Status LocalTransport::recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) {
  ZERO_TRY(health());
  ZERO_TRY(make_messages());
  messages_->receivings[static_cast<size_t>(peer)] = {fingerprint, static_cast<std::byte *>(data), nbytes, 0, false, true};
  return {};
}

Status LocalTransport::recv_poll(int64_t peer, bool *out_done) {
  const Status before = health();
  Receiving &receiving = messages_->receivings[static_cast<size_t>(peer)];
  Mailbox &mailbox = segment(peer).mailbox(rank_, Lane::messages);
  for (;;) {
    *out_done = receiving.announced && receiving.taken_nbytes == receiving.nbytes;
    if (*out_done) {
      receiving.active = false;
      return {};
    }
    const uint64_t index = mailbox.taken.load(std::memory_order_relaxed);
    if (mailbox.posted.load(std::memory_order_acquire) <= index) break;
    const Message &message = mailbox.slots[index % 2];
    const Status taken = take_chunk(peer, receiving, message);
    if (!taken.ok()) return fail(taken);
    if (message.kind == MessageKind::arena && may_have_read_torn()) return health();
    mailbox.taken.store(index + 1, std::memory_order_release);
    segment(peer).header().bell.ring();
  }
  ZERO_TRY(before);
  processes_.look();
  return check_peer(peer, mailbox.posted, mailbox.taken.load(std::memory_order_relaxed) + 1, &receiving.fingerprint);
}

Status LocalTransport::take_chunk(int64_t peer, Receiving &receiving, const Message &message) {
  const bool in_order = receiving.announced == (message.has_fingerprint == 0);
  ZERO_CHECK(in_order, ZERO_E_TRANSPORT, "rank %lld got a message from rank %lld that is out of order in %s", name_of(rank_), name_of(peer),
             to_text(receiving.fingerprint).c_str());
  if (!receiving.announced) ZERO_TRY(compare(receiving.fingerprint, name_of(rank_), message.fingerprint, name_of(peer)));
  ZERO_CHECK(message.nbytes >= 0 && message.nbytes <= receiving.nbytes - receiving.taken_nbytes, ZERO_E_TRANSPORT,
             "rank %lld sent %lld bytes, rank %lld has room for %lld in %s", name_of(peer), lld(message.nbytes), name_of(rank_),
             lld(receiving.nbytes - receiving.taken_nbytes), to_text(receiving.fingerprint).c_str());
  const void *data = nullptr;
  ZERO_TRY(resolve(peer, message, 0, &data));
  if (message.nbytes > 0) std::memcpy(receiving.data + receiving.taken_nbytes, data, static_cast<size_t>(message.nbytes));
  receiving.announced = true;
  receiving.taken_nbytes += message.nbytes;
  return {};
}

}  // namespace zero
