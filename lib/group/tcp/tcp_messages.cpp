/// @file TcpMessages: point-to-point messages over sockets. Both sides announce a message, so that
/// a wrong count is an error on both before any data moves. The data then moves a few chunks at a
/// time, and the sender is done when the receiver has taken all of them.
#include "group/tcp/tcp_messages.h"

#include "group/tcp/tcp_transport.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kChunkNbytes = 65536;
constexpr int64_t kMostUnderWay = 4 * kChunkNbytes;

}  // namespace

bool TcpFrames::keep(TcpFrame &&frame) {
  if (frames_.size() >= most_) return false;
  frames_.push_back(std::move(frame));
  return true;
}

int64_t TcpFrames::nbytes() const {
  return std::accumulate(frames_.begin(), frames_.end(), int64_t{0},
                         [](int64_t sum, const TcpFrame &frame) { return sum + frame.nbytes(); });
}

int64_t TcpMessages::staging_nbytes() const {
  int64_t nbytes = 0;
  for (const Way &way : ways_) nbytes += way.replies.nbytes() + way.coming.nbytes();
  return nbytes;
}

bool TcpMessages::on_frame(int64_t peer, TcpFrame &&frame) {
  const size_t nbytes = frame.content().size();
  switch (frame.kind()) {
    case TcpKind::request:
      return nbytes == sizeof(Fingerprint) && at(peer).replies.keep(std::move(frame));
    case TcpKind::taken:
      return nbytes == sizeof(int64_t) && at(peer).replies.keep(std::move(frame));
    case TcpKind::offer:
      return nbytes == sizeof(Fingerprint) && at(peer).coming.keep(std::move(frame));
    case TcpKind::chunk:
      return nbytes > 0 && at(peer).coming.keep(std::move(frame));
    default:
      return false;
  }
}

Status TcpMessages::check_way(int64_t peer) const {
  ZERO_CHECK(group_.linked(peer), ZERO_E_TRANSPORT, "rank %lld has no message with rank %lld over tcp: they share a host",
             group_.name_of(group_.rank()), group_.name_of(peer));
  return {};
}

Status TcpMessages::send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) {
  const auto guard = group_.lock();
  ZERO_TRY(group_.failure_);
  ZERO_TRY(check_way(peer));
  Moving &sending = at(peer).sending;
  ZERO_CHECK(!sending.active, ZERO_E_INTERNAL, "a message to rank %lld was started before the last one ended", group_.name_of(peer));
  sending = {fingerprint, const_cast<std::byte *>(static_cast<const std::byte *>(offer.data)), offer.nbytes, true};
  group_.tell(peer, TcpKind::offer, bytes_of(fingerprint));
  return {};
}

Status TcpMessages::recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) {
  const auto guard = group_.lock();
  ZERO_TRY(group_.failure_);
  ZERO_TRY(check_way(peer));
  Moving &receiving = at(peer).receiving;
  ZERO_CHECK(!receiving.active, ZERO_E_INTERNAL, "a message from rank %lld was started before the last one ended", group_.name_of(peer));
  receiving = {fingerprint, static_cast<std::byte *>(data), nbytes, true};
  group_.tell(peer, TcpKind::request, bytes_of(fingerprint));
  return {};
}

Status TcpMessages::send_poll(int64_t peer, bool *out_done) {
  *out_done = false;
  const auto guard = group_.lock();
  group_.mesh_->progress();
  Moving &sending = at(peer).sending;
  if (const Status moved = move_send(peer); !moved.ok()) return group_.fail(moved);
  *out_done = sending.complete() && group_.mesh_->flushed(group_.mesh_rank(peer));
  if (*out_done) {
    sending.active = false;
    return {};
  }
  ZERO_TRY(group_.look(&sending.fingerprint, true));
  return sending.complete() ? Status() : group_.check_left(peer, &sending.fingerprint);
}

Status TcpMessages::move_send(int64_t peer) {
  Way &way = at(peer);
  size_t used = 0;
  for (; used < way.replies.size() && !way.sending.complete(); ++used) ZERO_TRY(take_reply(peer, way.replies[used]));
  way.replies.drop(used);
  if (way.sending.met) send_chunks(peer);
  return {};
}

Status TcpMessages::take_reply(int64_t peer, const TcpFrame &frame) {
  Moving &sending = at(peer).sending;
  if (!sending.met && frame.kind() == TcpKind::request) {
    sending.met = true;
    return compare(sending.fingerprint, group_.name_of(group_.rank()), frame.begin<Fingerprint>(), group_.name_of(peer));
  }
  const int64_t taken = frame.kind() == TcpKind::taken ? frame.begin<int64_t>() : 0;
  ZERO_CHECK(sending.met && taken > 0 && taken <= sending.sent_nbytes - sending.taken_nbytes, ZERO_E_TRANSPORT,
             "rank %lld got a reply from rank %lld that is out of order in %s", group_.name_of(group_.rank()), group_.name_of(peer),
             to_text(sending.fingerprint).c_str());
  sending.taken_nbytes += taken;
  return {};
}

void TcpMessages::send_chunks(int64_t peer) {
  Moving &sending = at(peer).sending;
  while (sending.sent_nbytes < sending.nbytes) {
    const int64_t nbytes = std::min(kChunkNbytes, sending.nbytes - sending.sent_nbytes);
    if (sending.sent_nbytes - sending.taken_nbytes + nbytes > kMostUnderWay) break;
    group_.tell(peer, TcpKind::chunk, {sending.data + sending.sent_nbytes, static_cast<size_t>(nbytes)});
    sending.sent_nbytes += nbytes;
  }
}

Status TcpMessages::recv_poll(int64_t peer, bool *out_done) {
  *out_done = false;
  const auto guard = group_.lock();
  group_.mesh_->progress();
  Moving &receiving = at(peer).receiving;
  if (const Status moved = move_recv(peer); !moved.ok()) return group_.fail(moved);
  // The sender waits for what this rank has told it last.
  *out_done = receiving.complete() && group_.mesh_->flushed(group_.mesh_rank(peer));
  if (*out_done) {
    receiving.active = false;
    return {};
  }
  ZERO_TRY(group_.look(&receiving.fingerprint, true));
  return receiving.complete() ? Status() : group_.check_left(peer, &receiving.fingerprint);
}

Status TcpMessages::move_recv(int64_t peer) {
  Way &way = at(peer);
  size_t used = 0;
  for (; used < way.coming.size() && !way.receiving.complete(); ++used) {
    ZERO_TRY(take_coming(peer, way.coming[used]));
    group_.mesh_->give_back(std::move(way.coming[used]));
  }
  way.coming.drop(used);
  return {};
}

Status TcpMessages::take_coming(int64_t peer, const TcpFrame &frame) {
  Moving &receiving = at(peer).receiving;
  if (!receiving.met && frame.kind() == TcpKind::offer) {
    receiving.met = true;
    return compare(receiving.fingerprint, group_.name_of(group_.rank()), frame.begin<Fingerprint>(), group_.name_of(peer));
  }
  ZERO_CHECK(receiving.met && frame.kind() == TcpKind::chunk, ZERO_E_TRANSPORT,
             "rank %lld got a message from rank %lld that is out of order in %s", group_.name_of(group_.rank()), group_.name_of(peer),
             to_text(receiving.fingerprint).c_str());
  const auto nbytes = static_cast<int64_t>(frame.content().size());
  ZERO_CHECK(nbytes <= receiving.nbytes - receiving.taken_nbytes, ZERO_E_TRANSPORT,
             "rank %lld sent %lld bytes, rank %lld has room for %lld in %s", group_.name_of(peer), lld(nbytes),
             group_.name_of(group_.rank()), lld(receiving.nbytes - receiving.taken_nbytes), to_text(receiving.fingerprint).c_str());
  std::memcpy(receiving.data + receiving.taken_nbytes, frame.content().data(), frame.content().size());
  receiving.taken_nbytes += nbytes;
  group_.tell(peer, TcpKind::taken, bytes_of(nbytes));
  return {};
}

}  // namespace zero
