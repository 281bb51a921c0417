/// @file A transport that holds the sums of gradients back until the test lets them go on.
#pragma once

#include "core/clock.h"
#include "tests/group/forwarding_transport.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>

namespace zero::test {

/// What the ranks of a world share.
struct HeldReductions {
  std::atomic<bool> holds{false};
  std::atomic<int64_t> waiting{0};     ///< ranks whose sums are held
  std::atomic<bool> timed_out{false};  ///< a sum went on by itself
};

class HoldingTransport final : public ForwardingTransport {
 public:
  HoldingTransport(const std::shared_ptr<Transport> &under, HeldReductions &held)
      : ForwardingTransport(under, {.name = "holding",
                                    .place = under->capabilities().place,
                                    .round_nbytes = under->capabilities().round_nbytes,
                                    .shares_memory = under->capabilities().shares_memory}),
        held_(held) {}

 private:
  std::shared_ptr<Transport> wrap(std::shared_ptr<Transport> under) const override {
    return std::make_shared<HoldingTransport>(under, held_);
  }
  /// Holds the thread that reduces, for at most five seconds.
  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override {
    if (fingerprint != nullptr && fingerprint->kind == OperationKind::reduce_scatter && held_.holds) {
      ++held_.waiting;
      const Deadline deadline = Deadline::after_ms(5000);
      while (held_.holds && !deadline.passed()) std::this_thread::yield();
      if (held_.holds) held_.timed_out = true;
      --held_.waiting;
    }
    return ForwardingTransport::start(fingerprint, offers, arrivals);
  }

  HeldReductions &held_;
};

}  // namespace zero::test
