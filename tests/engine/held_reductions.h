/// @file A transport that holds the sums of gradients back until the test lets them go on. Forwards everything to another.
#pragma once

#include "core/clock.h"
#include "group/transport.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace zero::test {

/// What the ranks of a world share.
struct HeldReductions {
  std::atomic<bool> holds{false};
  std::atomic<int64_t> waiting{0};     ///< ranks whose sums are held
  std::atomic<bool> timed_out{false};  ///< a sum went on by itself
};

class HoldingTransport final : public Transport, private Rounds {
 public:
  HoldingTransport(std::shared_ptr<Transport> under, HeldReductions &held)
      : Transport(under->rank(), under->size(),
                  {.name = "holding",
                   .place = under->capabilities().place,
                   .round_nbytes = under->capabilities().round_nbytes,
                   .shares_memory = under->capabilities().shares_memory}),
        under_(std::move(under)),
        held_(held) {
    set_interfaces(*this, under_->messages(), under_->peers());
  }

  int64_t staging_nbytes() const override { return under_->staging_nbytes(); }
  Task share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms) override {
    return under_->share(std::move(mine), out, deadline_ms);
  }
  void unshare(const Mapping &mapping) override { under_->unshare(mapping); }
  Status enter_memory() override { return under_->enter_memory(); }
  uint64_t entries() const override { return under_->entries(); }
  uint64_t close_memory() override { return under_->close_memory(); }
  Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                     std::shared_ptr<Transport> *out) override {
    std::shared_ptr<Transport> under;
    ZERO_CO_AWAIT(under_->derive_within(std::move(members), tag, most_round_nbytes, deadline_ms, &under));
    out->reset();
    if (under != nullptr) *out = std::make_shared<HoldingTransport>(std::move(under), held_);
    co_return Status();
  }

 private:
  /// Holds the thread that reduces, for at most five seconds.
  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override {
    if (fingerprint != nullptr && fingerprint->kind == OperationKind::reduce_scatter && held_.holds) {
      ++held_.waiting;
      const Deadline deadline = Deadline::after_ms(5000);
      while (held_.holds && !deadline.passed()) std::this_thread::yield();
      if (held_.holds) held_.timed_out = true;
      --held_.waiting;
    }
    return under_->rounds().start(fingerprint, offers, arrivals);
  }
  Status poll(bool *out_arrived) override { return under_->rounds().poll(out_arrived); }
  void consume() override { under_->rounds().consume(); }
  Status poll_quiet(bool *out_quiet) override { return under_->rounds().poll_quiet(out_quiet); }

  const std::shared_ptr<Transport> under_;
  HeldReductions &held_;
};

}  // namespace zero::test
