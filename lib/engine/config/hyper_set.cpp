/// @file Sets and reads hyper-parameters.
#include "engine/config/hyper_set.h"

#include "core/number_text.h"

#include <algorithm>
#include <array>
#include <span>

namespace zero {
namespace {

struct HyperKey {
  int32_t key;
  double kernels::HyperParameters::*value;
};

constexpr std::array<HyperKey, 12> kHyperKeys = {{
    {ZERO_KEY_LR, &kernels::HyperParameters::lr},
    {ZERO_KEY_MOMENTUM, &kernels::HyperParameters::momentum},
    {ZERO_KEY_DAMPENING, &kernels::HyperParameters::dampening},
    {ZERO_KEY_NESTEROV, &kernels::HyperParameters::nesterov},
    {ZERO_KEY_BETA1, &kernels::HyperParameters::beta1},
    {ZERO_KEY_BETA2, &kernels::HyperParameters::beta2},
    {ZERO_KEY_EPSILON, &kernels::HyperParameters::epsilon},
    {ZERO_KEY_WEIGHT_DECAY, &kernels::HyperParameters::weight_decay},
    {ZERO_KEY_LR_DECAY, &kernels::HyperParameters::lr_decay},
    {ZERO_KEY_INITIAL_ACCUMULATOR, &kernels::HyperParameters::initial_accumulator},
    {ZERO_KEY_NEWTON_SCHULZ_STEPS, &kernels::HyperParameters::newton_schulz_steps},
    {ZERO_KEY_AVERAGE_DECAY, &kernels::HyperParameters::average_decay},
}};

const HyperKey *find_hyper_key(int32_t key) {
  const auto found = std::find_if(kHyperKeys.begin(), kHyperKeys.end(), [key](const HyperKey &row) { return row.key == key; });
  return found != kHyperKeys.end() ? &*found : nullptr;
}

Status check_together(const kernels::HyperParameters &values) {
  ZERO_CHECK(values.nesterov == 0 || (values.momentum > 0 && values.dampening == 0), ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_NESTEROV is 1 with momentum %s and dampening %s, but needs momentum above 0 and dampening 0",
             number_text(values.momentum).c_str(), number_text(values.dampening).c_str());
  return {};
}

}  // namespace

Status HyperSet::check_key(int32_t key) const {
  const KeyInfo *info = find_key(key);
  ZERO_CHECK(!is_code_key(key), ZERO_E_UNSUPPORTED,
             "%s stays as the config of the optimizer says; set it there, before zero_optimizer_create", info->name);
  ZERO_CHECK(info != nullptr && find_hyper_key(key) != nullptr, ZERO_E_UNSUPPORTED,
             "%s %d is no hyper-parameter; those are ZERO_KEY_LOSS_SCALE and what zero/config.h names from 400 to 499",
             info != nullptr ? info->name : "key", key);
  if (algorithm_ == nullptr || key == ZERO_KEY_AVERAGE_DECAY) return {};
  const bool known = std::find(algorithm_->keys.begin(), algorithm_->keys.end(), key) != algorithm_->keys.end();
  ZERO_CHECK(known, ZERO_E_UNSUPPORTED, "%s is no hyper-parameter of algorithm \"%s\"", info->name, algorithm_->name);
  return {};
}

Status HyperSet::read(const kernels::Algorithm *algorithm, const Config &config, const HyperSet *base) {
  algorithm_ = algorithm;
  const bool inherits = base != nullptr && base->algorithm_ == algorithm;
  for (const HyperKey &row : kHyperKeys) {
    if (config.is_set(row.key)) ZERO_TRY(check_key(row.key));
    values_.*row.value = inherits && !config.is_set(row.key) ? base->values_.*row.value : config.f64(row.key);
  }
  using Defaults = std::span<const kernels::HyperDefault>;
  for (const kernels::HyperDefault &row : algorithm != nullptr && !inherits ? algorithm->defaults : Defaults()) {
    if (!config.is_set(row.key)) values_.*find_hyper_key(row.key)->value = row.value;
  }
  return check_together(values_);
}

Status HyperSet::set(int32_t key, double value) {
  ZERO_TRY(check_key(key));
  ZERO_TRY(check_f64(key, value));
  kernels::HyperParameters changed = values_;
  changed.*find_hyper_key(key)->value = value;
  ZERO_TRY(check_together(changed));
  values_ = changed;
  return {};
}

Status HyperSet::get(int32_t key, double *out) const {
  ZERO_TRY(check_key(key));
  *out = values_.*find_hyper_key(key)->value;
  return {};
}

std::vector<std::pair<int32_t, double>> HyperSet::all() const {
  std::vector<std::pair<int32_t, double>> all;
  for (const HyperKey &row : kHyperKeys) {
    if (check_key(row.key).ok()) all.emplace_back(row.key, values_.*row.value);
  }
  return all;
}

void HyperSet::put(int32_t key, double value) { values_.*find_hyper_key(key)->value = value; }

std::string HyperSet::text(size_t number) const {
  const std::string ending = " in set " + std::to_string(number) + "\n";
  std::string text = setting_text(ZERO_KEY_ALGORITHM, algorithm_ != nullptr ? algorithm_->name : "custom or none") + ending;
  for (const HyperKey &row : kHyperKeys) {
    if (check_key(row.key).ok()) text += setting_text(row.key, number_text(values_.*row.value)) + ending;
  }
  return text;
}

}  // namespace zero
