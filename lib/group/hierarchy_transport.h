/// @file The transport of groups that span hosts: ranks of one host exchange through shared memory,
/// ranks of different hosts over another transport. Knows these two and which rank is where;
/// nothing of what moves.
#pragma once

#include "group/transport.h"

#include <memory>
#include <string>
#include <vector>

namespace zero {

/// An error met while ranks of one host made a transport of their own, in which they have other
/// numbers.
Status met_on_host(const Status &status, int64_t ranks);

class HierarchyTransport final : public Transport, private Rounds, private Messages, private PeerHealth {
 public:
  /// `far` is over all ranks and `near` over those of this host, in the same order. hosts[r] is
  /// equal for ranks of one host. `far` moves nothing between ranks of one host, but for poison and
  /// questions where they stand.
  HierarchyTransport(std::shared_ptr<Transport> near, std::shared_ptr<Transport> far, std::vector<int64_t> hosts);

  int64_t staging_nbytes() const override { return near_->staging_nbytes() + far_->staging_nbytes(); }

  Task share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms) override;
  void unshare(const Mapping &mapping) override { near_->unshare(mapping); }
  Status enter_memory() override { return near_->enter_memory(); }
  uint64_t entries() const override { return near_->entries(); }
  uint64_t close_memory() override { return near_->close_memory(); }
  Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                     std::shared_ptr<Transport> *out) override;

 private:
  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override;
  Status poll(bool *out_arrived) override;
  void consume() override;
  Status poll_quiet(bool *out_quiet) override;

  Status check_thread(int64_t peer) const override;
  Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) override;
  Status send_poll(int64_t peer, bool *out_done) override;
  Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) override;
  Status recv_poll(int64_t peer, bool *out_done) override;

  Status health() override;
  Status watch() override;
  Status watch_peer(int64_t peer, const Fingerprint &doing) override;
  void poison(const Status &cause) override;
  void publish(const Fingerprint *fingerprint) override;
  void publish_message(const Fingerprint &fingerprint, bool ends) override;
  std::string progress_report(const Fingerprint &mine) override;
  void name_ranks(std::vector<int64_t> names) override;

  bool is_near(int64_t rank) const { return near_index_[static_cast<size_t>(rank)] >= 0; }
  /// The transport to a peer, and the peer's rank there.
  std::pair<Transport *, int64_t> way_to(int64_t peer) const;

  // The near one goes first: the far one may wait for ranks that the near ones wait for.
  const std::shared_ptr<Transport> far_;
  const std::shared_ptr<Transport> near_;
  const std::vector<int64_t> hosts_;
  std::vector<int64_t> near_ranks_;  ///< ranks of this host, by their rank in near_
  std::vector<int64_t> near_index_;  ///< their ranks in near_, by rank; -1 elsewhere

  // The round under way.
  std::span<Arrival> arrivals_;
  std::vector<Offer> near_offers_;
  std::vector<Offer> far_offers_;
  std::vector<Arrival> near_arrivals_;
  std::vector<Arrival> far_arrivals_;
  bool near_arrived_ = true;
  bool far_arrived_ = true;
};

}  // namespace zero
