/// @file LocalPeers: the ranks of a local group as one of them sees them: their segments and bells,
/// the ends of their processes, the failure of the group, and the call that each rank is in. Knows
/// nothing of the pieces that ranks exchange.
#pragma once

#include "group/local/local_processes.h"
#include "group/local/local_segment.h"
#include "group/transport.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace zero {

class LocalRounds;

class LocalPeers final : public PeerHealth {
 public:
  /// In groups of up to kFew ranks, every rank is woken for each message. In larger groups a rank
  /// is woken only for the rank that it awaits.
  static constexpr int64_t kFew = 8;

  /// `rounds` are the rounds of this rank. It may be constructed later than this object.
  LocalPeers(int64_t rank, int64_t size, int64_t round_nbytes, const LocalRounds &rounds);

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  int64_t round_nbytes() const { return round_nbytes_; }
  /// The same on all ranks, different for every group.
  uint64_t identity() const { return identity_; }
  void set_identity(uint64_t identity) { identity_ = identity; }
  LocalProcesses &processes() { return processes_; }
  const LocalProcesses &processes() const { return processes_; }
  const Segment &segment(int64_t peer) const { return (*segments_)[static_cast<size_t>(peer)]; }
  const Segment &own() const { return segment(rank_); }

  /// Makes the own segment. A group that descends from another has a parent, and its members' ranks
  /// there.
  Status make_segment(const LocalPeers *parent, std::span<const int64_t> members);
  /// Attaches the segment of a peer. For this rank, nullptr drops its own segment.
  void attach(int64_t peer, std::shared_ptr<Mapping> mapping);
  /// Reports a failure, if there is one, and then that this rank has left, to all peers.
  void leave();

  /// Publishes that this rank waits for `peer`, the next in turn. Look at the peer once more
  /// afterwards: either its progress is visible then, or its ring_for() sees that it is awaited.
  void await(int64_t peer);
  bool is_awaited_by(int64_t peer) const;
  void ring(int64_t peer) { segment(peer).header().bell.ring(); }
  /// After what the peer may wait for was stored, sequentially consistent.
  void ring_for(int64_t peer);
  void ring_for(std::span<const int64_t> members);
  /// True in those polls of a wait, numbered from 1, that are to look at all peers.
  bool looks_at_all(int32_t poll);

  Status health() override { return has_failed() ? fail_for(nullptr) : Status(); }
  Status watch() override;
  Status watch_peer(int64_t peer, const Fingerprint &doing) override;
  void poison(const Status &cause) override { static_cast<void>(fail(cause)); }
  void publish(const Fingerprint *fingerprint) override;
  void publish_message(const Fingerprint &fingerprint, bool ends) override;
  std::string progress_report(const Fingerprint &mine) override;
  std::string suspicions(const Fingerprint &mine) override { return progress_of_awaited(mine, false); }
  Doorbell *doorbell() override { return &own().header().bell; }

  /// The group fails, unless it has before. Returns its failure.
  Status fail(const Status &cause);
  /// After memory of a peer was read where it lies: a peer that fails before it is told so may let
  /// its caller write there.
  bool may_have_read_torn() const;
  bool has_left(int64_t peer) const { return segment(peer).header().left.load(std::memory_order_acquire) != 0; }
  /// Fails for a peer that has left or ended before its counter came as far.
  Status check_peer(int64_t peer, const std::atomic<uint64_t> &counter, uint64_t wanted, const Fingerprint *doing);
  Status check_present(int64_t peer, const Fingerprint *doing);
  /// As watch(), for some of the ranks, which are sharing memory or making a group.
  Status watch_members(std::span<const int64_t> members);

 private:
  bool has_failed() const { return failed_.load(std::memory_order_acquire) || own().header().poison.begun(); }
  Status fail_for(const Status *cause);
  void send_to_all(const Status &failure);
  void ring_all();
  SegmentHeader &root_header(int64_t peer) const;
  bool waits_in(int64_t peer, const Fingerprint &mine) const;
  /// Names the ranks that `mine` waits for, either those in the same call or the others.
  std::string progress_of_awaited(const Fingerprint &mine, bool in_same_call) const;
  std::string progress_of(int64_t peer) const;

  /// By rank.
  using SegmentTable = std::vector<Segment>;

  const int64_t rank_;
  const int64_t size_;
  const int64_t round_nbytes_;
  const LocalRounds &rounds_;
  uint64_t identity_ = 0;
  const std::shared_ptr<SegmentTable> segments_;
  /// Segments of the group from which this one descends; nullptr: this group is itself the root.
  std::shared_ptr<const SegmentTable> root_segments_;
  std::vector<int64_t> root_ranks_;  ///< ranks there, by rank
  LocalProcesses processes_;
  uint32_t news_seen_ = 0;

  std::mutex failure_mutex_;
  std::atomic<bool> failed_{false};
  Status failure_;
};

}  // namespace zero
