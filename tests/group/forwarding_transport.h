/// @file A transport that forwards everything to another. Tests override the calls that they change.
#pragma once

#include "group/transport.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace zero::test {

class ForwardingTransport : public Transport, protected Rounds {
 public:
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
    if (under != nullptr) *out = wrap(std::move(under));
    co_return Status();
  }

 protected:
  ForwardingTransport(std::shared_ptr<Transport> under, Capabilities capabilities)
      : Transport(under->rank(), under->size(), std::move(capabilities)), under_(std::move(under)) {
    set_interfaces(*this, under_->messages(), under_->peers());
  }
  /// A transport like this one, over the one of a derived group.
  virtual std::shared_ptr<Transport> wrap(std::shared_ptr<Transport> under) const = 0;
  Transport &under() const { return *under_; }

  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override {
    return under_->rounds().start(fingerprint, offers, arrivals);
  }
  Status poll(bool *out_arrived) override { return under_->rounds().poll(out_arrived); }
  void consume() override { under_->rounds().consume(); }
  Status poll_quiet(bool *out_quiet) override { return under_->rounds().poll_quiet(out_quiet); }

 private:
  const std::shared_ptr<Transport> under_;
};

}  // namespace zero::test
