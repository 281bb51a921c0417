/// @file A transport within a host that holds ranks at the moments that decide whether a step was applied: one gives up in a vote which its
/// peer has passed, before or after that peer enters its memory.
#pragma once

#include "core/clock.h"
#include "tests/group/forwarding_transport.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>

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

class StumblingTransport final : public ForwardingTransport {
 public:
  StumblingTransport(const std::shared_ptr<Transport> &under, Stumble &stumble)
      : ForwardingTransport(under, {.name = "stumbling",
                                    .place = under->capabilities().place,
                                    .round_nbytes = under->capabilities().round_nbytes,
                                    .shares_memory = under->capabilities().shares_memory}),
        stumble_(stumble) {}

  Status enter_memory() override {
    stumble_.at_the_door = stumble_.armed.load();
    while (stumble_.armed && !stumble_.enters_first && !stumble_.gave_up) std::this_thread::yield();
    const Status status = under().enter_memory();
    stumble_.entered = stumble_.armed && status.ok();
    return status;
  }

 private:
  std::shared_ptr<Transport> wrap(std::shared_ptr<Transport> under) const override {
    return std::make_shared<StumblingTransport>(under, stumble_);
  }
  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override {
    if (fingerprint != nullptr) votes_ = fingerprint->kind == OperationKind::all_reduce && fingerprint->caller == Caller::step;
    return ForwardingTransport::start(fingerprint, offers, arrivals);
  }
  /// Peers that need this rank for a further round of the vote do not come to the door.
  Status poll(bool *out_arrived) override {
    ZERO_TRY(ForwardingTransport::poll(out_arrived));
    if (!*out_arrived || !votes_ || !stumble_.armed || rank() != stumble_.gives_up) return {};
    const std::atomic<bool> &awaited = stumble_.enters_first ? stumble_.entered : stumble_.at_the_door;
    const Deadline deadline = Deadline::after_ms(200);
    while (!awaited && !deadline.passed()) std::this_thread::yield();
    ZERO_CHECK(!awaited, ZERO_E_TIMEOUT, "rank %lld gives up in a vote that was passed", lld(rank()));
    return {};
  }

  Stumble &stumble_;
  bool votes_ = false;
};

}  // namespace zero::test
