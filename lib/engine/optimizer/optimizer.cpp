/// @file Creation, registration and scalars of an optimizer.
#include "engine/optimizer/optimizer.h"

#include "engine/config/strategy.h"

#include <algorithm>
#include <array>

namespace zero {
namespace {

constexpr int64_t kMostSets = 4096;
constexpr bool is_outer_key(int32_t key) { return key == ZERO_KEY_OUTER_LR || key == ZERO_KEY_OUTER_MOMENTUM; }
constexpr bool is_hyper_key(int32_t key) { return key >= 400 && key < 500 && !is_outer_key(key); }
constexpr std::array<int32_t, 10> kParamKeys = {ZERO_KEY_SET,         ZERO_KEY_FROZEN,
                                                ZERO_KEY_GRAD_DTYPE,  ZERO_KEY_MASTER,
                                                ZERO_KEY_REPLICATED,  ZERO_KEY_FIRST_MOMENT_DTYPE,
                                                ZERO_KEY_TIED_TO,     ZERO_KEY_SECOND_MOMENT_DTYPE,
                                                ZERO_KEY_PARAM_DTYPE, ZERO_KEY_ROWS};

/// Of these, those that an optimizer's config does not set for all.
constexpr std::array<int32_t, 5> kOneParamKeys = {ZERO_KEY_SET, ZERO_KEY_FROZEN, ZERO_KEY_REPLICATED, ZERO_KEY_TIED_TO, ZERO_KEY_ROWS};

/// No key may be set that `allowed` does not know.
template <class Allowed>
Status check_keys(const Config &config, const char *what, Allowed &&allowed) {
  for (const KeyInfo &info : all_keys()) {
    ZERO_CHECK(!config.is_set(info.key) || allowed(info.key), ZERO_E_UNSUPPORTED, "%s is no key of %s", info.name, what);
  }
  return {};
}

/// nullptr for a key of none.
int64_t *count_of(kernels::RunState &run, int32_t key) {
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

/// What would have to know rows, and does not.
Status check_rows(const Settings &settings, const char *name) {
  ZERO_CHECK(
      !settings.on_device, ZERO_E_UNSUPPORTED,
      "%s: ZERO_KEY_ROWS is 1, but ZERO_KEY_TIER is ZERO_TIER_DEVICE, where gradients are reduced whole; set it to ZERO_TIER_HOST, or "
      "give whole gradients",
      name);
  ZERO_CHECK(!settings.replicas.any(), ZERO_E_UNSUPPORTED,
             "%s: ZERO_KEY_ROWS is 1, but ZERO_KEY_REPLICA_RANKS is set, and sums over replicas are of whole gradients; set one of the two",
             name);
  ZERO_CHECK(!settings.leaves_unfilled, ZERO_E_UNSUPPORTED,
             "%s: ZERO_KEY_ROWS is 1, but ZERO_KEY_UNFILLED is ZERO_UNFILLED_UNTOUCHED, which leaves whole tensors untouched; set it to "
             "ZERO_UNFILLED_ZERO, or give whole gradients",
             name);
  return {};
}

}  // namespace

Status Optimizer::create(std::shared_ptr<Group> group, const Config &given, std::shared_ptr<Optimizer> *out) {
  Config config = given;
  std::string strategy;
  ZERO_TRY(expand_strategy(config, &strategy));
  for (const int32_t key : kOneParamKeys) {
    ZERO_CHECK(!config.is_set(key), ZERO_E_UNSUPPORTED, "%s is set for the whole optimizer, but is a key of single parameters",
               find_key(key)->name);
  }
  Settings settings;
  const Place &place = group->place();
  const Status read = read_settings(config, {group->rank(), group->size(), place.local_rank, place.local_size}, &settings);
  ZERO_CHECK(read.ok() || strategy.empty(), read.code(), "strategy %s: %s", strategy.c_str(), read.text());
  ZERO_TRY(read);
  settings.strategy = strategy;
  HyperSet hyper;
  ZERO_TRY(hyper.read(settings.algorithm, config, nullptr));
  LossScale loss_scale;
  ZERO_TRY(loss_scale.read(config, settings.skips_nonfinite));
  std::unique_ptr<Device> device;
  if (settings.device >= 0) ZERO_TRY(Device::open(config.str(ZERO_KEY_CUDA_MODULE), settings.device, &device));
  ZERO_CHECK(!settings.on_device || group->transport().copies_offers(), ZERO_E_UNSUPPORTED,
             "ZERO_KEY_TIER is ZERO_TIER_DEVICE, but transport %s sends memory of the host only; set ZERO_KEY_NCCL for the group, or "
             "make it with zero_group_create_local",
             group->transport().name());
  std::unique_ptr<DeviceKernels> device_kernels;
  if (settings.on_device) device_kernels = std::make_unique<DeviceKernels>(*device);
  const int64_t threads = host_threads(config, place);
  out->reset(
      new Optimizer(std::move(group), std::move(settings), hyper, loss_scale, threads, std::move(device), std::move(device_kernels)));
  return {};
}

Optimizer::Optimizer(std::shared_ptr<Group> group, Settings settings, const HyperSet &hyper, const LossScale &loss_scale, int64_t threads,
                     std::unique_ptr<Device> device, std::unique_ptr<DeviceKernels> device_kernels)
    : group_(std::move(group)),
      settings_(std::move(settings)),
      host_kernels_(threads),
      device_(std::move(device)),
      device_kernels_(std::move(device_kernels)),
      kernels_(device_kernels_ != nullptr ? static_cast<Kernels &>(*device_kernels_) : host_kernels_),
      sets_{hyper},
      loss_scale_(loss_scale),
      layout_(params_, settings_, sets_),
      plan_(layout_.plan()),
      tensors_(params_, layout_, slots_, updates_all()),
      coded_params_(params_, layout_, tensors_, kernels_),
      run_(loss_scale.first(), device_kernels_.get()),
      update_counts_(kernels_),
      verifier_(params_, layout_, tensors_, kernels_, run_),
      gradients_(plan_, settings_, slots_, kernels_, params_, trace_),
      updates_(plan_, settings_, slots_, params_, kernels_, sets_),
      groups_(group_),
      gathers_(params_, layout_, tensors_, coded_params_, kernels_, settings_, trace_),
      first_values_(params_, layout_, tensors_, coded_params_, kernels_, gathers_, groups_),
      replicas_(params_, layout_, tensors_, coded_params_, kernels_, settings_, updates_all()),
      guard_(group_, groups_, gathers_, alone()) {}

Optimizer::~Optimizer() { unseal(); }

Status Optimizer::check_stream(void *stream) const {
  ZERO_CHECK(stream == nullptr || device_ != nullptr, ZERO_E_UNSUPPORTED,
             "stream is %p, but must be NULL: this optimizer works for host memory (ZERO_KEY_DEVICE names a device)", stream);
  return device_ != nullptr ? device_->check_stream(stream) : Status();
}

/// Before seal the device has no stream; the body says that it comes too early.
Task Optimizer::in_order(Task body, void *stream) {
  if (!settings_.on_device || guard_.phase() == Phase::building) co_return co_await body;
  ZERO_CO_TRY(device_->follow(stream));
  Status status = co_await body;
  Status led = device_->lead(stream);
  co_return status.ok() ? led : status;
}

Status Optimizer::check_range(int64_t id, int64_t offset, int64_t count) const {
  ZERO_TRY(params_.check_id(id));
  const int64_t whole = params_[id].count;
  ZERO_CHECK(offset >= 0 && count >= 0 && offset <= whole && count <= whole - offset, ZERO_E_INVALID_ARGUMENT,
             "offset %lld and count %lld are given, but the elements of %s are %lld", lld(offset), lld(count), params_[id].name.c_str(),
             lld(whole));
  return {};
}

Status Optimizer::read_options(const Config &config, const char *name, ParamOptions *out) const {
  const auto is_param_key = [](int32_t key) { return std::find(kParamKeys.begin(), kParamKeys.end(), key) != kParamKeys.end(); };
  ZERO_TRY(check_keys(config, "a single parameter", is_param_key));
  if (config.is_set(ZERO_KEY_TIED_TO)) {
    out->tied_to = config.i64(ZERO_KEY_TIED_TO);
    for (const int32_t key : kParamKeys) {
      ZERO_CHECK(key == ZERO_KEY_TIED_TO || !config.is_set(key), ZERO_E_INVALID_ARGUMENT,
                 "%s: %s is set together with ZERO_KEY_TIED_TO, but a tied parameter has the options of the one it is tied to", name,
                 find_key(key)->name);
    }
    return {};
  }
  out->set = config.i64(ZERO_KEY_SET);
  ZERO_TRY(check_index(out->set, static_cast<int64_t>(sets_.size()), (std::string(name) + ": ZERO_KEY_SET").c_str(),
                       "parameter sets (zero_optimizer_add_set)"));
  out->frozen = config.i64(ZERO_KEY_FROZEN) != 0;
  out->replicated = config.i64(ZERO_KEY_REPLICATED) != 0;
  out->by_rows = config.i64(ZERO_KEY_ROWS) != 0;
  read_precision(config, &out->precision);
  return out->by_rows ? check_rows(settings_, name) : Status();
}

Status Optimizer::add_param(const Config *config, const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int64_t *out_id) {
  ZERO_TRY(guard_.check_call("zero_optimizer_add_param", Phase::building, Phase::building));
  ParamOptions options;
  options.precision = settings_.precision;
  ZERO_TRY(check_tensor_name(name));
  const std::string shown = quoted_name(name);
  if (config != nullptr) ZERO_TRY(read_options(*config, shown.c_str(), &options));
  ZERO_CHECK(!module_buffers_.has(name), ZERO_E_INVALID_ARGUMENT,
             "%s is the name of a module buffer; names must be unique in the optimizer", shown.c_str());
  return params_.add(name, dtype, shape, ndim, options, out_id);
}

Status Optimizer::add_set(const Config &config, int64_t *out_set) {
  ZERO_TRY(guard_.check_call("zero_optimizer_add_set", Phase::building, Phase::building));
  ZERO_TRY(check_keys(config, "a parameter set", [](int32_t key) { return key == ZERO_KEY_ALGORITHM || is_hyper_key(key); }));
  ZERO_CHECK(static_cast<int64_t>(sets_.size()) < kMostSets, ZERO_E_UNSUPPORTED, "there are %zu parameter sets, which is the most",
             sets_.size());
  const kernels::Algorithm *algorithm = settings_.algorithm;
  if (config.is_set(ZERO_KEY_ALGORITHM)) {
    ZERO_TRY(read_algorithm(config, &algorithm));
    // Only the optimizer's own name tells apart who keeps parameters only and who leaves updates to the caller.
    const bool alike = algorithm != nullptr ? settings_.algorithm != nullptr : config.str(ZERO_KEY_ALGORITHM) == settings_.algorithm_name();
    ZERO_CHECK(alike, ZERO_E_UNSUPPORTED,
               "ZERO_KEY_ALGORITHM of the set is \"%s\", but that of the optimizer is \"%s\": the library updates all sets or none",
               config.str(ZERO_KEY_ALGORITHM).c_str(), settings_.algorithm_name());
  }
  HyperSet set;
  ZERO_TRY(set.read(algorithm, config, &sets_.front()));
  sets_.push_back(set);
  *out_set = static_cast<int64_t>(sets_.size()) - 1;
  return {};
}

Status Optimizer::set_model_group(std::shared_ptr<Group> group) {
  ZERO_TRY(guard_.check_call("zero_optimizer_set_model_group", Phase::building, Phase::building));
  ZERO_CHECK(!settings_.replicas.any(), ZERO_E_UNSUPPORTED,
             "ZERO_KEY_REPLICA_RANKS makes %lld replicas, but an optimizer with a model group has one", lld(settings_.replicas.count));
  ZERO_CHECK(group != group_ || alone(), ZERO_E_INVALID_ARGUMENT,
             "the model group is the group of the optimizer itself, whose ranks hold the same part of the model; give the group over which "
             "the model is cut");
  groups_.set_model_parent(std::move(group));
  return {};
}

Status Optimizer::set_order(const int64_t *ids, int64_t count) {
  ZERO_TRY(guard_.check_call("zero_optimizer_set_order", Phase::building, Phase::building));
  ZERO_CHECK(count >= 0 && (ids != nullptr || count == 0), ZERO_E_INVALID_ARGUMENT,
             "ids is %s and count is %lld, but ids must hold all ids of parameters and count be %lld", ids == nullptr ? "NULL" : "given",
             lld(count), lld(params_.size()));
  return params_.set_order({ids, static_cast<size_t>(count)});
}

Status Optimizer::add_module_buffer(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int32_t rule, int64_t *out_id) {
  ZERO_TRY(guard_.check_call("zero_optimizer_add_module_buffer", Phase::building, Phase::building));
  ZERO_TRY(check_tensor_name(name));
  ZERO_CHECK(!params_.has(name), ZERO_E_INVALID_ARGUMENT, "%s is the name of a parameter; names must be unique in the optimizer",
             quoted_name(name).c_str());
  return module_buffers_.add(name, dtype, shape, ndim, rule, out_id);
}

Status Optimizer::module_buffer(int64_t id, void **out_data, int64_t *out_count) const {
  ZERO_TRY(guard_.check_call("zero_optimizer_module_buffer", Phase::sealed, Phase::reduced));
  ZERO_TRY(module_buffers_.check_id(id));
  *out_data = module_buffers_[id].data;
  *out_count = module_buffers_[id].count;
  return {};
}

Task Optimizer::sync_module_buffers() { return guard_.run(sync_body(), Caller::sync_module_buffers); }

Task Optimizer::sync_body() {
  ZERO_CO_TRY(guard_.check_phase("zero_optimizer_sync_module_buffers", Phase::sealed, Phase::reduced));
  ZERO_CO_AWAIT(module_buffers_.sync(*groups_.gather()));
  if (groups_.across() == nullptr) co_return Status();
  groups_.across()->set_caller(Caller::sync_module_buffers);
  ZERO_CO_AWAIT(module_buffers_.sync(*groups_.across()));
  co_return Status();
}

Status Optimizer::set_gather_order(const int64_t *ids, int64_t count) {
  ZERO_TRY(guard_.check_call("zero_optimizer_set_gather_order", Phase::building, Phase::building));
  ZERO_CHECK(count >= 0 && (ids != nullptr || count == 0), ZERO_E_INVALID_ARGUMENT,
             "ids is %s and count is %lld, but must not be NULL with a count above 0, nor count negative",
             ids == nullptr ? "NULL" : "given", lld(count));
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) {
    ZERO_TRY(params_.check_id(ids[i]));
    order.push_back(params_.holder(ids[i]));
  }
  gathers_.set_order(std::move(order));
  return {};
}

Status Optimizer::set_weight(double weight) {
  ZERO_TRY(guard_.check_call("zero_optimizer_set_weight", Phase::running, Phase::running));
  return gradients_.set_weight(weight);
}

Status Optimizer::check_set(int64_t set) const { return check_index(set, static_cast<int64_t>(sets_.size()), "set", "parameter sets"); }

/// A momentum buffer is kept only where momentum was on at seal.
bool Optimizer::lacks_momentum(int64_t set) const {
  if (guard_.phase() == Phase::building || sets_[static_cast<size_t>(set)].algorithm() == nullptr) return false;
  for (int64_t id = 0; id < params_.size(); ++id) {
    const Format &format = layout_.format_of(id);
    const auto is_moment = [](const SlotFormat &slot) { return slot.number == ZERO_SLOT_FIRST_MOMENT; };
    const bool keeps = std::any_of(format.states.begin(), format.states.end(), is_moment);
    if (params_[id].options.set == set && !params_[id].tied() && format.trains && !keeps) return true;
  }
  return false;
}

Status Optimizer::set_f64(int64_t set, int32_t key, double value) {
  ZERO_TRY(check_set(set));
  ZERO_TRY(guard_.check_call("zero_optimizer_set_f64", Phase::building, Phase::running));
  if (key == ZERO_KEY_LOSS_SCALE) {
    ZERO_TRY(run_.learn());
    kernels::LossScaleState scale = run_.known().loss_scale;
    ZERO_TRY(loss_scale_.set(value, scale));
    run_.edit().loss_scale = scale;
    if (!gradients_.started()) plan_next_step();
    return {};
  }
  if (is_outer_key(key)) return replicas_.set(key, value);
  double now = 0;
  ZERO_TRY(sets_[static_cast<size_t>(set)].get(key, &now));
  ZERO_CHECK(key != ZERO_KEY_MOMENTUM || value == 0 || !lacks_momentum(set), ZERO_E_STATE,
             "momentum was 0 when the optimizer was sealed, so it keeps no momentum buffer; set momentum before zero_optimizer_seal");
  return sets_[static_cast<size_t>(set)].set(key, value);
}

/// While a task is under way the host knows what it knew before.
Status Optimizer::known_run() const { return guard_.busy() ? Status() : run_.learn(); }

Status Optimizer::get_f64(int64_t set, int32_t key, double *out) const {
  ZERO_TRY(check_set(set));
  if (key == ZERO_KEY_LOSS_SCALE) {
    ZERO_TRY(known_run());
    *out = run_.known().loss_scale.value;
    return {};
  }
  if (is_outer_key(key)) return replicas_.get(key, out);
  return sets_[static_cast<size_t>(set)].get(key, out);
}

Status Optimizer::set_i64(int32_t key, int64_t value) {
  int64_t now = 0;
  ZERO_TRY(get_i64(key, &now));
  ZERO_TRY(check_i64(key, value));
  ZERO_TRY(guard_.check_call("zero_optimizer_set_i64", Phase::building, Phase::running));
  *count_of(run_.edit(), key) = value;
  if (key == ZERO_KEY_STEP_COUNT) update_counts_.set_all(value);
  replica_run_.applied_ahead.assign(replica_run_.applied_ahead.size(), 0);
  if (!gradients_.started()) plan_next_step();
  // A device is told in the order of a stream.
  return settings_.on_device ? Status() : tell_update_counts();
}

Status Optimizer::get_i64(int32_t key, int64_t *out) const {
  kernels::RunState run;
  const KeyInfo *info = find_key(key);
  ZERO_CHECK(count_of(run, key) != nullptr, ZERO_E_UNSUPPORTED,
             "%s %d is no scalar of an optimizer; those are what zero/config.h names from 500 to 599", info != nullptr ? info->name : "key",
             key);
  ZERO_TRY(known_run());
  run = run_.known();
  *out = *count_of(run, key);
  return {};
}

}  // namespace zero
