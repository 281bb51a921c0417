/// @file Optimizer: its creation, and registration until it is sealed.
#include "engine/optimizer/optimizer.h"

#include "engine/compute/device_domain.h"
#include "engine/compute/host_domain.h"
#include "engine/config/strategy.h"

#include <vector>

namespace zero {

Status Optimizer::create(std::shared_ptr<Group> group, const Config &given, std::shared_ptr<Optimizer> *out, const MakeDomain &make) {
  Config config = given;
  std::string strategy;
  ZERO_TRY(expand_strategy(config, &strategy));
  ZERO_TRY(Registry::check_keys_of_all(config));
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
  ZERO_CHECK(!settings.on_device || group->transport().capabilities().copies_offers, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_TIER is ZERO_TIER_DEVICE, but transport %s sends memory of the host only; set ZERO_KEY_NCCL for the group, or "
             "make it with zero_group_create_local",
             group->transport().capabilities().name.c_str());
  const int64_t threads = host_threads(config, place);
  std::unique_ptr<MemoryDomain> memory;
  if (settings.on_device) {
    memory = std::make_unique<DeviceDomain>(threads, std::move(device));
  } else {
    memory = make ? make(threads, std::move(device)) : std::make_unique<HostDomain>(threads, std::move(device));
  }
  out->reset(new Optimizer({std::move(group), std::move(settings), hyper, loss_scale, std::move(memory)}));
  return {};
}

Status Optimizer::add_param(const Config *config, const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int64_t *out_id) {
  ZERO_TRY(check_building("zero_optimizer_add_param"));
  return parts_.registry.add_param(config, name, dtype, shape, ndim, out_id);
}

Status Optimizer::add_set(const Config &config, int64_t *out_set) {
  ZERO_TRY(check_building("zero_optimizer_add_set"));
  return parts_.registry.add_set(config, out_set);
}

Status Optimizer::set_order(const int64_t *ids, int64_t count) {
  ZERO_TRY(check_building("zero_optimizer_set_order"));
  return parts_.registry.set_order(ids, count);
}

Status Optimizer::add_module_buffer(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int32_t rule, int64_t *out_id) {
  ZERO_TRY(check_building("zero_optimizer_add_module_buffer"));
  return parts_.registry.add_module_buffer(name, dtype, shape, ndim, rule, out_id);
}

Status Optimizer::set_gather_order(const int64_t *ids, int64_t count) {
  ZERO_TRY(check_building("zero_optimizer_set_gather_order"));
  std::vector<int64_t> order;
  ZERO_TRY(parts_.registry.read_gather_order(ids, count, &order));
  parts_.gathers.set_order(std::move(order));
  return {};
}

Status Optimizer::set_model_group(std::shared_ptr<Group> group) {
  ZERO_TRY(check_building("zero_optimizer_set_model_group"));
  ZERO_CHECK(!parts_.settings.replicas.any(), ZERO_E_UNSUPPORTED,
             "ZERO_KEY_REPLICA_RANKS makes %lld replicas, but an optimizer with a model group has one",
             lld(parts_.settings.replicas.count));
  ZERO_CHECK(group != parts_.group || parts_.alone(), ZERO_E_INVALID_ARGUMENT,
             "the model group is the group of the optimizer itself, whose ranks hold the same part of the model; give the group over which "
             "the model is cut");
  parts_.groups.set_model_parent(std::move(group));
  return {};
}

}  // namespace zero
