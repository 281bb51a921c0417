/// @file The peers of a local group: bells, poison, ranks that ended or left, and the progress of
/// every rank.
#include "group/local/local_peers.h"

#include "core/clock.h"
#include "core/system_random.h"
#include "core/thread_pool.h"
#include "group/local/local_rounds.h"

#include <cstdio>
#include <new>
#include <utility>

namespace zero {
namespace {

/// ThreadSanitizer does not support fences. It reports accesses without an order, but these are
/// ordered by `taken` and `posted`.
void fence([[maybe_unused]] std::memory_order order) {
#if !defined(__SANITIZE_THREAD__)
  std::atomic_thread_fence(order);
#endif
}

std::string text_of(const PeerProgress::View &view) { return operation_text(view.sequence, view.kind, view.caller); }

}  // namespace

bool PoisonRecord::begin() {
  uint32_t expected = 0;
  return state_.compare_exchange_strong(expected, kWriting, std::memory_order_acq_rel);
}

void PoisonRecord::write(const Status &cause) {
  if (!begin()) return;
  code_ = cause.code();
  std::snprintf(text_, sizeof text_, "%s", cause.text());
  state_.store(kWritten, std::memory_order_release);
}

Status PoisonRecord::read() const {
  const Deadline wait = Deadline::after_ms(kMostWaitMs);
  for (Backoff backoff; state_.load(std::memory_order_acquire) != kWritten; backoff.pause()) {
    ZERO_CHECK(!wait.passed(), ZERO_E_PEER_FAILED, "the group has failed, and the rank that found out had not said why after %lld ms",
               lld(kMostWaitMs));
  }
  return Status::error(code_, "%s", text_);
}

LocalPeers::LocalPeers(int64_t rank, int64_t size, int64_t round_nbytes, const LocalRounds &rounds)
    : rank_(rank),
      size_(size),
      round_nbytes_(round_nbytes),
      rounds_(rounds),
      segments_(std::make_shared<SegmentTable>(static_cast<size_t>(size))) {}

/// Ranks whose group's ranks are all threads of this process have no need of a memory file.
Status LocalPeers::make_segment(const LocalPeers *parent, std::span<const int64_t> members) {
  const bool here = size_ == 1 || (parent != nullptr && parent->processes_.all_here());
  const auto create = here ? Mapping::create_sparse_for_threads : Mapping::create_shared;
  std::shared_ptr<Mapping> mapping;
  ZERO_TRY(create(Segment::nbytes(size_, round_nbytes_), &mapping));
  attach(rank_, std::move(mapping));
  own().header().cores_key.store(usable_cores_key(), std::memory_order_relaxed);
  ZERO_TRY(random_u64(&identity_));
  if (parent == nullptr) return {};
  root_segments_ = parent->root_segments_ != nullptr ? parent->root_segments_ : parent->segments_;
  for (const int64_t member : members) {
    root_ranks_.push_back(parent->root_ranks_.empty() ? member : parent->root_ranks_[static_cast<size_t>(member)]);
  }
  processes_.open_among(parent->processes_, members);
  return {};
}

void LocalPeers::attach(int64_t peer, std::shared_ptr<Mapping> mapping) {
  (*segments_)[static_cast<size_t>(peer)] = mapping != nullptr ? Segment(std::move(mapping), size_, round_nbytes_) : Segment();
}

/// Peers that do not know of a failure yet receive its cause before they see that this rank has
/// left.
void LocalPeers::leave() {
  if (own().mapping() == nullptr) return;
  try {
    if (const Status failure = health(); !failure.ok()) send_to_all(failure);
  } catch (const std::bad_alloc &) {
    // They see that it has left.
  }
  own().header().left.store(1, std::memory_order_release);
  ring_all();
}

void LocalPeers::ring_all() {
  for (const Segment &segment : *segments_) {
    if (segment.mapping() == nullptr) continue;
    segment.header().news.fetch_add(1, std::memory_order_release);
    segment.header().bell.ring();
  }
}

void LocalPeers::await(int64_t peer) { own().header().awaited.store(static_cast<uint64_t>(peer) + 1, std::memory_order_seq_cst); }

void LocalPeers::ring_for(int64_t peer) {
  if (size_ <= kFew || is_awaited_by(peer)) ring(peer);
}

void LocalPeers::ring_for(std::span<const int64_t> members) {
  for (const int64_t member : members) {
    if (member != rank_) ring_for(member);
  }
}

bool LocalPeers::is_awaited_by(int64_t peer) const {
  return segment(peer).header().awaited.load(std::memory_order_seq_cst) == static_cast<uint64_t>(rank_) + 1;
}

/// A rank that awaits one of many peers looks for all of them in some polls: one may have called
/// something else, or have gone.
bool LocalPeers::looks_at_all(int32_t poll) {
  constexpr int32_t kPollsPerLook = 8;
  const uint32_t news = own().header().news.load(std::memory_order_acquire);
  const bool told = std::exchange(news_seen_, news) != news;
  return size_ <= kFew || poll % kPollsPerLook == 0 || told;
}

/// An acquire load alone orders only the accesses that follow it, not the reads before it.
bool LocalPeers::may_have_read_torn() const {
  fence(std::memory_order_acquire);
  return has_failed();
}

Status LocalPeers::fail(const Status &cause) {
  ZERO_TRY(health());
  return fail_for(&cause);
}

/// `cause` nullptr: the cause that a peer has written. That peer may not have told the others yet,
/// and this rank's caller may write to its memory once it knows of the failure. So no failure is
/// returned before all ranks have been told.
Status LocalPeers::fail_for(const Status *cause) {
  const std::lock_guard lock(failure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return failure_;
  failure_ = cause != nullptr ? *cause : own().header().poison.read();
  send_to_all(failure_);
  failed_.store(true, std::memory_order_release);
  ring_all();
  return failure_;
}

void LocalPeers::send_to_all(const Status &failure) {
  for (const Segment &segment : *segments_) {
    if (segment.mapping() != nullptr) segment.header().poison.write(failure);
  }
  // A rank that sees later writes of the caller also sees the failure.
  fence(std::memory_order_release);
}

Status LocalPeers::check_peer(int64_t peer, const std::atomic<uint64_t> &counter, uint64_t wanted, const Fingerprint *doing) {
  const bool left = has_left(peer);
  if (!left && !processes_.ended(peer)) return {};
  // The last message that the peer posted and the reason that it gave are still valid.
  if (counter.load(std::memory_order_acquire) >= wanted) return {};
  ZERO_TRY(health());
  const std::string what = doing != nullptr ? "in " + to_text(*doing) : "sharing memory or making a group";
  const char *how = left ? "released its group or optimizer" : "ended";
  return fail(Status::error(left ? ZERO_E_PEER_LEFT : ZERO_E_PEER_LOST, "rank %lld (process %lld) %s while rank %lld was %s", name_of(peer),
                            lld(processes_.process(peer)), how, name_of(rank_), what.c_str()));
}

Status LocalPeers::check_present(int64_t peer, const Fingerprint *doing) {
  static const std::atomic<uint64_t> nothing{0};
  return peer == rank_ ? Status() : check_peer(peer, nothing, 1, doing);
}

Status LocalPeers::watch() {
  ZERO_TRY(health());
  processes_.look();
  for (int64_t peer = 0; peer < size_; ++peer) ZERO_TRY(check_present(peer, &rounds_.current()));
  return {};
}

Status LocalPeers::watch_peer(int64_t peer, const Fingerprint &doing) {
  ZERO_TRY(health());
  processes_.look();
  return check_present(peer, &doing);
}

Status LocalPeers::watch_members(std::span<const int64_t> members) {
  ZERO_TRY(health());
  processes_.look();
  for (const int64_t member : members) ZERO_TRY(check_present(member, nullptr));
  return {};
}

SegmentHeader &LocalPeers::root_header(int64_t peer) const {
  if (root_segments_ == nullptr) return segment(peer).header();
  return (*root_segments_)[static_cast<size_t>(root_ranks_[static_cast<size_t>(peer)])].header();
}

void LocalPeers::publish(const Fingerprint *fingerprint) {
  SegmentHeader &root = root_header(rank_);
  if (fingerprint != nullptr) {
    own().header().progress.enter(*fingerprint);
    root.elsewhere_group.store(identity_, std::memory_order_release);
    root.elsewhere.enter(*fingerprint);
    return;
  }
  own().header().progress.leave();
  if (root.elsewhere_group.load(std::memory_order_relaxed) == identity_) root.elsewhere.leave();
}

/// Texts of other groups name the message only if this rank is in no other operation.
void LocalPeers::publish_message(const Fingerprint &fingerprint, bool ends) {
  const auto is_it = [&](const PeerProgress::View &view) {
    return view.inside && view.sequence == fingerprint.sequence && view.kind == fingerprint.kind;
  };
  SegmentHeader &header = own().header();
  SegmentHeader &root = root_header(rank_);
  if (ends) {
    if (is_it(header.message.view())) header.message.leave();
    if (root.elsewhere_group.load(std::memory_order_relaxed) == identity_ && is_it(root.elsewhere.view())) root.elsewhere.leave();
    return;
  }
  header.message_peer.store(fingerprint.root, std::memory_order_relaxed);
  header.message.enter(fingerprint);
  if (root.elsewhere.view().inside) return;
  root.elsewhere_group.store(identity_, std::memory_order_release);
  root.elsewhere.enter(fingerprint);
}

/// A process that was stopped, or has ended, waits for nothing.
bool LocalPeers::waits_in(int64_t peer, const Fingerprint &mine) const {
  const PeerProgress::View here = segment(peer).header().progress.view();
  const bool same = here.inside && here.sequence == mine.sequence && here.kind == mine.kind && here.caller == mine.caller;
  return same && process_state(processes_.process(peer)) == ProcessState::running;
}

std::string LocalPeers::progress_of_awaited(const Fingerprint &mine, bool in_same_call) const {
  constexpr int64_t kMaxNamed = 6;
  const bool message = is_message(mine.kind);
  std::string text;
  int64_t named = 0;
  for (int64_t peer = 0; peer < size_; ++peer) {
    if (message ? peer != mine.root : !rounds_.awaits(peer)) continue;
    if (in_same_call != (!message && waits_in(peer, mine))) continue;
    if (++named > kMaxNamed) continue;
    if (!text.empty()) text += "; ";
    text += progress_of(peer);
  }
  if (named > kMaxNamed) text += "; and " + std::to_string(named - kMaxNamed) + " more ranks";
  return text;
}

std::string LocalPeers::progress_report(const Fingerprint &mine) {
  std::string text = suspicions(mine);
  if (text.empty()) text = progress_of_awaited(mine, true);
  return text.empty() ? "every rank has arrived" : text;
}

std::string LocalPeers::progress_of(int64_t peer) const {
  const SegmentHeader &header = segment(peer).header();
  const int64_t process = processes_.process(peer);
  const ProcessState state = process_state(process);
  std::string text = "rank " + std::to_string(name_of(peer)) + " (process " + std::to_string(process);
  text += state == ProcessState::stopped ? ", stopped) " : state == ProcessState::ended ? ", ended) " : ") ";
  const PeerProgress::View here = header.progress.view();
  if (here.inside) return text + "is in " + text_of(here);
  if (const PeerProgress::View message = header.message.view(); message.inside) {
    const char *way = message.kind == OperationKind::send ? " to rank " : " from rank ";
    return text + "has " + text_of(message) + way + std::to_string(header.message_peer.load(std::memory_order_relaxed)) + " under way";
  }
  const SegmentHeader &root = root_header(peer);
  const uint64_t group = root.elsewhere_group.load(std::memory_order_acquire);
  const PeerProgress::View elsewhere = root.elsewhere.view();
  if (elsewhere.inside && group != identity_) {
    char name[32];
    std::snprintf(name, sizeof name, "%08llx", static_cast<unsigned long long>(group >> 32));
    return text + "waits in group " + name + " at " + text_of(elsewhere);
  }
  if (here.never()) return text + "has called no collective of this group";
  return text + "last did " + text_of(here) + " and is in no collective of this group";
}

}  // namespace zero
