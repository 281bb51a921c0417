/// @file LocalConnect: the creation of local transports. Segments are made, exchanged at a
/// rendezvous and attached, as are shared mappings and the transports of derived groups.
///
/// Every exchange ends when all ranks have attached. Until then every rank holds its own objects,
/// so threads of one process find one another's mappings by id and need no descriptors.
#include "group/local/local_transport.h"

#include "core/clock.h"
#include "core/hash.h"
#include "core/owned_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace zero {
namespace {

/// The description of a mapping that a rank sends to the others.
struct MappingBlob {
  uint64_t mapping_id = 0;  ///< 0: none
  int64_t nbytes = 0;
  uint64_t identity = 0;  ///< the group's; rank 0's counts
  uint64_t copy = 0;      ///< the copy of libzero in the process; only one copy knows a mapping
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

/// Finds the mapping of a joiner in this process; nullptr if it belongs to another.
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

/// A peer that gives up because the group has failed has told its failure before: that is the
/// cause.
Status or_failure_of(LocalPeers *group, Status status) {
  if (!status.ok() && group != nullptr) ZERO_TRY(group->health());
  return status;
}

/// A hash of the values that all ranks must share to read one another's segments.
uint64_t layout_hash(int64_t size, int64_t round_nbytes) {
  // Counts changes of fields that kept all sizes.
  constexpr int64_t kVersion = 5;
  const int64_t values[] = {size, round_nbytes, Segment::nbytes(size, round_nbytes), sizeof(SegmentHeader), sizeof(Mailbox), kVersion};
  return hash_of(values, sizeof values);
}

}  // namespace

/// Ready when every rank has attached a derived object, counted from 1 (the segments themselves).
class AllJoined final : public Waitable {
 public:
  /// `watcher` is the group that reports lost peers; `ranks` are the members' ranks in it. nullptr:
  /// a new group without a parent, which has nothing to poison.
  AllJoined(LocalPeers &peers, uint64_t wanted, Deadline deadline, LocalPeers *watcher, const std::vector<int64_t> &ranks)
      : peers_(peers),
        wanted_(wanted),
        deadline_ms_(std::max(deadline.left_ms(), kLeastMs)),
        deadline_(Deadline::after_ms(deadline_ms_)),
        watcher_(watcher),
        ranks_(ranks) {}

  Status poll(bool *out_ready) override {
    for (; peer_ < peers_.size(); ++peer_) {
      const auto &joined = peers_.segment(peer_).header().joined;
      if (joined.load(std::memory_order_acquire) >= wanted_) continue;
      ZERO_TRY(watcher_ != nullptr ? check_watched(joined) : Status());
      ZERO_TRY(check_newcomer(joined));
      ZERO_CHECK(!deadline_.passed(), watcher_ != nullptr ? ZERO_E_TIMEOUT : ZERO_E_RENDEZVOUS,
                 "rank %lld (process %lld) met the others but did not attach within %lld ms", peers_.name_of(peer_),
                 lld(peers_.processes().process(peer_)), lld(deadline_ms_));
      return {};
    }
    *out_ready = true;
    return {};
  }
  // No doorbell: the new transport's own one goes with it if this fails, while another thread may
  // be about to sleep on it.

 private:
  /// To attach takes a moment, also for ranks that met at the last.
  static constexpr int64_t kLeastMs = 400;

  Status check_watched(const std::atomic<uint64_t> &joined) {
    const Status standing = watcher_->health();
    // Failures of others after they attached do not undo that.
    if (joined.load(std::memory_order_acquire) >= wanted_) return {};
    ZERO_TRY(standing);
    watcher_->processes().look();
    return watcher_->check_peer(ranks_[static_cast<size_t>(peer_)], joined, wanted_, nullptr);
  }

  Status check_newcomer(const std::atomic<uint64_t> &joined) {
    peers_.processes().look();
    const bool left = peers_.has_left(peer_);
    const bool ended = watcher_ == nullptr && peers_.processes().ended(peer_);
    const PoisonRecord &poison = peers_.segment(peer_).header().poison;
    const bool gave_up = poison.begun();
    if ((!left && !ended && !gave_up) || joined.load(std::memory_order_acquire) >= wanted_) return {};
    if (gave_up) return or_failure_of(watcher_, poison.read());
    return or_failure_of(watcher_,
                         Status::error(ZERO_E_RENDEZVOUS, "rank %lld (process %lld) %s while the group was made", peers_.name_of(peer_),
                                       lld(peers_.processes().process(peer_)), left ? "gave up" : "ended"));
  }

  LocalPeers &peers_;
  uint64_t wanted_;
  int64_t deadline_ms_;
  Deadline deadline_;
  LocalPeers *watcher_;
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

Task LocalTransport::connect(std::string name, int64_t deadline_ms, LocalPeers *parent, std::vector<int64_t> members) {
  const bool first = parent == nullptr && size() > 1;
  MeetingTerms terms{.name = std::move(name), .rank = rank(), .size = size(), .deadline_ms = deadline_ms, .lend = find_own};
  // Given back for the meeting: a rank that lacks descriptors needs one to tell the others so.
  OwnedFd spare;
  if (first) spare = open_fd([] { return ::eventfd(0, EFD_CLOEXEC); });
  const Status prepared = peers_.make_segment(parent, members);
  spare.reset(-1);
  if (!prepared.ok() && first) {
    peers_.attach(rank(), nullptr);
    Task calling = call_off(std::move(terms), cannot_come(prepared));
    ZERO_CO_AWAIT(calling);
  }
  ZERO_CO_TRY(prepared);
  if (size() > 1) {
    Task meeting = meet(std::move(terms), parent, members);
    ZERO_CO_AWAIT(meeting);
  } else if (parent == nullptr) {
    ZERO_CO_TRY(peers_.processes().open({::getpid()}));
  }
  set_facts();
  co_return Status();
}

/// By a name, of ranks that may be other processes.
Task LocalTransport::meet(MeetingTerms terms, LocalPeers *parent, const std::vector<int64_t> &members) {
  const Deadline deadline = terms.deadline;
  terms.agree = layout_hash(size(), peers_.round_nbytes());
  if (parent != nullptr) {
    terms.watch = [parent, &members] { return parent->watch_members(members); };
    for (const int64_t member : members) terms.names.push_back(parent->name_of(member));
    peers_.name_ranks(terms.names);
  }
  std::vector<Joiner> joiners;
  Task meeting = rendezvous(std::move(terms), make_joiner(peers_.own().mapping().get(), peers_.identity()), &joiners);
  Status met = co_await meeting;
  if (met.ok()) met = or_failure_of(parent, attach_segments(std::move(joiners), parent != nullptr));
  // For peers that have met and attach this rank's segment.
  if (!met.ok()) peers_.own().header().poison.write(cannot_come(met));
  ZERO_CO_TRY(met);
  peers_.own().header().joined.store(1, std::memory_order_release);
  AllJoined all_joined(peers_, 1, deadline, parent, members);
  ZERO_CO_AWAIT(all_joined);
  peers_.own().mapping()->close_fd();
  // Texts named ranks of the parent until now.
  peers_.name_ranks({});
  co_return Status();
}

/// The error that the others receive about a rank that cannot take part in a new group.
Status LocalTransport::cannot_come(const Status &cause) const {
  return Status::error(ZERO_E_RENDEZVOUS, "rank %lld (process %lld) cannot take part: %s", peers_.name_of(rank()), lld(::getpid()),
                       cause.text());
}

Status LocalTransport::attach_segments(std::vector<Joiner> joiners, bool descends) {
  MappingBlob first;
  ZERO_TRY(read_blob(joiners[0], 0, &first));
  peers_.set_identity(first.identity);
  std::vector<int64_t> processes;
  for (const Joiner &joiner : joiners) processes.push_back(joiner.process);
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    std::shared_ptr<Mapping> mapping;
    ZERO_TRY(attach_joiner(std::move(joiners[static_cast<size_t>(peer)]), peers_.name_of(peer), &mapping));
    const bool fits = mapping != nullptr && mapping->nbytes() >= Segment::nbytes(size(), peers_.round_nbytes());
    ZERO_CHECK(fits, ZERO_E_RENDEZVOUS, "rank %lld (process %lld) brought no segment of the expected size", peers_.name_of(peer),
               lld(processes[static_cast<size_t>(peer)]));
    peers_.attach(peer, std::move(mapping));
  }
  return descends ? Status() : peers_.processes().open(std::move(processes));
}

Task LocalTransport::share_by_name(const std::shared_ptr<Mapping> &mine, std::vector<PeerMemory> *out, int64_t deadline_ms) {
  const uint64_t wanted = derived_ + 1;
  const Deadline deadline = Deadline::after_ms(deadline_ms);
  std::vector<int64_t> members;
  MeetingTerms terms{.name = derived_name("share"),
                     .rank = rank(),
                     .size = size(),
                     .agree = peers_.identity(),
                     .deadline_ms = deadline_ms,
                     .lend = find_own};
  terms.watch = [this, &members] { return peers_.watch_members(members); };
  for (int64_t member = 0; member < size(); ++member) {
    members.push_back(member);
    terms.names.push_back(peers_.name_of(member));
  }
  std::vector<Joiner> joiners;
  Task meeting = rendezvous(std::move(terms), make_joiner(mine.get(), peers_.identity()), &joiners);
  ZERO_CO_AWAIT(meeting);
  ZERO_CO_TRY(or_failure_of(&peers_, attach_shared(std::move(joiners), out)));
  peers_.own().header().joined.store(wanted, std::memory_order_release);
  AllJoined all_joined(peers_, wanted, deadline, &peers_, members);
  co_return co_await all_joined;
}

Status LocalTransport::attach_shared(std::vector<Joiner> joiners, std::vector<PeerMemory> *out) {
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    std::shared_ptr<Mapping> mapping;
    ZERO_TRY(attach_joiner(std::move(joiners[static_cast<size_t>(peer)]), peers_.name_of(peer), &mapping));
    if (mapping == nullptr) continue;
    (*out)[static_cast<size_t>(peer)].mapping = mapping;
    mappings_.hold(peer, std::move(mapping));
  }
  return {};
}

}  // namespace zero
