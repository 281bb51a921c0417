/// @file How local transports come to be: segments are made, exchanged at a rendezvous and attached; so are shared mappings and the
/// transports of derived groups.
///
/// Every exchange ends when all ranks have attached. Until then everybody holds what it brought, so threads of one process find one
/// another's mappings by id and need no descriptors.
#include "group/local/local_transport.h"

#include "core/clock.h"
#include "core/hash.h"
#include "core/owned_fd.h"
#include "core/system_random.h"
#include "core/thread_pool.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace zero {
namespace {

/// What a rank tells the others about a mapping it brings.
struct MappingBlob {
  uint64_t mapping_id = 0;  ///< 0: none
  int64_t nbytes = 0;
  uint64_t identity = 0;  ///< of the group; rank 0's counts
  uint64_t copy = 0;      ///< of libzero in the process; mappings are known to one
};

/// Only ranks of one process compare it.
uint64_t copy_of_library() {
  static char in_this_copy;
  return reinterpret_cast<uintptr_t>(&in_this_copy);
}

Joiner make_joiner(const Mapping *mapping, uint64_t identity) {
  MappingBlob blob{0, 0, identity, copy_of_library()};
  if (mapping != nullptr) {
    blob.mapping_id = mapping->id();
    blob.nbytes = mapping->nbytes();
  }
  Joiner joiner;
  joiner.blob.resize(sizeof blob);
  std::memcpy(joiner.blob.data(), &blob, sizeof blob);
  return joiner;
}

/// What this process has of a joiner's mapping, which is one of this process's own.
std::shared_ptr<const Mapping> find_own(std::span<const std::byte> blob) {
  MappingBlob read;
  if (blob.size() != sizeof read) return nullptr;
  std::memcpy(&read, blob.data(), sizeof read);
  return read.mapping_id != 0 ? Mapping::find(read.mapping_id) : nullptr;
}

Status read_blob(const Joiner &joiner, int64_t rank, MappingBlob *out) {
  ZERO_CHECK(joiner.blob.size() == sizeof *out, ZERO_E_RENDEZVOUS, "rank %lld (process %lld) brought %zu bytes instead of %zu", lld(rank),
             lld(joiner.process), joiner.blob.size(), sizeof *out);
  std::memcpy(out, joiner.blob.data(), sizeof *out);
  return {};
}

/// Attaches what a joiner brought; nullptr for nothing.
Status attach_joiner(Joiner joiner, int64_t rank, std::shared_ptr<Mapping> *out) {
  MappingBlob blob;
  ZERO_TRY(read_blob(joiner, rank, &blob));
  ZERO_CHECK(!joiner.same_process || blob.copy == copy_of_library(), ZERO_E_RENDEZVOUS,
             "rank %lld is a thread of this process but uses another copy of libzero in it; let all that use it here load one file, linked "
             "as a shared library, or make ranks of different copies processes of their own",
             lld(rank));
  if (blob.mapping_id == 0) return {};
  ZERO_CHECK(joiner.fd.valid() || joiner.same_process, ZERO_E_RENDEZVOUS, "rank %lld (process %lld) brought no descriptor", lld(rank),
             lld(joiner.process));
  const Status attached = Mapping::attach(blob.mapping_id, joiner.fd.release(), blob.nbytes, out);
  // A thread's mapping is gone only when that thread has given up.
  ZERO_CHECK(attached.ok() || !joiner.same_process, ZERO_E_RENDEZVOUS, "rank %lld (a thread of this process) gave up while ranks met",
             lld(rank));
  return attached;
}

/// A peer that gives up because the group has failed has told its failure before: that is the cause.
Status or_failure_of(Transport *group, Status status) {
  if (!status.ok() && group != nullptr) ZERO_TRY(group->health());
  return status;
}

/// What all ranks must have in common to read one another's segments.
uint64_t layout_hash(int64_t size, int64_t round_nbytes) {
  constexpr int64_t kVersion = 5;  // of fields that changed and left sizes as they were
  const int64_t values[] = {size, round_nbytes, Segment::nbytes(size, round_nbytes), sizeof(SegmentHeader), sizeof(Mailbox), kVersion};
  return hash_of(values, sizeof values);
}

}  // namespace

/// Ready when every rank has attached a derived object, counted from 1 (the segments themselves).
class AllJoined final : public Waitable {
 public:
  /// `watcher` is the transport whose health tells of peers that are lost meanwhile, `ranks` are theirs there; nullptr: a group that is new
  /// has only itself, and nothing to poison.
  AllJoined(LocalTransport &transport, uint64_t wanted, Deadline deadline, LocalTransport *watcher, const std::vector<int64_t> &ranks)
      : transport_(transport),
        wanted_(wanted),
        deadline_ms_(std::max(deadline.left_ms(), kLeastMs)),
        deadline_(Deadline::after_ms(deadline_ms_)),
        watcher_(watcher),
        ranks_(ranks) {}

  Status poll(bool *out_ready) override {
    for (; peer_ < transport_.size_; ++peer_) {
      const auto &joined = transport_.segment(peer_).header().joined;
      if (joined.load(std::memory_order_acquire) >= wanted_) continue;
      ZERO_TRY(watcher_ != nullptr ? check_watched(joined) : Status());
      ZERO_TRY(check_newcomer(joined));
      ZERO_CHECK(!deadline_.passed(), watcher_ != nullptr ? ZERO_E_TIMEOUT : ZERO_E_RENDEZVOUS,
                 "rank %lld (process %lld) met the others but did not attach within %lld ms", transport_.name_of(peer_),
                 lld(transport_.processes_.process(peer_)), lld(deadline_ms_));
      return {};
    }
    *out_ready = true;
    return {};
  }
  // No doorbell: the new transport's own one goes with it if this fails, while another thread may be about to sleep on it.

 private:
  /// To attach takes a moment, also for ranks that met at the last.
  static constexpr int64_t kLeastMs = 400;

  Status check_watched(const std::atomic<uint64_t> &joined) {
    const Status standing = watcher_->health();
    // What the others failed in after they attached does not undo that.
    if (joined.load(std::memory_order_acquire) >= wanted_) return {};
    ZERO_TRY(standing);
    watcher_->processes_.look();
    return watcher_->check_peer(ranks_[static_cast<size_t>(peer_)], joined, wanted_, nullptr);
  }

  Status check_newcomer(const std::atomic<uint64_t> &joined) {
    transport_.processes_.look();
    const bool left = transport_.segment(peer_).header().left.load(std::memory_order_acquire) != 0;
    const bool ended = watcher_ == nullptr && transport_.processes_.ended(peer_);
    const PoisonRecord &poison = transport_.segment(peer_).header().poison;
    const bool gave_up = poison.begun();
    if ((!left && !ended && !gave_up) || joined.load(std::memory_order_acquire) >= wanted_) return {};
    if (gave_up) return or_failure_of(watcher_, poison.read());
    return or_failure_of(watcher_,
                         Status::error(ZERO_E_RENDEZVOUS, "rank %lld (process %lld) %s while the group was made", transport_.name_of(peer_),
                                       lld(transport_.processes_.process(peer_)), left ? "gave up" : "ended"));
  }

  LocalTransport &transport_;
  uint64_t wanted_;
  int64_t deadline_ms_;
  Deadline deadline_;
  LocalTransport *watcher_;
  const std::vector<int64_t> &ranks_;
  int64_t peer_ = 0;
};

Task connect_local(std::string name, int64_t rank, int64_t size, LocalOptions options, std::shared_ptr<Transport> *out) {
  ZERO_CO_CHECK(rank >= 0 && rank < size, ZERO_E_INVALID_ARGUMENT, "rank %lld is not within 0 .. %lld", lld(rank), lld(size - 1));
  auto transport = std::make_shared<LocalTransport>(rank, size, options.staging_nbytes / 2);
  Task connecting = transport->connect(std::move(name), options.rendezvous_ms, nullptr, {});
  ZERO_CO_AWAIT(connecting);
  *out = std::move(transport);
  co_return Status();
}

/// Ranks whose group's ranks are all threads of this process have no need of a memory file.
Status LocalTransport::make_segment(const LocalTransport *parent, std::span<const int64_t> members) {
  const bool here = size_ == 1 || (parent != nullptr && parent->within_process());
  const auto create = here ? Mapping::create_sparse_for_threads : Mapping::create_shared;
  std::shared_ptr<Mapping> mapping;
  ZERO_TRY(create(Segment::nbytes(size_, round_nbytes_), &mapping));
  (*segments_)[static_cast<size_t>(rank_)] = Segment(std::move(mapping), size_, round_nbytes_);
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

Task LocalTransport::connect(std::string name, int64_t deadline_ms, LocalTransport *parent, std::vector<int64_t> members) {
  const bool first = parent == nullptr && size_ > 1;
  MeetingTerms terms{.name = std::move(name), .rank = rank_, .size = size_, .deadline_ms = deadline_ms, .lend = find_own};
  // Given back for the meeting: a rank that lacks descriptors needs one to tell the others so.
  OwnedFd spare;
  if (first) spare = open_fd([] { return ::eventfd(0, EFD_CLOEXEC); });
  const Status prepared = make_segment(parent, members);
  spare.reset(-1);
  if (!prepared.ok() && first) {
    (*segments_)[static_cast<size_t>(rank_)] = {};
    Task calling = call_off(std::move(terms), cannot_come(prepared));
    ZERO_CO_AWAIT(calling);
  }
  ZERO_CO_TRY(prepared);
  if (size_ > 1) co_return co_await meet(std::move(terms), parent, members);
  co_return parent != nullptr ? Status() : processes_.open({::getpid()});
}

/// By a name, of ranks that may be other processes.
Task LocalTransport::meet(MeetingTerms terms, LocalTransport *parent, const std::vector<int64_t> &members) {
  const Deadline deadline = terms.deadline;
  terms.agree = layout_hash(size_, round_nbytes_);
  if (parent != nullptr) {
    terms.watch = [parent, &members] { return parent->watch_members(members); };
    for (const int64_t member : members) names_.push_back(parent->name_of(member));
    terms.names = names_;
  }
  std::vector<Joiner> joiners;
  Task meeting = rendezvous(std::move(terms), make_joiner(own().mapping().get(), identity_), &joiners);
  Status met = co_await meeting;
  if (met.ok()) met = or_failure_of(parent, attach_segments(std::move(joiners)));
  // For those who have met and attach this rank's segment.
  if (!met.ok()) own().header().poison.write(cannot_come(met));
  ZERO_CO_TRY(met);
  own().header().joined.store(1, std::memory_order_release);
  AllJoined all_joined(*this, 1, deadline, parent, members);
  ZERO_CO_AWAIT(all_joined);
  own().mapping()->close_fd();
  // What texts named were ranks of the parent.
  names_.clear();
  co_return Status();
}

/// What the others are told of a rank that cannot take part in a group that is being made.
Status LocalTransport::cannot_come(const Status &cause) const {
  return Status::error(ZERO_E_RENDEZVOUS, "rank %lld (process %lld) cannot take part: %s", name_of(rank_), lld(::getpid()), cause.text());
}

Status LocalTransport::attach_segments(std::vector<Joiner> joiners) {
  MappingBlob first;
  ZERO_TRY(read_blob(joiners[0], 0, &first));
  identity_ = first.identity;
  std::vector<int64_t> processes;
  for (const Joiner &joiner : joiners) processes.push_back(joiner.process);
  for (int64_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    std::shared_ptr<Mapping> mapping;
    ZERO_TRY(attach_joiner(std::move(joiners[static_cast<size_t>(peer)]), name_of(peer), &mapping));
    const bool fits = mapping != nullptr && mapping->nbytes() >= Segment::nbytes(size_, round_nbytes_);
    ZERO_CHECK(fits, ZERO_E_RENDEZVOUS, "rank %lld (process %lld) brought no segment of the expected size", name_of(peer),
               lld(processes[static_cast<size_t>(peer)]));
    (*segments_)[static_cast<size_t>(peer)] = Segment(std::move(mapping), size_, round_nbytes_);
  }
  return root_segments_ != nullptr ? Status() : processes_.open(std::move(processes));
}

Place LocalTransport::place() const {
  const auto cores_of = [this](int64_t rank) { return segment(rank).header().cores_key.load(std::memory_order_relaxed); };
  int64_t sharers = 0;
  for (int64_t peer = 0; peer < size_; ++peer) {
    // Threads of one process have its pool of kernel threads in common, whatever cores they are bound to.
    const bool one_pool = processes_.process(peer) == processes_.process(rank_);
    if (one_pool || cores_of(peer) == cores_of(rank_)) ++sharers;
  }
  return {rank_, size_, 1, sharers};
}

std::string LocalTransport::derived_name(const char *what) const {
  char name[64];
  std::snprintf(name, sizeof name, "%016llx.%llu.%s", static_cast<unsigned long long>(identity_), static_cast<unsigned long long>(derived_),
                what);
  return name;
}

Task LocalTransport::copy_through(std::shared_ptr<const Reducer> copier, int64_t /*deadline_ms*/) {
  copier_ = std::move(copier);
  co_return Status();
}

Status LocalTransport::watch_members(std::span<const int64_t> members) {
  ZERO_TRY(health());
  processes_.look();
  for (const int64_t member : members) ZERO_TRY(check_present(member, nullptr));
  return {};
}

Task LocalTransport::share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms) {
  ++derived_;
  out->assign(static_cast<size_t>(size_), {});
  (*out)[static_cast<size_t>(rank_)].mapping = mine;
  if (size_ == 1) co_return Status();
  // A task with a name: of a conditional expression that is awaited, GCC 12 ends the task twice.
  Task sharing = within_process() ? share_here(mine, out, deadline_ms) : share_by_name(mine, out, deadline_ms);
  ZERO_CO_AWAIT(sharing);
  if (mine != nullptr) {
    const std::lock_guard lock(sharing_mutex_);
    // Withdrawing must not fail: room for it is made now.
    withdrawn_.reserve(withdrawn_.size() + offered_.size() + 1);
    offered_.push_back({mine->data(), mine->nbytes(), mine->id()});
  }
  co_return Status();
}

Task LocalTransport::share_by_name(const std::shared_ptr<Mapping> &mine, std::vector<PeerMemory> *out, int64_t deadline_ms) {
  const uint64_t wanted = derived_ + 1;
  const Deadline deadline = Deadline::after_ms(deadline_ms);
  std::vector<int64_t> members;
  MeetingTerms terms{
      .name = derived_name("share"), .rank = rank_, .size = size_, .agree = identity_, .deadline_ms = deadline_ms, .lend = find_own};
  terms.watch = [this, &members] { return watch_members(members); };
  for (int64_t rank = 0; rank < size_; ++rank) {
    members.push_back(rank);
    terms.names.push_back(name_of(rank));
  }
  std::vector<Joiner> joiners;
  Task meeting = rendezvous(std::move(terms), make_joiner(mine.get(), identity_), &joiners);
  ZERO_CO_AWAIT(meeting);
  ZERO_CO_TRY(or_failure_of(this, attach_shared(std::move(joiners), out)));
  own().header().joined.store(wanted, std::memory_order_release);
  AllJoined all_joined(*this, wanted, deadline, this, members);
  co_return co_await all_joined;
}

Status LocalTransport::attach_shared(std::vector<Joiner> joiners, std::vector<PeerMemory> *out) {
  for (int64_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    std::shared_ptr<Mapping> mapping;
    ZERO_TRY(attach_joiner(std::move(joiners[static_cast<size_t>(peer)]), name_of(peer), &mapping));
    if (mapping == nullptr) continue;
    (*out)[static_cast<size_t>(peer)].mapping = mapping;
    hold_shared(peer, std::move(mapping));
  }
  return {};
}

void LocalTransport::hold_shared(int64_t peer, std::shared_ptr<Mapping> mapping) {
  const std::lock_guard lock(sharing_mutex_);
  if (attached_.empty()) attached_.resize(static_cast<size_t>(size_));
  attached_[static_cast<size_t>(peer)].push_back(std::move(mapping));
}

void LocalTransport::unshare(const Mapping &mapping) {
  const std::lock_guard lock(sharing_mutex_);
  const auto removed = std::erase_if(offered_, [&mapping](const Offered &offered) { return offered.id == mapping.id(); });
  // Peers hold the memory until a round tells them: what was offered before must stay readable.
  if (removed == 0) return;
  withdrawn_.push_back(mapping.id());
  withdraws_.store(true, std::memory_order_release);
}

/// Of the rank that leads: it listens, and has a socket of each of the others and what each of them brings.
int64_t LocalTransport::descriptors_to_meet() const { return within_process() || size_ == 1 ? 0 : 2 * size_; }

Task LocalTransport::derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                                   std::shared_ptr<Transport> *out) {
  ++derived_;
  out->reset();
  if (members.empty()) co_return Status();
  const auto mine = std::find(members.begin(), members.end(), rank_);
  ZERO_CO_CHECK(mine != members.end(), ZERO_E_INTERNAL, "rank %lld derives a group it is not a member of", name_of(rank_));
  const int64_t new_rank = mine - members.begin();
  const auto new_size = static_cast<int64_t>(members.size());
  auto transport = std::make_shared<LocalTransport>(new_rank, new_size, std::min(round_nbytes_, most_round_nbytes));
  transport->keep(footing_);
  if (within_process() && new_size > 1) {
    ZERO_CO_AWAIT(derive_here(*transport, members, tag, deadline_ms));
  } else {
    Task connecting = transport->connect(derived_name(std::to_string(tag).c_str()), deadline_ms, this, std::move(members));
    ZERO_CO_AWAIT(connecting);
  }
  *out = std::move(transport);
  co_return Status();
}

}  // namespace zero
