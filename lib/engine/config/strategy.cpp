/// @file The table of strategies.
#include "engine/config/strategy.h"

#include "core/number_text.h"

#include <zero/dtype.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace zero {
namespace {

struct KeyValue {
  int32_t key;
  double value;
};

constexpr KeyValue kHsdp[] = {{ZERO_KEY_REPLICA_RANKS, -1}};
constexpr KeyValue kDiloco[] = {{ZERO_KEY_REPLICA_RANKS, -1},
                                {ZERO_KEY_SYNC_PERIOD, 64},
                                {ZERO_KEY_SYNC_CODE, ZERO_CODE_I4},
                                {ZERO_KEY_OUTER_LR, 0.7},
                                {ZERO_KEY_OUTER_MOMENTUM, 0.9}};
constexpr KeyValue kZeropp[] = {{ZERO_KEY_STAGE, 3},
                                {ZERO_KEY_REPLICA_RANKS, -1},
                                {ZERO_KEY_GRAD_CODE, ZERO_CODE_I4},
                                {ZERO_KEY_RESIDUAL, ZERO_RESIDUAL_F32},
                                {ZERO_KEY_FLUSH_PERIOD, 100},
                                {ZERO_KEY_PARAM_DTYPE, ZERO_DTYPE_F8_E4M3}};
constexpr KeyValue kSlowLink[] = {
    {ZERO_KEY_REPLICA_RANKS, -1}, {ZERO_KEY_GRAD_CODE, ZERO_CODE_I4}, {ZERO_KEY_RESIDUAL, ZERO_RESIDUAL_F32}, {ZERO_KEY_FLUSH_PERIOD, 100}};

struct Strategy {
  const char *name;
  std::span<const KeyValue> keys;
};
constexpr std::array<Strategy, 4> kStrategies = {{{"hsdp", kHsdp}, {"diloco", kDiloco}, {"zeropp", kZeropp}, {"slow_link", kSlowLink}}};

/// The current value of a key as text.
std::string value_text(const Config &config, const KeyInfo &key) {
  if (key.type == KeyType::f64) return number_text(config.f64(key.key));
  const int64_t value = config.i64(key.key);
  return key.choices.empty() ? std::to_string(value) : choice_name(key.key, value);
}

}  // namespace

Status expand_strategy(Config &config, std::string *out_text) {
  const std::string name = config.str(ZERO_KEY_STRATEGY);
  out_text->clear();
  if (name.empty()) return {};
  const auto *const found =
      std::find_if(kStrategies.begin(), kStrategies.end(), [&](const Strategy &strategy) { return name == strategy.name; });
  ZERO_CHECK(found != kStrategies.end(), ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_STRATEGY is \"%s\", but must be \"hsdp\", \"diloco\", \"zeropp\" or \"slow_link\"", name.c_str());
  for (const KeyValue &choice : found->keys) {
    const KeyInfo &key = *find_key(choice.key);
    const bool given = config.is_set(choice.key);
    if (!given)
      ZERO_TRY(key.type == KeyType::f64 ? config.set_f64(choice.key, choice.value) : config.set_i64(choice.key, std::llrint(choice.value)));
    *out_text += (out_text->empty() ? name + ": " : ", ") + setting_text(choice.key, value_text(config, key)) + (given ? " (given)" : "");
  }
  return {};
}

}  // namespace zero
