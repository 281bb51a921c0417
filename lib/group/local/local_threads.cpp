/// @file Shared mappings and derived groups of ranks that are all threads of one process: each
/// writes what it brings into its segment, and the others find it in the process's table of
/// mappings. No descriptors, no sockets; never used where a rank is another process.
#include "core/clock.h"
#include "group/local/local_transport.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace zero {
namespace {

/// The key of a derived object: its number, and its index among those with the same number. Never
/// 0.
uint64_t key_of(uint64_t number, int64_t which) { return number << 32 | static_cast<uint32_t>(which); }

constexpr int64_t kShare = 0;

/// Groups that are made by one call differ in their tags.
constexpr int64_t group_of(int64_t tag) { return tag + 1; }

}  // namespace

/// Ready when all members have come as far, each in its turn: have brought something, or have found
/// what the others brought.
class AllHere final : public Waitable {
 public:
  /// `key`: of what they are to bring; 0: they are to have joined, as `wanted` says. `members`, of
  /// which the own rank is number `self`, must outlive it.
  AllHere(LocalPeers &peers, std::span<const int64_t> members, int64_t self, uint64_t key, uint64_t wanted, int64_t limit_ms)
      : peers_(peers),
        members_(members),
        turns_(std::ssize(members), self),
        key_(key),
        wanted_(wanted),
        limit_ms_(limit_ms),
        deadline_(Deadline::after_ms(limit_ms)) {}

  Status poll(bool *out_ready) override {
    const Status before = peers_.health();
    for (; turn_ < turns_.size(); ++turn_) {
      const int64_t member = member_at(turns_[turn_]);
      if (is_there(member)) continue;
      peers_.await(member);
      if (is_there(member)) continue;
      ZERO_TRY(before);
      if (peers_.looks_at_all(++polls_)) ZERO_TRY(look_for_left());
      return deadline_.passed() ? late(member) : Status();
    }
    *out_ready = true;
    return {};
  }
  Doorbell *doorbell() override { return peers_.doorbell(); }

 private:
  int64_t member_at(int64_t index) const { return members_[static_cast<size_t>(index)]; }
  bool is_there(int64_t member) const {
    const SegmentHeader &header = peers_.segment(member).header();
    if (key_ == 0) return header.joined.load(std::memory_order_seq_cst) >= wanted_;
    return header.bringing.key.load(std::memory_order_seq_cst) == key_;
  }
  /// The work that a member did before it left counts.
  Status look_for_left() {
    for (const int64_t member : members_) {
      const bool left = peers_.has_left(member);
      if (left && !is_there(member)) ZERO_TRY(peers_.check_present(member, nullptr));
    }
    return {};
  }
  Status late(int64_t member) const {
    if (key_ != 0) return late_to_meet();
    return Status::error(ZERO_E_TIMEOUT, "rank %lld (process %lld) met the others but did not attach within %lld ms",
                         peers_.name_of(member), lld(peers_.processes().process(member)), lld(limit_ms_));
  }
  Status late_to_meet() const {
    constexpr int64_t kMostNamed = 16;
    std::string text;
    int64_t missing = 0;
    for (const int64_t member : members_) {
      if (is_there(member) || ++missing > kMostNamed) continue;
      text += (text.empty() ? "rank " : ", rank ") + std::to_string(peers_.name_of(member));
    }
    if (missing > kMostNamed) text += " and " + std::to_string(missing - kMostNamed) + " more";
    return Status::error(ZERO_E_TIMEOUT, "%lld of %lld ranks met to share memory or make a group within %lld ms; missing: %s",
                         lld(turns_.size() - missing), lld(turns_.size()), lld(limit_ms_), text.c_str());
  }

  LocalPeers &peers_;
  const std::span<const int64_t> members_;
  const Turns turns_;
  const uint64_t key_;
  const uint64_t wanted_;
  const int64_t limit_ms_;
  const Deadline deadline_;
  int64_t turn_ = 0;
  int32_t polls_ = 0;
};

void LocalTransport::bring(uint64_t key, uint64_t mapping_id, uint64_t identity, std::span<const int64_t> members) {
  Bringing &bringing = peers_.own().header().bringing;
  bringing.mapping_id.store(mapping_id, std::memory_order_relaxed);
  bringing.identity.store(identity, std::memory_order_relaxed);
  bringing.key.store(key, std::memory_order_seq_cst);
  peers_.ring_for(members);
}

/// By member, nullptr where one brought nothing. A thread's mapping is gone only when that thread
/// has given up, and because the group failed if it did: then that is the cause.
Status LocalTransport::find_brought(std::span<const int64_t> members, std::span<std::shared_ptr<Mapping>> out) {
  std::vector<uint64_t> ids;
  ids.reserve(members.size());
  for (const int64_t member : members) ids.push_back(peers_.segment(member).header().bringing.mapping_id.load(std::memory_order_relaxed));
  Mapping::find_all(ids, out);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == 0 || out[i] != nullptr) continue;
    ZERO_TRY(peers_.health());
    return Status::error(ZERO_E_RENDEZVOUS, "rank %lld (a thread of this process) gave up while ranks met", peers_.name_of(members[i]));
  }
  return {};
}

/// Waits until all members, among which this rank is number `self`, have brought something, and
/// finds it.
Task LocalTransport::find_here(std::span<const int64_t> members, int64_t self, uint64_t key, int64_t deadline_ms,
                               std::vector<std::shared_ptr<Mapping>> *out) {
  AllHere all_here(peers_, members, self, key, 0, deadline_ms);
  ZERO_CO_AWAIT(all_here);
  out->resize(members.size());
  co_return find_brought(members, *out);
}

/// Reports that this rank has found the objects of all members, and waits until all have. Until
/// then every rank holds its own objects.
Task LocalTransport::join_here(std::span<const int64_t> members, int64_t self, int64_t left_ms) {
  /// To find something takes a moment, also for ranks that met at the last.
  constexpr int64_t kLeastMs = 400;
  const uint64_t wanted = derived_ + 1;
  peers_.own().header().joined.store(wanted, std::memory_order_seq_cst);
  peers_.ring_for(members);
  AllHere all_here(peers_, members, self, 0, wanted, std::max(left_ms, kLeastMs));
  co_return co_await all_here;
}

Task LocalTransport::share_here(const std::shared_ptr<Mapping> &mine, std::vector<PeerMemory> *out, int64_t deadline_ms) {
  const Deadline deadline = Deadline::after_ms(deadline_ms);
  std::vector<int64_t> members(static_cast<size_t>(size()));
  std::iota(members.begin(), members.end(), 0);
  const uint64_t key = key_of(derived_, kShare);
  bring(key, mine != nullptr ? mine->id() : 0, 0, members);
  std::vector<std::shared_ptr<Mapping>> found;
  ZERO_CO_AWAIT(find_here(members, rank(), key, deadline_ms, &found));
  for (int64_t peer = 0; peer < size(); ++peer) {
    std::shared_ptr<Mapping> &mapping = found[static_cast<size_t>(peer)];
    if (peer == rank() || mapping == nullptr) continue;
    (*out)[static_cast<size_t>(peer)].mapping = mapping;
    mappings_.hold(peer, std::move(mapping));
  }
  co_return co_await join_here(members, rank(), deadline.left_ms());
}

/// `child` is the transport to be connected, as which this rank is one of the members.
Task LocalTransport::derive_here(LocalTransport &child, const std::vector<int64_t> &members, int64_t tag, int64_t deadline_ms) {
  const Deadline deadline = Deadline::after_ms(deadline_ms);
  ZERO_CO_TRY(child.peers_.make_segment(&peers_, members));
  const uint64_t key = key_of(derived_, group_of(tag));
  bring(key, child.peers_.own().mapping()->id(), child.peers_.identity(), members);
  std::vector<std::shared_ptr<Mapping>> found;
  ZERO_CO_AWAIT(find_here(members, child.rank(), key, deadline_ms, &found));
  child.peers_.set_identity(peers_.segment(members[0]).header().bringing.identity.load(std::memory_order_relaxed));
  for (size_t peer = 0; peer < found.size(); ++peer) child.peers_.attach(static_cast<int64_t>(peer), std::move(found[peer]));
  child.set_facts();
  co_return co_await join_here(members, child.rank(), deadline.left_ms());
}

}  // namespace zero
