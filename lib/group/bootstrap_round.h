/// @file BootstrapRound: a round that a transport runs itself, while it or a group over it is being
/// made.
#pragma once

#include "core/clock.h"
#include "core/task.h"
#include "group/transport.h"

namespace zero {

/// Await it after start(). `late_code` is the error when ranks are missing after `limit_ms`. A
/// failure of `watched`, where given, ends it.
class BootstrapRound final : public Waitable {
 public:
  BootstrapRound(const Transport &transport, const Fingerprint &fingerprint, int64_t limit_ms, int32_t late_code,
                 const Transport *watched = nullptr)
      : transport_(transport),
        fingerprint_(fingerprint),
        limit_ms_(limit_ms),
        late_code_(late_code),
        watched_(watched),
        deadline_(Deadline::after_ms(limit_ms)) {}
  Status poll(bool *out_ready) override {
    ZERO_TRY(transport_.rounds().poll(out_ready));
    if (*out_ready) return {};
    if (watched_ != nullptr) ZERO_TRY(watched_->peers().health());
    if (!deadline_.passed()) return {};
    return Status::error(late_code_, "rank %lld waited %lld ms while a group over %s was made: %s", lld(transport_.rank()), lld(limit_ms_),
                         transport_.capabilities().name.c_str(), transport_.peers().progress_report(fingerprint_).c_str());
  }

 private:
  const Transport &transport_;
  const Fingerprint &fingerprint_;
  const int64_t limit_ms_;
  const int32_t late_code_;
  const Transport *const watched_;
  const Deadline deadline_;
};

}  // namespace zero
