/// @file Reading an optimizer's config.
#include "engine/settings.h"

#include "engine/shard_weights.h"

namespace zero {
namespace {

Status read_algorithm(const Config &config, Settings *out) {
  const std::string &name = config.str(ZERO_KEY_ALGORITHM);
  out->custom_slots = config.i64(ZERO_KEY_CUSTOM_SLOTS);
  if (name == "custom") return {};
  ZERO_CHECK(out->custom_slots == 0, ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_CUSTOM_SLOTS is %lld, but only algorithm \"custom\" has such slots",
             static_cast<long long>(out->custom_slots));
  out->algorithm = kernels::find_algorithm(name.empty() ? "adamw" : name.c_str());
  ZERO_CHECK(out->algorithm != nullptr, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_ALGORITHM is \"%s\", but must be \"sgd\", \"adam\", \"adamw\" or \"custom\"", name.c_str());
  return {};
}

}  // namespace

Status read_settings(const Config &config, int64_t size, Settings *out) {
  Settings settings{};
  settings.stage = config.i64(ZERO_KEY_STAGE);
  ZERO_TRY(read_algorithm(config, &settings));
  settings.bucket_nbytes = config.i64(ZERO_KEY_BUCKET_BYTES);
  settings.divisor = config.i64(ZERO_KEY_DIVISOR);
  settings.skips_nonfinite = config.i64(ZERO_KEY_NONFINITE) == ZERO_NONFINITE_SKIP;
  settings.grad_norm = config.i64(ZERO_KEY_GRAD_NORM) != 0;
  settings.overlap = config.i64(ZERO_KEY_OVERLAP) != 0;
  settings.pool_limit = config.i64(ZERO_KEY_POOL_LIMIT);
  ZERO_TRY(parse_shard_weights(config.str(ZERO_KEY_SHARD_WEIGHTS), size, &settings.shard_weights));
  settings.hook = config.hook;
  *out = std::move(settings);
  return {};
}

}  // namespace zero
