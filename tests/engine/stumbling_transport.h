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

class StumblingTransport final : public Transport, private Rounds {
 public:
  StumblingTransport(std::shared_ptr<Transport> under, Stumble &stumble)
      : Transport(under->rank(), under->size(),
                  {.name = "stumbling",
                   .place = under->capabilities().place,
                   .round_nbytes = under->capabilities().round_nbytes,
                   .shares_memory = under->capabilities().shares_memory}),
        under_(std::move(under)),
        stumble_(stumble) {
    set_interfaces(*this, under_->messages(), under_->peers());
  }

  int64_t staging_nbytes() const override { return under_->staging_nbytes(); }
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
  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override {
    if (fingerprint != nullptr) votes_ = fingerprint->kind == OperationKind::all_reduce && fingerprint->caller == Caller::step;
    return under_->rounds().start(fingerprint, offers, arrivals);
  }
  /// Peers that need this rank for a further round of the vote do not come to the door.
  Status poll(bool *out_arrived) override {
    ZERO_TRY(under_->rounds().poll(out_arrived));
    if (!*out_arrived || !votes_ || !stumble_.armed || rank() != stumble_.gives_up) return {};
    const std::atomic<bool> &awaited = stumble_.enters_first ? stumble_.entered : stumble_.at_the_door;
    const Deadline deadline = Deadline::after_ms(200);
    while (!awaited && !deadline.passed()) std::this_thread::yield();
    ZERO_CHECK(!awaited, ZERO_E_TIMEOUT, "rank %lld gives up in a vote that was passed", lld(rank()));
    return {};
  }
  void consume() override { under_->rounds().consume(); }
  Status poll_quiet(bool *out_quiet) override { return under_->rounds().poll_quiet(out_quiet); }

  const std::shared_ptr<Transport> under_;
  Stumble &stumble_;
  bool votes_ = false;
};

}  // namespace zero::test
