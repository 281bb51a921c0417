/// @file A transport within a host that holds ranks at the moments that decide whether a step was applied: one gives up in a vote which its
/// peer has passed, before or after that peer enters its memory. Forwards everything else to another.
#pragma once

#include "core/clock.h"
#include "group/transport.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace zero::test {

/// What the ranks of a world share.
struct Stumble {
  std::atomic<bool> armed{false};
  bool enters_first = false;             ///< the peer enters before the rank gives up
  int64_t gives_up = 1;                  ///< the rank that does so, in a vote that was passed
  std::atomic<bool> at_the_door{false};  ///< a peer is about to enter
  std::atomic<bool> entered{false};
  std::atomic<bool> gave_up{false};  ///< its call has returned
};

class StumblingTransport final : public Transport {
 public:
  StumblingTransport(std::shared_ptr<Transport> under, Stumble &stumble) : under_(std::move(under)), stumble_(stumble) {}

  int64_t rank() const override { return under_->rank(); }
  int64_t size() const override { return under_->size(); }
  Place place() const override { return under_->place(); }
  const char *name() const override { return "stumbling"; }
  bool shares_memory() const override { return under_->shares_memory(); }
  int64_t staging_nbytes() const override { return under_->staging_nbytes(); }
  int64_t round_nbytes() const override { return under_->round_nbytes(); }

  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override {
    if (fingerprint != nullptr) votes_ = fingerprint->kind == OperationKind::all_reduce && fingerprint->caller == Caller::step;
    return under_->start(fingerprint, offers, arrivals);
  }
  /// Peers that need this rank for a further round of the vote do not come to the door.
  Status poll(bool *out_arrived) override {
    ZERO_TRY(under_->poll(out_arrived));
    if (!*out_arrived || !votes_ || !stumble_.armed || rank() != stumble_.gives_up) return {};
    const std::atomic<bool> &awaited = stumble_.enters_first ? stumble_.entered : stumble_.at_the_door;
    const Deadline deadline = Deadline::after_ms(200);
    while (!awaited && !deadline.passed()) std::this_thread::yield();
    ZERO_CHECK(!awaited, ZERO_E_TIMEOUT, "rank %lld gives up in a vote that was passed", lld(rank()));
    return {};
  }
  void consume() override { under_->consume(); }
  Status poll_quiet(bool *out_quiet) override { return under_->poll_quiet(out_quiet); }

  Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) override {
    return under_->send_start(peer, fingerprint, offer);
  }
  Status send_poll(int64_t peer, bool *out_done) override { return under_->send_poll(peer, out_done); }
  Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) override {
    return under_->recv_start(peer, fingerprint, data, nbytes);
  }
  Status recv_poll(int64_t peer, bool *out_done) override { return under_->recv_poll(peer, out_done); }

  Status health() override { return under_->health(); }
  Status watch() override { return under_->watch(); }
  void poison(const Status &cause) override { under_->poison(cause); }
  void publish(const Fingerprint *fingerprint) override { under_->publish(fingerprint); }
  std::string progress_report(const Fingerprint &mine) override { return under_->progress_report(mine); }
  Doorbell *doorbell() override { return under_->doorbell(); }

  Task share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms) override {
    return under_->share(std::move(mine), out, deadline_ms);
  }
  void unshare(const Mapping &mapping) override { under_->unshare(mapping); }
  Status enter_memory() override {
    stumble_.at_the_door = stumble_.armed.load();
    while (stumble_.armed && !stumble_.enters_first && !stumble_.gave_up) std::this_thread::yield();
    const Status status = under_->enter_memory();
    stumble_.entered = stumble_.armed && status.ok();
    return status;
  }
  uint64_t entries() const override { return under_->entries(); }
  uint64_t close_memory() override { return under_->close_memory(); }
  Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                     std::shared_ptr<Transport> *out) override {
    std::shared_ptr<Transport> under;
    ZERO_CO_AWAIT(under_->derive_within(std::move(members), tag, most_round_nbytes, deadline_ms, &under));
    out->reset();
    if (under != nullptr) *out = std::make_shared<StumblingTransport>(std::move(under), stumble_);
    co_return Status();
  }

 private:
  const std::shared_ptr<Transport> under_;
  Stumble &stumble_;
  bool votes_ = false;
};

}  // namespace zero::test
