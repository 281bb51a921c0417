/// @file Rounds over sockets. Every rank sends every other rank a frame with its piece, and
/// compares the frames that arrive with its own. A round has arrived once all frames are there and
/// the rank's own are sent. No rank is more than one round ahead of another, so few frames are
/// kept.
#include "group/tcp/tcp_transport.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

namespace zero {
namespace {

/// The content of a round's frame; the piece follows, as aligned as memory from the heap.
struct RoundHead {
  uint64_t has_fingerprint;
  int64_t nbytes;
  Fingerprint fingerprint;
};
static_assert((sizeof(TcpHead) + sizeof(RoundHead)) % alignof(std::max_align_t) == 0);

}  // namespace

TcpTransport::TcpTransport(std::shared_ptr<TcpMesh> mesh, uint64_t number, std::vector<int64_t> members, int64_t rank)
    : HostsTransport(rank, std::ssize(members), {.name = "tcp", .round_nbytes = kRoundNbytes, .longest_nbytes = kLongestNbytes}),
      mesh_(std::move(mesh)),
      number_(number),
      members_(std::move(members)),
      ranks_(members_.size()),
      messages_(*this, size()) {
  set_interfaces(*this, messages_, *this);
  capabilities_.place = place_of(hosts(), rank);
  const auto guard = lock();
  try {
    mesh_->enroll(number_, this);
  } catch (const std::bad_alloc &) {
    mesh_->drop(number_);
    throw;
  }
}

TcpTransport::~TcpTransport() {
  const auto guard = lock();
  try {
    // Ranks that do not know of the failure yet receive its cause before the notice that this rank
    // has left.
    if (!failure_.ok()) tell_failure();
    send_to_all(TcpKind::left);
    mesh_->forget(number_);
  } catch (const std::bad_alloc &) {
    mesh_->drop(number_);
  }
}

void TcpTransport::send_to_all(TcpKind kind, std::span<const std::byte> content, std::span<const std::byte> rest) {
  for (int64_t peer = 0; peer < size(); ++peer) tell(peer, kind, content, rest);
}

int64_t TcpTransport::staging_nbytes() const {
  const auto guard = lock();
  int64_t nbytes = messages_.staging_nbytes();
  for (const Peer &peer : ranks_) nbytes += peer.piece.nbytes() + peer.rounds.nbytes();
  return nbytes;
}

Status TcpTransport::check_pieces(std::span<const Offer> offers, std::span<const Arrival> arrivals) const {
  for (int64_t peer = 0; peer < size(); ++peer) {
    const int64_t offered = offers[static_cast<size_t>(peer)].nbytes;
    const int64_t expected = arrivals[static_cast<size_t>(peer)].nbytes;
    if (peer == rank()) continue;
    ZERO_CHECK(linked(peer) || (offered == 0 && expected == 0), ZERO_E_TRANSPORT,
               "rank %lld offers %lld bytes to rank %lld and expects %lld, but nothing moves over tcp between ranks of one host",
               name_of(rank()), lld(offered), name_of(peer), lld(expected));
    ZERO_CHECK(offered <= kRoundNbytes, ZERO_E_TRANSPORT, "rank %lld offers more than the %lld bytes of a round", name_of(rank()),
               lld(kRoundNbytes));
  }
  return {};
}

Status TcpTransport::start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) {
  const auto guard = lock();
  ZERO_TRY(failure_);
  if (const Status checked = check_pieces(offers, arrivals); !checked.ok()) return fail(checked);
  compares_ = fingerprint != nullptr;
  if (compares_) current_ = *fingerprint;
  under_way_ = true;
  arrivals_ = arrivals;
  missing_ = 0;
  for (int64_t peer = 0; peer < size(); ++peer) {
    Arrival &arrival = arrivals[static_cast<size_t>(peer)];
    arrival.data = nullptr;
    arrival.rest_is_there = false;
    at(peer).awaited = linked(peer);
    if (!linked(peer)) continue;
    ++missing_;
    const Offer &offer = offers[static_cast<size_t>(peer)];
    const RoundHead head = {compares_ ? uint64_t{1} : uint64_t{0}, offer.nbytes, compares_ ? current_ : Fingerprint()};
    tell(peer, TcpKind::round, bytes_of(head), {static_cast<const std::byte *>(offer.data), static_cast<size_t>(offer.nbytes)});
  }
  return {};
}

/// False when it is not a round's frame, or comes too early.
bool TcpTransport::note_round(Peer &peer, TcpFrame &&frame) {
  if (frame.content().size() < sizeof(RoundHead)) return false;
  const auto head = frame.begin<RoundHead>();
  const auto piece_nbytes = static_cast<int64_t>(frame.content().size() - sizeof head);
  if (head.has_fingerprint > 1 || head.nbytes != piece_nbytes || head.nbytes > kRoundNbytes) return false;
  return peer.rounds.keep(std::move(frame));
}

Status TcpTransport::take_pieces() {
  for (int64_t peer = 0; peer < size(); ++peer) {
    Peer &state = at(peer);
    if (!state.awaited || state.rounds.empty()) continue;
    state.piece = std::move(state.rounds[0]);
    state.rounds.drop(1);
    ZERO_TRY(accept(peer, &arrivals_[static_cast<size_t>(peer)]));
    state.awaited = false;
    --missing_;
  }
  return {};
}

Status TcpTransport::accept(int64_t peer, Arrival *out) {
  const TcpFrame &frame = at(peer).piece;
  const auto head = frame.begin<RoundHead>();
  const bool theirs = head.has_fingerprint != 0;
  if (compares_ && theirs) ZERO_TRY(compare(current_, name_of(rank()), head.fingerprint, name_of(peer)));
  ZERO_CHECK(!compares_ || theirs, ZERO_E_MISMATCH, "rank %lld called %s but rank %lld was still in an earlier call", name_of(rank()),
             to_text(current_).c_str(), name_of(peer));
  ZERO_CHECK(compares_ || !theirs, ZERO_E_MISMATCH, "rank %lld called %s but rank %lld was still in %s", name_of(peer),
             to_text(head.fingerprint).c_str(), name_of(rank()), to_text(current_).c_str());
  ZERO_CHECK(head.nbytes == out->nbytes, ZERO_E_TRANSPORT, "rank %lld offered %lld bytes in %s, rank %lld expected %lld", name_of(peer),
             lld(head.nbytes), to_text(current_).c_str(), name_of(rank()), lld(out->nbytes));
  if (head.nbytes > 0) out->data = frame.content().data() + sizeof head;
  return {};
}

/// Peers that wait for bytes of this rank must not depend on its next call.
bool TcpTransport::flushed() const {
  bool all = true;
  for (const int64_t member : members_) all = mesh_->flushed(member) && all;
  return all;
}

Status TcpTransport::poll(bool *out_arrived) {
  *out_arrived = false;
  const auto guard = lock();
  mesh_->progress();
  if (const Status taken = take_pieces(); !taken.ok()) return fail(taken);
  *out_arrived = missing_ == 0 && flushed();
  if (*out_arrived) return {};
  ZERO_TRY(look(&current_, true));
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (at(peer).awaited) ZERO_TRY(check_left(peer, &current_));
  }
  return {};
}

void TcpTransport::consume() {
  const auto guard = lock();
  under_way_ = false;
  arrivals_ = {};
  for (Peer &peer : ranks_) {
    if (peer.piece.nbytes() > 0) mesh_->give_back(std::move(peer.piece));
  }
}

Status TcpTransport::poll_quiet(bool *out_quiet) {
  const auto guard = lock();
  mesh_->progress();
  *out_quiet = flushed();
  return *out_quiet ? Status() : look(doing(), true);
}

}  // namespace zero
