/// @file Point-to-point messages over sockets: both sides announce a message, so that a wrong count is an error on both before any data
/// moves; then a few chunks at a time, and the sender is done when the receiver has taken all.
#include "group/tcp/tcp_transport.h"

#include <algorithm>
#include <cstring>

namespace zero {
namespace {

constexpr int64_t kChunkNbytes = 65536;
constexpr int64_t kMostUnderWay = 4 * kChunkNbytes;

}  // namespace

Status TcpTransport::check_way(int64_t peer) const {
  ZERO_CHECK(linked(peer), ZERO_E_TRANSPORT, "rank %lld has no message with rank %lld over tcp: they share a host", name_of(rank_),
             name_of(peer));
  return {};
}

Status TcpTransport::send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) {
  const auto guard = lock();
  ZERO_TRY(failure_);
  ZERO_TRY(check_way(peer));
  Sending &sending = at(peer).sending;
  ZERO_CHECK(!sending.active, ZERO_E_INTERNAL, "a message to rank %lld was started before the last one ended", name_of(peer));
  sending = {fingerprint, static_cast<const std::byte *>(offer.data), offer.nbytes, 0, 0, false, true};
  tell(peer, TcpKind::offer, bytes_of(fingerprint));
  return {};
}

Status TcpTransport::recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) {
  const auto guard = lock();
  ZERO_TRY(failure_);
  ZERO_TRY(check_way(peer));
  Receiving &receiving = at(peer).receiving;
  ZERO_CHECK(!receiving.active, ZERO_E_INTERNAL, "a message from rank %lld was started before the last one ended", name_of(peer));
  receiving = {fingerprint, static_cast<std::byte *>(data), nbytes, 0, false, true};
  tell(peer, TcpKind::request, bytes_of(fingerprint));
  return {};
}

Status TcpTransport::send_poll(int64_t peer, bool *out_done) {
  *out_done = false;
  const auto guard = lock();
  mesh_->progress();
  Sending &sending = at(peer).sending;
  if (const Status moved = move_send(peer); !moved.ok()) return fail(moved);
  *out_done = sending.complete() && mesh_->flushed(mesh_rank(peer));
  if (*out_done) {
    sending.active = false;
    return {};
  }
  ZERO_TRY(look(&sending.fingerprint, true));
  return sending.complete() ? Status() : check_left(peer, &sending.fingerprint);
}

Status TcpTransport::move_send(int64_t peer) {
  Peer &state = at(peer);
  size_t used = 0;
  for (; used < state.replies.size() && !state.sending.complete(); ++used) ZERO_TRY(take_reply(peer, state.replies[used]));
  state.replies.erase(state.replies.begin(), state.replies.begin() + static_cast<std::ptrdiff_t>(used));
  if (state.sending.met) send_chunks(peer);
  return {};
}

Status TcpTransport::take_reply(int64_t peer, const TcpFrame &frame) {
  Sending &sending = at(peer).sending;
  if (!sending.met && frame.kind() == TcpKind::request) {
    sending.met = true;
    return compare(sending.fingerprint, name_of(rank_), frame.begin<Fingerprint>(), name_of(peer));
  }
  const int64_t taken = frame.kind() == TcpKind::taken ? frame.begin<int64_t>() : 0;
  ZERO_CHECK(sending.met && taken > 0 && taken <= sending.sent_nbytes - sending.taken_nbytes, ZERO_E_TRANSPORT,
             "rank %lld got a reply from rank %lld that is out of order in %s", name_of(rank_), name_of(peer),
             to_text(sending.fingerprint).c_str());
  sending.taken_nbytes += taken;
  return {};
}

void TcpTransport::send_chunks(int64_t peer) {
  Sending &sending = at(peer).sending;
  while (sending.sent_nbytes < sending.nbytes) {
    const int64_t nbytes = std::min(kChunkNbytes, sending.nbytes - sending.sent_nbytes);
    if (sending.sent_nbytes - sending.taken_nbytes + nbytes > kMostUnderWay) break;
    tell(peer, TcpKind::chunk, {sending.data + sending.sent_nbytes, static_cast<size_t>(nbytes)});
    sending.sent_nbytes += nbytes;
  }
}

Status TcpTransport::recv_poll(int64_t peer, bool *out_done) {
  *out_done = false;
  const auto guard = lock();
  mesh_->progress();
  Receiving &receiving = at(peer).receiving;
  if (const Status moved = move_recv(peer); !moved.ok()) return fail(moved);
  // The sender waits for what this rank has told it last.
  *out_done = receiving.complete() && mesh_->flushed(mesh_rank(peer));
  if (*out_done) {
    receiving.active = false;
    return {};
  }
  ZERO_TRY(look(&receiving.fingerprint, true));
  return receiving.complete() ? Status() : check_left(peer, &receiving.fingerprint);
}

Status TcpTransport::move_recv(int64_t peer) {
  Peer &state = at(peer);
  size_t used = 0;
  for (; used < state.coming.size() && !state.receiving.complete(); ++used) {
    ZERO_TRY(take_coming(peer, state.coming[used]));
    mesh_->give_back(std::move(state.coming[used]));
  }
  state.coming.erase(state.coming.begin(), state.coming.begin() + static_cast<std::ptrdiff_t>(used));
  return {};
}

Status TcpTransport::take_coming(int64_t peer, const TcpFrame &frame) {
  Receiving &receiving = at(peer).receiving;
  if (!receiving.met && frame.kind() == TcpKind::offer) {
    receiving.met = true;
    return compare(receiving.fingerprint, name_of(rank_), frame.begin<Fingerprint>(), name_of(peer));
  }
  ZERO_CHECK(receiving.met && frame.kind() == TcpKind::chunk, ZERO_E_TRANSPORT,
             "rank %lld got a message from rank %lld that is out of order in %s", name_of(rank_), name_of(peer),
             to_text(receiving.fingerprint).c_str());
  const auto nbytes = static_cast<int64_t>(frame.content().size());
  ZERO_CHECK(nbytes <= receiving.nbytes - receiving.taken_nbytes, ZERO_E_TRANSPORT,
             "rank %lld sent %lld bytes, rank %lld has room for %lld in %s", name_of(peer), lld(nbytes), name_of(rank_),
             lld(receiving.nbytes - receiving.taken_nbytes), to_text(receiving.fingerprint).c_str());
  std::memcpy(receiving.data + receiving.taken_nbytes, frame.content().data(), frame.content().size());
  receiving.taken_nbytes += nbytes;
  tell(peer, TcpKind::taken, bytes_of(nbytes));
  return {};
}

}  // namespace zero
