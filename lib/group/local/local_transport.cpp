/// @file Rounds of the local transport: pieces are staged or offered in place, posted to every peer, compared, read and taken.
///
/// Invariant: a rank starts round k only when every peer has taken its messages up to k - 2, because all of them have posted round k - 1,
/// which it has seen. So two slots and two staging halves suffice, and start never waits.
#include "group/local/local_transport.h"

#include "core/machine.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <utility>

namespace zero {
namespace {

/// A peer that is running answers within some hundred nanoseconds. Where ranks may be waiting for this one's core, looking on is vain.
int32_t looks_per_poll(int64_t ranks) {
  constexpr int32_t kLooks = 16;
  return ranks <= online_cores() ? kLooks : 1;
}

/// As many receive of every message; more than that of those that they await.
constexpr int64_t kFew = 8;
/// Polls in which a rank that awaits one of many peers looks for all of them: one may have called something else, or have gone.
constexpr int32_t kPollsPerLook = 8;

}  // namespace

LocalTransport::LocalTransport(int64_t rank, int64_t size, int64_t round_nbytes)
    : rank_(rank),
      size_(size),
      round_nbytes_(round_nbytes),
      looks_(looks_per_poll(size)),
      turns_(size, rank),
      segments_(std::make_shared<SegmentTable>(static_cast<size_t>(size))),
      arrived_(static_cast<size_t>(size), true),
      piece_of_(static_cast<size_t>(size)) {}

LocalTransport::~LocalTransport() {
  if (own().mapping() == nullptr) return;
  // Peers that have not been told yet receive why before they see that this rank has left.
  try {
    if (const Status failure = health(); !failure.ok()) send_to_all(failure);
  } catch (const std::bad_alloc &) {
    // They see that it has left.
  }
  own().header().left.store(1, std::memory_order_release);
  ring_all();
}

void LocalTransport::ring_all() {
  for (const Segment &segment : *segments_) {
    if (segment.mapping() == nullptr) continue;
    segment.header().news.fetch_add(1, std::memory_order_release);
    segment.header().bell.ring();
  }
}

/// For the next in turn. What it does is looked for once more afterwards: either it is seen then, or ring_for sees that it is awaited.
void LocalTransport::await(int64_t peer) {
  own().header().awaited.store(static_cast<uint64_t>(peer) + 1, std::memory_order_seq_cst);
}

/// After what the peer may wait for was stored, sequentially consistent.
void LocalTransport::ring_for(int64_t peer) {
  if (size_ <= kFew || is_awaited_by(peer)) segment(peer).header().bell.ring();
}

bool LocalTransport::is_awaited_by(int64_t peer) const {
  return segment(peer).header().awaited.load(std::memory_order_seq_cst) == static_cast<uint64_t>(rank_) + 1;
}

Status LocalTransport::start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) {
  ZERO_TRY(health());
  const uint64_t index = rounds_;
  ZERO_CHECK(!untaken_, ZERO_E_INTERNAL, "rank %lld starts round %llu before it has taken the one before", name_of(rank_),
             static_cast<unsigned long long>(index));
  untaken_ = true;
  ZERO_TRY(place_pieces(offers, index % 2));
  if (copier_ != nullptr) ZERO_TRY(copier_->settle());
  const uint64_t withdrawn = take_withdrawn();
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
    if (peer != rank_) ring_for(peer);
  }
  return {};
}

uint64_t LocalTransport::take_withdrawn() {
  if (!withdraws_.load(std::memory_order_acquire)) return 0;
  const std::lock_guard lock(sharing_mutex_);
  const uint64_t id = withdrawn_.back();
  withdrawn_.pop_back();
  withdraws_.store(!withdrawn_.empty(), std::memory_order_relaxed);
  return id;
}

/// A rest must lie behind its piece.
bool LocalTransport::travels_in_message(const Offer &offer) const {
  return offer.nbytes <= Message::kSmallBytes && offer.rest_nbytes == 0 && copier_ == nullptr;
}

/// What lies in an arena is read there, and then peers must be waited for. A copy of a little costs less than to receive from them, but for
/// memory that the host cannot read.
bool LocalTransport::pays_to_stage(const Piece &piece) const {
  constexpr int64_t kLittleNbytes = 1024;
  return piece.nbytes <= kLittleNbytes && piece.rest_nbytes == 0 && copier_ == nullptr;
}

/// Index of the piece that an offer belongs to. Those of collectives are one, or follow one another in memory: few are looked for.
int32_t LocalTransport::piece_for(const Offer &offer) {
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

Status LocalTransport::place_pieces(std::span<const Offer> offers, uint64_t half) {
  pieces_.clear();
  rest_is_there_ = true;
  for (int64_t peer = 0; peer < size_; ++peer) {
    const Offer &offer = offers[static_cast<size_t>(peer)];
    if (peer == rank_ || offer.nbytes + offer.rest_nbytes == 0 || travels_in_message(offer)) continue;
    piece_of_[static_cast<size_t>(peer)] = piece_for(offer);
  }
  int64_t used = 0;
  for (Piece &piece : pieces_) {
    if (!pays_to_stage(piece) && find_offered(piece.data, piece.nbytes + piece.rest_nbytes, &piece.mapping_id, &piece.offset)) {
      offered_in_place_ = rounds_ + 1;
      quiet_turn_ = 1;
      continue;
    }
    rest_is_there_ = rest_is_there_ && piece.rest_nbytes == 0;
    piece.offset = own().half_offset(half) + used;
    used += round_up(piece.nbytes, static_cast<int64_t>(kCacheLine));
    if (used > Segment::half_nbytes(size_, round_nbytes_)) {
      return fail(
          Status::error(ZERO_E_TRANSPORT, "rank %lld offers more than the %lld bytes of a round", name_of(rank_), lld(round_nbytes_)));
    }
    if (copier_ != nullptr) {
      copier_->copy(own().at(piece.offset), piece.data, piece.nbytes, piece.nbytes);
    } else {
      staging_.copy(own().at(piece.offset), piece.data, piece.nbytes);
    }
  }
  return {};
}

void LocalTransport::post(int64_t peer, const Fingerprint *fingerprint, const Offer &offer, uint64_t index, uint64_t withdrawn) {
  Mailbox &mailbox = own().mailbox(peer, Lane::rounds);
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
  // Few peers are rung in any case, so that nothing need be ordered before a look at whom they await.
  mailbox.posted.store(index + 1, size_ <= kFew ? std::memory_order_release : std::memory_order_seq_cst);
}

Status LocalTransport::poll(bool *out_arrived) {
  *out_arrived = false;
  // Looked at before the messages: a failure of peers that are further on follows what they posted for this round.
  const Status before = health();
  const bool at_all = looks_at_all();
  for (int32_t look = 0; missing_ > 0 && look < looks_; ++look) {
    if (look > 0) relax();
    if (at_all) ZERO_TRY(take_posted(rounds_ - 1));
    // Also after a look at all: a rank that is about to sleep awaits one that has not posted, which will ring for it.
    if (size_ > kFew) ZERO_TRY(take_in_turn(rounds_ - 1));
  }
  *out_arrived = missing_ == 0;
  if (*out_arrived) return {};
  ZERO_TRY(before);
  processes_.look();
  for (int64_t peer = 0; at_all && peer < size_; ++peer) {
    if (arrived_[static_cast<size_t>(peer)]) continue;
    ZERO_TRY(check_peer(peer, segment(peer).mailbox(rank_, Lane::rounds).posted, rounds_, &current_));
  }
  return {};
}

bool LocalTransport::looks_at_all() {
  const uint32_t news = own().header().news.load(std::memory_order_acquire);
  const bool told = std::exchange(news_seen_, news) != news;
  return size_ <= kFew || ++polls_ % kPollsPerLook == 0 || told;
}

Status LocalTransport::take_posted(uint64_t index) {
  for (int64_t peer = 0; peer < size_; ++peer) {
    if (arrived_[static_cast<size_t>(peer)]) continue;
    if (segment(peer).mailbox(rank_, Lane::rounds).posted.load(std::memory_order_acquire) <= index) continue;
    ZERO_TRY(take_from(peer, index));
  }
  return {};
}

/// As far as peers have posted in their turn; the next is the one that this rank awaits.
Status LocalTransport::take_in_turn(uint64_t index) {
  for (; missing_ > 0; ++turn_) {
    const int64_t peer = turns_[turn_];
    if (arrived_[static_cast<size_t>(peer)]) continue;
    const std::atomic<uint64_t> &posted = segment(peer).mailbox(rank_, Lane::rounds).posted;
    if (posted.load(std::memory_order_acquire) <= index) {
      await(peer);
      if (posted.load(std::memory_order_seq_cst) <= index) return {};
    }
    ZERO_TRY(take_from(peer, index));
  }
  return {};
}

Status LocalTransport::take_from(int64_t peer, uint64_t index) {
  const Message &message = segment(peer).mailbox(rank_, Lane::rounds).slots[index % 2];
  const Status accepted = accept(peer, message, &arrivals_[static_cast<size_t>(peer)]);
  if (!accepted.ok()) return fail(accepted);
  arrived_[static_cast<size_t>(peer)] = true;
  --missing_;
  return {};
}

Status LocalTransport::accept(int64_t peer, const Message &message, Arrival *out) {
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
  return resolve(peer, message, out->rest_is_there ? out->rest_nbytes : 0, &out->data);
}

Status LocalTransport::resolve(int64_t peer, const Message &message, int64_t rest_nbytes, const void **out_data) {
  *out_data = nullptr;
  if (message.kind == MessageKind::small) *out_data = message.payload.data();
  const Mapping *mapping = nullptr;
  if (message.kind == MessageKind::staged) mapping = segment(peer).mapping().get();
  if (message.kind == MessageKind::arena) {
    const std::lock_guard lock(sharing_mutex_);
    for (size_t i = 0; !attached_.empty() && i < attached_[static_cast<size_t>(peer)].size(); ++i) {
      const Mapping *shared = attached_[static_cast<size_t>(peer)][i].get();
      if (shared->id() == message.mapping_id) mapping = shared;
    }
  }
  if (message.kind == MessageKind::none || message.kind == MessageKind::small) return {};
  ZERO_CHECK(mapping != nullptr, ZERO_E_TRANSPORT, "rank %lld offered memory that rank %lld has not attached", name_of(peer),
             name_of(rank_));
  const int64_t nbytes = message.nbytes + rest_nbytes;
  const bool inside = message.offset >= 0 && nbytes <= mapping->nbytes() - message.offset;
  ZERO_CHECK(inside, ZERO_E_TRANSPORT, "rank %lld offered bytes %lld and on of %lld, %lld of them", name_of(peer), lld(message.offset),
             lld(mapping->nbytes()), lld(nbytes));
  *out_data = mapping->data() + message.offset;
  return {};
}

/// An error of what still reads arrivals is met again when the collective ends.
void LocalTransport::consume() {
  if (copier_ != nullptr) (void)copier_->settle();
  if (reads_in_place_ && may_have_read_torn()) may_be_torn_ = true;
  untaken_ = false;
  const uint64_t index = rounds_ - 1;
  for (int64_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    Mailbox &mailbox = segment(peer).mailbox(rank_, Lane::rounds);
    const uint64_t withdrawn = mailbox.slots[index % 2].withdrawn;
    if (withdrawn != 0) forget_attached(peer, withdrawn);
    mailbox.taken.store(rounds_, std::memory_order_seq_cst);
    if (is_awaited_by(peer)) segment(peer).header().bell.ring();
  }
}

Status LocalTransport::poll_quiet(bool *out_quiet) {
  *out_quiet = false;
  if (copier_ != nullptr) ZERO_TRY(copier_->settle());
  if (may_be_torn_) return health();
  if (offered_in_place_ != 0) {
    const Status before = health();
    bool quiet = all_quiet();
    for (int32_t look = 1; !quiet && look < looks_; ++look) {
      relax();
      quiet = all_quiet();
    }
    if (!quiet) {
      processes_.look();
      return before;
    }
    offered_in_place_ = 0;
  }
  *out_quiet = true;
  return {};
}

/// As take_in_turn.
bool LocalTransport::all_quiet() {
  for (; quiet_turn_ < size_; ++quiet_turn_) {
    const int64_t peer = turns_[quiet_turn_];
    if (is_quiet(peer)) continue;
    await(peer);
    if (!is_quiet(peer)) return false;
  }
  return true;
}

/// A peer that has left or ended no longer reads this rank's memory. The next round reports its absence.
bool LocalTransport::is_quiet(int64_t peer) const {
  if (own().mailbox(peer, Lane::rounds).taken.load(std::memory_order_seq_cst) >= offered_in_place_) return true;
  return segment(peer).header().left.load(std::memory_order_acquire) != 0 || processes_.ended(peer);
}

bool LocalTransport::find_offered(const void *data, int64_t nbytes, uint64_t *out_id, int64_t *out_offset) {
  const auto *begin = static_cast<const std::byte *>(data);
  const std::lock_guard lock(sharing_mutex_);
  for (const Offered &offered : offered_) {
    if (begin < offered.begin || begin + nbytes > offered.begin + offered.nbytes) continue;
    *out_id = offered.id;
    *out_offset = begin - offered.begin;
    return true;
  }
  return false;
}

void LocalTransport::forget_attached(int64_t peer, uint64_t mapping_id) {
  const std::lock_guard lock(sharing_mutex_);
  if (attached_.empty()) return;
  std::erase_if(attached_[static_cast<size_t>(peer)], [=](const std::shared_ptr<Mapping> &shared) { return shared->id() == mapping_id; });
}

}  // namespace zero
