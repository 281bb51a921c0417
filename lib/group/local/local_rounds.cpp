/// @file LocalRounds: the rounds of the local transport. Pieces are staged or offered in place,
/// posted to every peer, compared, read and taken.
///
/// Invariant: a rank starts round k only when every peer has taken its messages up to k - 2,
/// because all of them have posted round k - 1, which it has seen. So two slots and two staging
/// halves suffice, and start never waits.
#include "group/local/local_rounds.h"

#include "core/machine.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace zero {
namespace {

/// A running peer answers within some hundred nanoseconds. If ranks may be waiting for this one's
/// core, polling is useless.
int32_t looks_per_poll(int64_t ranks) {
  constexpr int32_t kLooks = 16;
  return ranks <= online_cores() ? kLooks : 1;
}

}  // namespace

LocalRounds::LocalRounds(LocalPeers &peers, LocalMappings &mappings)
    : peers_(peers),
      mappings_(mappings),
      rank_(peers.rank()),
      size_(peers.size()),
      looks_(looks_per_poll(size_)),
      turns_(size_, rank_),
      arrived_(static_cast<size_t>(size_), true),
      piece_of_(static_cast<size_t>(size_)) {}

Status LocalRounds::start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) {
  ZERO_TRY(peers_.health());
  const uint64_t index = rounds_;
  ZERO_CHECK(!untaken_, ZERO_E_INTERNAL, "rank %lld starts round %llu before it has taken the one before", name_of(rank_),
             static_cast<unsigned long long>(index));
  untaken_ = true;
  ZERO_TRY(place_pieces(offers, index % 2));
  if (copier_ != nullptr) ZERO_TRY(copier_->settle());
  const uint64_t withdrawn = mappings_.take_withdrawn();
  ++rounds_;
  compares_ = fingerprint != nullptr;
  if (compares_) current_ = *fingerprint;
  arrivals_ = arrivals;
  arrivals_[static_cast<size_t>(rank_)].rest_is_there = rest_is_there_;
  arrived_.assign(static_cast<size_t>(size_), false);
  arrived_[static_cast<size_t>(rank_)] = true;
  missing_ = size_ - 1;
  turn_ = 1;
  polls_ = 0;
  reads_in_place_ = false;
  for (int64_t peer = 0; peer < size_; ++peer) {
    if (peer != rank_) post(peer, fingerprint, offers[static_cast<size_t>(peer)], index, withdrawn);
  }
  for (int64_t peer = 0; peer < size_; ++peer) {
    if (peer != rank_) peers_.ring_for(peer);
  }
  return {};
}

/// A piece with a rest does not travel in a message, because its rest must be behind it in memory.
bool LocalRounds::travels_in_message(const Offer &offer) const {
  return offer.nbytes <= Message::kSmallBytes && offer.rest_nbytes == 0 && copier_ == nullptr;
}

/// Memory in an arena is read in place, and then this rank must wait until its peers have read it.
/// A copy of a small piece costs less than that wait, unless the host cannot read the memory.
bool LocalRounds::pays_to_stage(const Piece &piece) const {
  constexpr int64_t kLittleNbytes = 1024;
  return piece.nbytes <= kLittleNbytes && piece.rest_nbytes == 0 && copier_ == nullptr;
}

/// Index of the piece that an offer belongs to. Those of collectives are one, or follow one another
/// in memory: few are looked for.
int32_t LocalRounds::piece_for(const Offer &offer) {
  const auto same = [&offer](const Piece &piece) { return piece.data == offer.data; };
  const bool later = pieces_.empty() || std::less<>()(highest_, offer.data);
  const auto known = later ? pieces_.rend() : std::find_if(pieces_.rbegin(), pieces_.rend(), same);
  if (later) highest_ = offer.data;
  if (known == pieces_.rend()) {
    pieces_.push_back({offer.data, offer.nbytes, offer.rest_nbytes, 0, 0});
    return static_cast<int32_t>(pieces_.size()) - 1;
  }
  known->nbytes = std::max(known->nbytes, offer.nbytes);
  known->rest_nbytes = std::max(known->rest_nbytes, offer.rest_nbytes);
  return static_cast<int32_t>(pieces_.rend() - known) - 1;
}

Status LocalRounds::place_pieces(std::span<const Offer> offers, uint64_t half) {
  pieces_.clear();
  rest_is_there_ = true;
  for (int64_t peer = 0; peer < size_; ++peer) {
    const Offer &offer = offers[static_cast<size_t>(peer)];
    if (peer == rank_ || offer.nbytes + offer.rest_nbytes == 0 || travels_in_message(offer)) continue;
    piece_of_[static_cast<size_t>(peer)] = piece_for(offer);
  }
  int64_t used = 0;
  for (Piece &piece : pieces_) {
    if (!pays_to_stage(piece) && mappings_.find_offered(piece.data, piece.nbytes + piece.rest_nbytes, &piece.mapping_id, &piece.offset)) {
      offered_in_place_ = rounds_ + 1;
      quiet_turn_ = 1;
      continue;
    }
    rest_is_there_ = rest_is_there_ && piece.rest_nbytes == 0;
    piece.offset = peers_.own().half_offset(half) + used;
    used += round_up(piece.nbytes, static_cast<int64_t>(kCacheLine));
    if (used > Segment::half_nbytes(size_, peers_.round_nbytes())) {
      return peers_.fail(Status::error(ZERO_E_TRANSPORT, "rank %lld offers more than the %lld bytes of a round", name_of(rank_),
                                       lld(peers_.round_nbytes())));
    }
    if (copier_ != nullptr) {
      copier_->copy(peers_.own().at(piece.offset), piece.data, piece.nbytes, piece.nbytes);
    } else {
      staging_.copy(peers_.own().at(piece.offset), piece.data, piece.nbytes);
    }
  }
  return {};
}

void LocalRounds::post(int64_t peer, const Fingerprint *fingerprint, const Offer &offer, uint64_t index, uint64_t withdrawn) {
  Mailbox &mailbox = peers_.own().mailbox(peer, Lane::rounds);
  Message &message = mailbox.slots[index % 2];
  message.has_fingerprint = fingerprint != nullptr ? 1 : 0;
  if (fingerprint != nullptr) message.fingerprint = *fingerprint;
  message.withdrawn = withdrawn;
  message.nbytes = offer.nbytes;
  message.rest_is_there = rest_is_there_ ? 1 : 0;
  if (offer.nbytes <= 0) {
    message.kind = MessageKind::none;
  } else if (travels_in_message(offer)) {
    message.kind = MessageKind::small;
    std::memcpy(message.payload.data(), offer.data, static_cast<size_t>(offer.nbytes));
  } else {
    const Piece &piece = pieces_[static_cast<size_t>(piece_of_[static_cast<size_t>(peer)])];
    message.kind = piece.mapping_id != 0 ? MessageKind::arena : MessageKind::staged;
    message.mapping_id = piece.mapping_id;
    message.offset = piece.offset;
  }
  // Few peers are rung in any case, so that nothing need be ordered before a look at whom they
  // await.
  mailbox.posted.store(index + 1, size_ <= LocalPeers::kFew ? std::memory_order_release : std::memory_order_seq_cst);
}

Status LocalRounds::poll(bool *out_arrived) {
  *out_arrived = false;
  // Looked at before the messages: a failure of peers that are further on follows what they posted
  // for this round.
  const Status before = peers_.health();
  const bool at_all = peers_.looks_at_all(++polls_);
  for (int32_t look = 0; missing_ > 0 && look < looks_; ++look) {
    if (look > 0) relax();
    if (at_all) ZERO_TRY(take_posted(rounds_ - 1));
    // Also after a look at all: a rank that is about to sleep awaits one that has not posted, which
    // will ring for it.
    if (size_ > LocalPeers::kFew) ZERO_TRY(take_in_turn(rounds_ - 1));
  }
  *out_arrived = missing_ == 0;
  if (*out_arrived) return {};
  ZERO_TRY(before);
  peers_.processes().look();
  for (int64_t peer = 0; at_all && peer < size_; ++peer) {
    if (arrived_[static_cast<size_t>(peer)]) continue;
    ZERO_TRY(peers_.check_peer(peer, peers_.segment(peer).mailbox(rank_, Lane::rounds).posted, rounds_, &current_));
  }
  return {};
}

Status LocalRounds::take_posted(uint64_t index) {
  for (int64_t peer = 0; peer < size_; ++peer) {
    if (arrived_[static_cast<size_t>(peer)]) continue;
    if (peers_.segment(peer).mailbox(rank_, Lane::rounds).posted.load(std::memory_order_acquire) <= index) continue;
    ZERO_TRY(take_from(peer, index));
  }
  return {};
}

/// As far as peers have posted in their turn; the next is the one that this rank awaits.
Status LocalRounds::take_in_turn(uint64_t index) {
  for (; missing_ > 0; ++turn_) {
    const int64_t peer = turns_[turn_];
    if (arrived_[static_cast<size_t>(peer)]) continue;
    const std::atomic<uint64_t> &posted = peers_.segment(peer).mailbox(rank_, Lane::rounds).posted;
    if (posted.load(std::memory_order_acquire) <= index) {
      peers_.await(peer);
      if (posted.load(std::memory_order_seq_cst) <= index) return {};
    }
    ZERO_TRY(take_from(peer, index));
  }
  return {};
}

Status LocalRounds::take_from(int64_t peer, uint64_t index) {
  const Message &message = peers_.segment(peer).mailbox(rank_, Lane::rounds).slots[index % 2];
  const Status accepted = accept(peer, message, &arrivals_[static_cast<size_t>(peer)]);
  if (!accepted.ok()) return peers_.fail(accepted);
  arrived_[static_cast<size_t>(peer)] = true;
  --missing_;
  return {};
}

Status LocalRounds::accept(int64_t peer, const Message &message, Arrival *out) {
  const bool theirs = message.has_fingerprint != 0;
  if (compares_ && theirs) ZERO_TRY(compare(current_, name_of(rank_), message.fingerprint, name_of(peer)));
  ZERO_CHECK(!compares_ || theirs, ZERO_E_MISMATCH, "rank %lld called %s but rank %lld was still in an earlier call", name_of(rank_),
             to_text(current_).c_str(), name_of(peer));
  ZERO_CHECK(compares_ || !theirs, ZERO_E_MISMATCH, "rank %lld called %s but rank %lld was still in %s", name_of(peer),
             to_text(message.fingerprint).c_str(), name_of(rank_), to_text(current_).c_str());
  ZERO_CHECK(message.nbytes == out->nbytes, ZERO_E_TRANSPORT, "rank %lld offered %lld bytes in %s, rank %lld expected %lld", name_of(peer),
             lld(message.nbytes), to_text(current_).c_str(), name_of(rank_), lld(out->nbytes));
  out->rest_is_there = message.rest_is_there != 0;
  reads_in_place_ = reads_in_place_ || message.kind == MessageKind::arena;
  return mappings_.resolve(peer, message, out->rest_is_there ? out->rest_nbytes : 0, &out->data);
}

/// An error of what still reads arrivals is met again when the collective ends.
void LocalRounds::consume() {
  if (copier_ != nullptr) (void)copier_->settle();
  if (reads_in_place_ && peers_.may_have_read_torn()) may_be_torn_ = true;
  untaken_ = false;
  const uint64_t index = rounds_ - 1;
  for (int64_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    Mailbox &mailbox = peers_.segment(peer).mailbox(rank_, Lane::rounds);
    const uint64_t withdrawn = mailbox.slots[index % 2].withdrawn;
    if (withdrawn != 0) mappings_.forget(peer, withdrawn);
    mailbox.taken.store(rounds_, std::memory_order_seq_cst);
    if (peers_.is_awaited_by(peer)) peers_.ring(peer);
  }
}

Status LocalRounds::poll_quiet(bool *out_quiet) {
  *out_quiet = false;
  if (copier_ != nullptr) ZERO_TRY(copier_->settle());
  if (may_be_torn_) return peers_.health();
  if (offered_in_place_ != 0) {
    const Status before = peers_.health();
    bool quiet = all_quiet();
    for (int32_t look = 1; !quiet && look < looks_; ++look) {
      relax();
      quiet = all_quiet();
    }
    if (!quiet) {
      peers_.processes().look();
      return before;
    }
    offered_in_place_ = 0;
  }
  *out_quiet = true;
  return {};
}

/// As take_in_turn.
bool LocalRounds::all_quiet() {
  for (; quiet_turn_ < size_; ++quiet_turn_) {
    const int64_t peer = turns_[quiet_turn_];
    if (is_quiet(peer)) continue;
    peers_.await(peer);
    if (!is_quiet(peer)) return false;
  }
  return true;
}

/// A peer that has left or ended no longer reads this rank's memory. The next round reports its
/// absence.
bool LocalRounds::is_quiet(int64_t peer) const {
  if (peers_.own().mailbox(peer, Lane::rounds).taken.load(std::memory_order_seq_cst) >= offered_in_place_) return true;
  return peers_.has_left(peer) || peers_.processes().ended(peer);
}

bool LocalRounds::awaits(int64_t peer) const {
  if (peer == rank_) return false;
  if (missing_ > 0) return !arrived_[static_cast<size_t>(peer)];
  return peers_.own().mailbox(peer, Lane::rounds).taken.load(std::memory_order_acquire) < offered_in_place_;
}

}  // namespace zero
