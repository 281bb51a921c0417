/// @file Creation, registration and scalars of an optimizer.
#include "engine/optimizer.h"

namespace zero {

Status Optimizer::create(std::shared_ptr<Group> group, const Config &config, std::shared_ptr<Optimizer> *out) {
  Settings settings;
  ZERO_TRY(read_settings(config, group->size(), &settings));
  HyperSet hyper;
  ZERO_TRY(hyper.read(settings.algorithm, config));
  const int64_t threads = host_threads(config, group->place());
  out->reset(new Optimizer(std::move(group), std::move(settings), hyper, threads));
  return {};
}

Optimizer::Optimizer(std::shared_ptr<Group> group, Settings settings, const HyperSet &hyper, int64_t threads)
    : group_(std::move(group)),
      settings_(std::move(settings)),
      kernels_(threads),
      hyper_(hyper),
      gradients_(plan_, settings_, slots_, kernels_) {}

Optimizer::~Optimizer() { unseal(); }

Status Optimizer::add_param(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int64_t *out_id) {
  ZERO_TRY(check_call("zero_optimizer_add_param", Phase::building, Phase::building));
  return params_.add(name, dtype, shape, ndim, out_id);
}

Status Optimizer::set_order(const int64_t *ids, int64_t count) {
  ZERO_TRY(check_call("zero_optimizer_set_order", Phase::building, Phase::building));
  ZERO_CHECK(count >= 0 && (ids != nullptr || count == 0), ZERO_E_INVALID_ARGUMENT, "ids is %s and count %lld, but all %lld ids are needed",
             ids == nullptr ? "NULL" : "given", static_cast<long long>(count), static_cast<long long>(params_.size()));
  return params_.set_order({ids, static_cast<size_t>(count)});
}

Status Optimizer::set_weight(double weight) {
  ZERO_TRY(check_call("zero_optimizer_set_weight", Phase::running, Phase::running));
  return gradients_.set_weight(weight);
}

namespace {

Status check_set(int64_t set) {
  ZERO_CHECK(set == 0, ZERO_E_INVALID_ARGUMENT, "set is %lld, but the only parameter set is 0", static_cast<long long>(set));
  return {};
}

Status check_scalar(int32_t key) {
  const KeyInfo *info = find_key(key);
  ZERO_CHECK(key == ZERO_KEY_STEP_COUNT, ZERO_E_UNSUPPORTED, "%s %d is no scalar of an optimizer; those are the keys 500 .. 599",
             info != nullptr ? info->name : "key", key);
  return {};
}

}  // namespace

Status Optimizer::set_f64(int64_t set, int32_t key, double value) {
  ZERO_TRY(check_set(set));
  ZERO_TRY(check_call("zero_optimizer_set_f64", Phase::building, Phase::reduced));
  const bool lacks_momentum = phase_ != Phase::building && settings_.algorithm != nullptr && slots_.states().empty();
  ZERO_CHECK(key != ZERO_KEY_MOMENTUM || value == 0 || !lacks_momentum, ZERO_E_STATE,
             "momentum was 0 when the optimizer was sealed, so it keeps no momentum buffer; set momentum before zero_optimizer_seal");
  return hyper_.set(key, value);
}

Status Optimizer::get_f64(int64_t set, int32_t key, double *out) const {
  ZERO_TRY(check_set(set));
  return hyper_.get(key, out);
}

Status Optimizer::set_i64(int32_t key, int64_t value) {
  ZERO_TRY(check_scalar(key));
  ZERO_TRY(check_i64(key, value));
  ZERO_TRY(check_call("zero_optimizer_set_i64", Phase::building, Phase::running));
  applied_count_ = value;
  return {};
}

Status Optimizer::get_i64(int32_t key, int64_t *out) const {
  ZERO_TRY(check_scalar(key));
  *out = applied_count_;
  return {};
}

}  // namespace zero
