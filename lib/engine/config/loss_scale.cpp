/// @file Reads, sets and prints the loss scale.
#include "engine/config/loss_scale.h"

#include "core/number_text.h"

namespace zero {

Status LossScale::read(const Config &config, bool skips) {
  constexpr double kFirstDynamic = 65536;
  rules_.dynamic = config.i64(ZERO_KEY_LOSS_SCALE_DYNAMIC) != 0 ? 1 : 0;
  rules_.window = config.i64(ZERO_KEY_LOSS_SCALE_WINDOW);
  rules_.hysteresis = config.i64(ZERO_KEY_LOSS_SCALE_HYSTERESIS);
  rules_.backoff = config.f64(ZERO_KEY_LOSS_SCALE_BACKOFF);
  rules_.growth = config.f64(ZERO_KEY_LOSS_SCALE_GROWTH);
  rules_.least = config.f64(ZERO_KEY_LOSS_SCALE_MIN);
  rules_.most = config.f64(ZERO_KEY_LOSS_SCALE_MAX);
  first_.value = rules_.dynamic != 0 && !config.is_set(ZERO_KEY_LOSS_SCALE) ? kFirstDynamic : config.f64(ZERO_KEY_LOSS_SCALE);
  ZERO_CHECK(rules_.least <= rules_.most, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_LOSS_SCALE_MIN is %s, but must not be above ZERO_KEY_LOSS_SCALE_MAX, which is %s", number_text(rules_.least).c_str(),
             number_text(rules_.most).c_str());
  ZERO_CHECK(
      rules_.dynamic == 0 || skips, ZERO_E_INVALID_ARGUMENT,
      "ZERO_KEY_LOSS_SCALE_DYNAMIC is 1, which needs ZERO_KEY_NONFINITE = ZERO_NONFINITE_SKIP, but that is ZERO_NONFINITE_PROPAGATE");
  return rules_.dynamic != 0 ? set(first_.value, first_) : Status();
}

Status LossScale::set(double value, kernels::LossScaleState &state) const {
  ZERO_TRY(check_f64(ZERO_KEY_LOSS_SCALE, value));
  ZERO_CHECK(rules_.dynamic == 0 || (value >= rules_.least && value <= rules_.most), ZERO_E_INVALID_ARGUMENT,
             "the loss scale is %s, but must be in %s .. %s (ZERO_KEY_LOSS_SCALE_MIN and _MAX)", number_text(value).c_str(),
             number_text(rules_.least).c_str(), number_text(rules_.most).c_str());
  state.value = value;
  return {};
}

std::string LossScale::text(const kernels::LossScaleState &state) const {
  const auto line = [](int32_t key, const std::string &value) { return setting_text(key, value) + "\n"; };
  return line(ZERO_KEY_LOSS_SCALE_DYNAMIC, std::to_string(rules_.dynamic)) + line(ZERO_KEY_LOSS_SCALE, number_text(state.value)) +
         line(ZERO_KEY_LOSS_SCALE_WINDOW, std::to_string(rules_.window)) +
         line(ZERO_KEY_LOSS_SCALE_HYSTERESIS, std::to_string(rules_.hysteresis)) +
         line(ZERO_KEY_LOSS_SCALE_BACKOFF, number_text(rules_.backoff)) + line(ZERO_KEY_LOSS_SCALE_GROWTH, number_text(rules_.growth)) +
         line(ZERO_KEY_LOSS_SCALE_MIN, number_text(rules_.least)) + line(ZERO_KEY_LOSS_SCALE_MAX, number_text(rules_.most));
}

}  // namespace zero
