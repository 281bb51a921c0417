/// @file Reading the config of a server object.
#include "engine/server/server_settings.h"

#include "core/number_text.h"
#include "engine/config/settings.h"
#include "engine/layout/params.h"

namespace zero {
namespace {

constexpr int64_t kMostWorkers = 32768;  // a record has 15 bits for each

/// A key that has no effect is an error.
Status check_effects(const Config &config, const ServerSettings &settings) {
  ZERO_CHECK(!settings.round_robin || settings.staleness == 0, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_SERVER_STALENESS is %lld, but with ZERO_SERVER_ORDER_ROUND_ROBIN no worker is ahead of another by a push; set "
             "ZERO_KEY_SERVER_ORDER to ZERO_SERVER_ORDER_ARRIVAL",
             lld(settings.staleness));
  ZERO_CHECK(settings.rule == ZERO_SERVER_RULE_AVERAGE || !config.is_set(ZERO_KEY_SERVER_RATE), ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_SERVER_RATE is set, but has an effect only with ZERO_KEY_SERVER_RULE = ZERO_SERVER_RULE_AVERAGE, not %s",
             choice_name(ZERO_KEY_SERVER_RULE, settings.rule));
  ZERO_CHECK(settings.rule == ZERO_SERVER_RULE_MEAN || !config.is_set(ZERO_KEY_SERVER_PERIOD), ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_SERVER_PERIOD is set, but has an effect only with ZERO_KEY_SERVER_RULE = ZERO_SERVER_RULE_MEAN, not %s",
             choice_name(ZERO_KEY_SERVER_RULE, settings.rule));
  return {};
}

Status read_update(const Config &config, ServerSettings *out) {
  if (out->rule != ZERO_SERVER_RULE_UPDATE) return {};
  ZERO_TRY(read_algorithm(config, &out->algorithm));
  ZERO_CHECK(out->algorithm != nullptr && !out->algorithm->layerwise && !out->algorithm->matrix, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_ALGORITHM is \"%s\", but servers update elements one by one: use \"sgd\", \"adam\", \"adamw\", \"adagrad\" or "
             "\"lion\"",
             config.str(ZERO_KEY_ALGORITHM).c_str());
  return out->hyper.read(out->algorithm, config, nullptr);
}

}  // namespace

Status read_server_settings(const Config &config, int64_t ranks, int64_t count, ServerSettings *out) {
  ServerSettings settings;
  ZERO_CHECK(count >= 0 && count <= kMostElements, ZERO_E_INVALID_ARGUMENT, "count is %lld, but must be in 0 .. %s", lld(count),
             bound_text(kMostElements).c_str());
  settings.count = count;
  settings.server_count = config.i64(ZERO_KEY_SERVER_RANKS);
  ZERO_CHECK(settings.server_count < ranks, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_SERVER_RANKS is %lld, but must be below the %lld ranks of the group, so that one is a worker",
             lld(settings.server_count), lld(ranks));
  settings.worker_count = ranks - settings.server_count;
  ZERO_CHECK(settings.worker_count <= kMostWorkers, ZERO_E_UNSUPPORTED, "%lld ranks would be workers, but at most %lld can be",
             lld(settings.worker_count), lld(kMostWorkers));
  settings.round_robin = config.i64(ZERO_KEY_SERVER_ORDER) == ZERO_SERVER_ORDER_ROUND_ROBIN;
  settings.staleness = config.i64(ZERO_KEY_SERVER_STALENESS);
  settings.rule = static_cast<int32_t>(config.i64(ZERO_KEY_SERVER_RULE));
  settings.rate = config.f64(ZERO_KEY_SERVER_RATE);
  const int64_t period = config.i64(ZERO_KEY_SERVER_PERIOD);
  settings.period = period > 0 ? period : settings.worker_count;
  settings.skips_nonfinite = config.i64(ZERO_KEY_NONFINITE) == ZERO_NONFINITE_SKIP;
  settings.hook = config.hook;
  ZERO_TRY(check_effects(config, settings));
  ZERO_TRY(read_update(config, &settings));
  *out = settings;
  return {};
}

std::string ServerSettings::text() const {
  std::string text = "count = " + std::to_string(count) + "\n";
  const auto add = [&text](int32_t key, const std::string &value) { text += setting_text(key, value) + "\n"; };
  add(ZERO_KEY_SERVER_RANKS, std::to_string(server_count));
  add(ZERO_KEY_SERVER_ORDER, choice_name(ZERO_KEY_SERVER_ORDER, round_robin ? ZERO_SERVER_ORDER_ROUND_ROBIN : ZERO_SERVER_ORDER_ARRIVAL));
  add(ZERO_KEY_SERVER_STALENESS, std::to_string(staleness));
  add(ZERO_KEY_SERVER_RULE, choice_name(ZERO_KEY_SERVER_RULE, rule));
  add(ZERO_KEY_SERVER_RATE, number_text(rate));
  add(ZERO_KEY_SERVER_PERIOD, std::to_string(period));
  add(ZERO_KEY_NONFINITE, choice_name(ZERO_KEY_NONFINITE, skips_nonfinite ? ZERO_NONFINITE_SKIP : ZERO_NONFINITE_PROPAGATE));
  return algorithm != nullptr ? text + hyper.text(0) : text;
}

}  // namespace zero
