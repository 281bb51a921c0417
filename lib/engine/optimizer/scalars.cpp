/// @file Sets and reads scalars.
#include "engine/optimizer/scalars.h"

#include <algorithm>

namespace zero {

int64_t *count_of(kernels::StepState &run, int32_t key) {
  switch (key) {
    case ZERO_KEY_STEP_COUNT:
      return &run.applied_count;
    case ZERO_KEY_SKIPPED_COUNT:
      return &run.skipped_count;
    case ZERO_KEY_GROWTH_COUNT:
      return &run.loss_scale.growth_count;
    case ZERO_KEY_OVERFLOW_COUNT:
      return &run.loss_scale.overflow_count;
    default:
      return nullptr;
  }
}

/// True if momentum was 0 at seal, so that the set has no momentum buffer.
bool OptimizerScalars::lacks_momentum(int64_t set) const {
  if (parts_.guard.phase() == CallGuard::Phase::building || parts_.registry.sets[static_cast<size_t>(set)].algorithm() == nullptr)
    return false;
  for (int64_t id = 0; id < parts_.registry.params.size(); ++id) {
    const Format &format = parts_.state.layout.format_of(id);
    const auto is_moment = [](const SlotFormat &slot) { return slot.number == ZERO_SLOT_FIRST_MOMENT; };
    const bool keeps = std::any_of(format.states.begin(), format.states.end(), is_moment);
    if (parts_.registry.params[id].options.set == set && !parts_.registry.params[id].tied() && format.trains && !keeps) return true;
  }
  return false;
}

Status OptimizerScalars::set_f64(int64_t set, int32_t key, double value) {
  ZERO_TRY(parts_.registry.check_set(set));
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_set_f64", CallGuard::Phase::building, CallGuard::Phase::running));
  if (key == ZERO_KEY_LOSS_SCALE) {
    ZERO_TRY(parts_.run.learn());
    kernels::LossScaleState scale = parts_.run.known().loss_scale;
    ZERO_TRY(parts_.loss_scale.set(value, scale));
    parts_.run.edit().loss_scale = scale;
    if (!parts_.gradients.started()) parts_.plan_next_step();
    return {};
  }
  if (is_outer_key(key)) return parts_.replicas.set(key, value);
  double now = 0;
  ZERO_TRY(parts_.registry.sets[static_cast<size_t>(set)].get(key, &now));
  ZERO_CHECK(key != ZERO_KEY_MOMENTUM || value == 0 || !lacks_momentum(set), ZERO_E_STATE,
             "momentum was 0 when the optimizer was sealed, so it keeps no momentum buffer; set momentum before zero_optimizer_seal");
  if (key != ZERO_KEY_BETA1 || !parts_.settings.replicas.code_freeze) return parts_.registry.sets[static_cast<size_t>(set)].set(key, value);
  ZERO_CHECK(
      !parts_.gradients.started(), ZERO_E_STATE,
      "gradients of a step were given, and with ZERO_KEY_CODE_FREEZE they carry first moments by ZERO_KEY_BETA1; set it between steps");
  ZERO_TRY(parts_.registry.sets[static_cast<size_t>(set)].set(key, value));
  parts_.plan_next_step();
  return {};
}

Status OptimizerScalars::get_f64(int64_t set, int32_t key, double *out) const {
  ZERO_TRY(parts_.registry.check_set(set));
  if (key == ZERO_KEY_LOSS_SCALE) {
    ZERO_TRY(parts_.known_run());
    *out = parts_.run.known().loss_scale.value;
    return {};
  }
  if (is_outer_key(key)) return parts_.replicas.get(key, out);
  return parts_.registry.sets[static_cast<size_t>(set)].get(key, out);
}

Status OptimizerScalars::set_i64(int32_t key, int64_t value) {
  int64_t now = 0;
  ZERO_TRY(get_i64(key, &now));
  ZERO_TRY(check_i64(key, value));
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_set_i64", CallGuard::Phase::building, CallGuard::Phase::running));
  *count_of(parts_.run.edit(), key) = value;
  if (key == ZERO_KEY_STEP_COUNT) parts_.state.update_counts.set_all(value);
  if (key == ZERO_KEY_STEP_COUNT) parts_.state.moment_freeze.set_missed(0);
  parts_.replica_run.applied_ahead.assign(parts_.replica_run.applied_ahead.size(), 0);
  if (!parts_.gradients.started()) parts_.plan_next_step();
  // A device gets the counts later, in stream order.
  return parts_.settings.on_device ? Status() : parts_.tell_update_counts();
}

Status OptimizerScalars::get_i64(int32_t key, int64_t *out) const {
  kernels::StepState run;
  const KeyInfo *info = find_key(key);
  ZERO_CHECK(count_of(run, key) != nullptr, ZERO_E_UNSUPPORTED,
             "%s %d is no scalar of an optimizer; those are what zero/config.h names from 500 to 599", info != nullptr ? info->name : "key",
             key);
  ZERO_TRY(parts_.known_run());
  run = parts_.run.known();
  *out = *count_of(run, key);
  return {};
}

}  // namespace zero
