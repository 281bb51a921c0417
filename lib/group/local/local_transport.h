/// @file The local transport: ranks of one host, threads or processes, exchange pieces through
/// segments of shared memory. Knows bytes and ranks; never dtypes, sums or deadlines of
/// collectives.
#pragma once

#include "group/local/local_mappings.h"
#include "group/local/local_messages.h"
#include "group/local/local_peers.h"
#include "group/local/local_rounds.h"
#include "group/local/rendezvous.h"
#include "group/transport.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zero {

struct LocalOptions {
  int64_t rendezvous_ms = 60'000;
  int64_t staging_nbytes = 1 << 20;  ///< for rounds, both halves together
};

/// Meets the ranks that give the same name and makes a transport of them. With one rank it uses no
/// sockets.
Task connect_local(std::string name, int64_t rank, int64_t size, LocalOptions options, std::shared_ptr<Transport> *out);

class LocalTransport final : public Transport {
 public:
  LocalTransport(int64_t rank, int64_t size, int64_t round_nbytes);
  ~LocalTransport() override;

  /// Makes it usable; once, before anything else. A transport that descends from another has a
  /// parent, and its members' ranks there.
  Task connect(std::string name, int64_t deadline_ms, LocalPeers *parent, std::vector<int64_t> members);

  int64_t staging_nbytes() const override { return Segment::staging_nbytes(size(), peers_.round_nbytes()); }
  Task copy_through(std::shared_ptr<const Reducer> copier, int64_t deadline_ms) override;
  void keep(std::shared_ptr<const void> footing) override { footing_ = std::move(footing); }

  Task share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms) override;
  void unshare(const Mapping &mapping) override { mappings_.withdraw(mapping); }
  Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                     std::shared_ptr<Transport> *out) override;
  Status enter_memory() override;
  uint64_t entries() const override { return peers_.own().header().entries.load(std::memory_order_acquire) & ~SegmentHeader::kClosed; }
  uint64_t close_memory() override;

 private:
  /// Sets the capabilities that follow from the ranks, once they are connected.
  void set_facts();
  std::string derived_name(const char *what) const;

  // By a name, where ranks may be other processes.
  Task meet(MeetingTerms terms, LocalPeers *parent, const std::vector<int64_t> &members);
  Status cannot_come(const Status &cause) const;
  Status attach_segments(std::vector<Joiner> joiners, bool descends);
  Task share_by_name(const std::shared_ptr<Mapping> &mine, std::vector<PeerMemory> *out, int64_t deadline_ms);
  Status attach_shared(std::vector<Joiner> joiners, std::vector<PeerMemory> *out);

  // For ranks that are all threads of this process.
  Task share_here(const std::shared_ptr<Mapping> &mine, std::vector<PeerMemory> *out, int64_t deadline_ms);
  Task derive_here(LocalTransport &child, const std::vector<int64_t> &members, int64_t tag, int64_t deadline_ms);
  void bring(uint64_t key, uint64_t mapping_id, uint64_t identity, std::span<const int64_t> members);
  Task find_here(std::span<const int64_t> members, int64_t self, uint64_t key, int64_t deadline_ms,
                 std::vector<std::shared_ptr<Mapping>> *out);
  Status find_brought(std::span<const int64_t> members, std::span<std::shared_ptr<Mapping>> out);
  Task join_here(std::span<const int64_t> members, int64_t self, int64_t left_ms);

  std::shared_ptr<const void> footing_;  ///< the first member, so that it goes last
  LocalPeers peers_;
  LocalMappings mappings_;
  LocalRounds rounds_;
  LocalMessages messages_;
  uint64_t derived_ = 0;  ///< derived objects so far, the same on all ranks
};

}  // namespace zero
