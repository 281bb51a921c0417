/// @file The static and the dynamic loss scale.
#include "engine/loss_scale.h"

#include <algorithm>
#include <cstdio>

namespace zero {

Status LossScale::read(const Config &config, bool skips) {
  constexpr double kFirstDynamic = 65536;
  dynamic_ = config.i64(ZERO_KEY_LOSS_SCALE_DYNAMIC) != 0;
  value_ = dynamic_ && !config.is_set(ZERO_KEY_LOSS_SCALE) ? kFirstDynamic : config.f64(ZERO_KEY_LOSS_SCALE);
  window_ = config.i64(ZERO_KEY_LOSS_SCALE_WINDOW);
  hysteresis_ = config.i64(ZERO_KEY_LOSS_SCALE_HYSTERESIS);
  backoff_ = config.f64(ZERO_KEY_LOSS_SCALE_BACKOFF);
  growth_ = config.f64(ZERO_KEY_LOSS_SCALE_GROWTH);
  least_ = config.f64(ZERO_KEY_LOSS_SCALE_MIN);
  most_ = config.f64(ZERO_KEY_LOSS_SCALE_MAX);
  ZERO_CHECK(
      !dynamic_ || skips, ZERO_E_INVALID_ARGUMENT,
      "ZERO_KEY_LOSS_SCALE_DYNAMIC is 1, which needs ZERO_KEY_NONFINITE = ZERO_NONFINITE_SKIP, but that is ZERO_NONFINITE_PROPAGATE");
  return dynamic_ ? set(value_) : Status();
}

Status LossScale::set(double value) {
  ZERO_TRY(check_f64(ZERO_KEY_LOSS_SCALE, value));
  ZERO_CHECK(!dynamic_ || (value >= least_ && value <= most_), ZERO_E_INVALID_ARGUMENT,
             "the loss scale is %.17g, but must be in %.17g .. %.17g (ZERO_KEY_LOSS_SCALE_MIN and _MAX)", value, least_, most_);
  value_ = value;
  return {};
}

void LossScale::update(bool overflowed) {
  if (!dynamic_) return;
  if (overflowed) {
    growth_count_ = 0;
    if (overflow_count_ + 1 < hysteresis_) {
      ++overflow_count_;
      return;
    }
    value_ = std::max(value_ * backoff_, least_);
    return;
  }
  if (++growth_count_ < window_) return;
  growth_count_ = 0;
  overflow_count_ = 0;
  value_ = std::min(value_ * growth_, most_);
}

std::string LossScale::text() const {
  char text[256];
  std::snprintf(text, sizeof text, "%s, %.17g; window %lld, hysteresis %lld, backoff %.17g, growth %.17g, in %.17g .. %.17g",
                dynamic_ ? "dynamic" : "static", value_, static_cast<long long>(window_), static_cast<long long>(hysteresis_), backoff_,
                growth_, least_, most_);
  return text;
}

}  // namespace zero
