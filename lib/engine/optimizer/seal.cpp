/// @file Seal: from registered tensors to a plan, memory and groups that all ranks agree on.
#include "engine/optimizer/optimizer.h"

#include "core/clock.h"
#include "core/descriptor_room.h"
#include "core/hash.h"
#include "engine/compute/device_reducer.h"
#include "engine/optimizer/sealed_text.h"
#include "group/collectives/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <optional>

namespace zero {
namespace {

constexpr const char *kSealedDiffers = "ranks were sealed with different parameters or configurations";

/// That no other object draws, here or in another process.
int64_t drawn_number(const void *object) {
  Hash hash;
  hash.add(now_ns());
  hash.add(::getpid());
  hash.add(object);
  return static_cast<int64_t>(hash.value());
}

}  // namespace

Task Optimizer::seal() { return guard_.run(seal_body(), Caller::seal); }

Task Optimizer::seal_body() {
  ZERO_CO_TRY(guard_.check_phase("zero_optimizer_seal", Phase::building, Phase::building));
  const CallerScope in_group(*group_, Caller::seal);
  Group *model = groups_.model_parent().get();
  std::optional<CallerScope> in_model;
  if (model != nullptr) in_model.emplace(*model, Caller::seal);
  Status agreed = co_await agree_on_plan();
  const bool planned = agreed.ok();
  int64_t replicas = 0;
  if (planned && model != nullptr) agreed = co_await name_replicas(&replicas);
  if (model != nullptr) agreed = co_await agree_on_model(std::move(agreed), replicas);
  // Ranks of the other group wait for this one, which comes no further; of a plan that failed they were told.
  bool others_wait = planned && !agreed.ok() && !model->usable().ok();
  if (agreed.ok()) {
    agreed = co_await make_groups();
    others_wait = !agreed.ok() && model != nullptr;
  }
  if (agreed.ok()) agreed = co_await agree_on(*group_, allocate(), "zero_optimizer_seal");
  if (agreed.ok()) agreed = co_await agree_on(*group_, co_await reach(), "zero_optimizer_seal");
  if (!agreed.ok()) {
    if (others_wait) {
      group_->fail(agreed);
      model->fail(agreed);
    }
    unseal();
    co_return agreed;
  }
  guard_.enter(Phase::sealed);
  co_return Status();
}

Task Optimizer::make_groups() {
  // Where the group reaches a device, what stays on the host needs no communicators of its own.
  std::shared_ptr<const Reducer> on_host;
  if (group_->reducer()->on_device()) on_host = std::make_shared<HostReducer>(host_kernels_.threads());
  std::shared_ptr<const Reducer> reducer = on_host;
  if (settings_.on_device) reducer = std::make_shared<DeviceReducer>(*device_kernels_, host_kernels_.threads());
  ZERO_CO_AWAIT(groups_.open(reducer, on_host, layout_.most_round_nbytes(), ranks()));
  if (groups_.model() != nullptr) gradients_.go_on_beside(*groups_.model());
  gradients_.go_on_beside(*groups_.gather());
  co_return Status();
}

Status Optimizer::write_sealed_text(std::string *out) const {
  try {
    const std::string keys = settings_.text() + loss_scale_.text(run_.known().loss_scale);
    *out = keys + sealed_text(sets_, params_, gathers_.order()) + module_buffers_.text();
    *out += groups_.model_parent() != nullptr ? "a model group\n" : "no model group\n";
    return {};
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for what ranks compare when they seal");
  }
}

/// A rank without memory says so before any other waits for it in vain.
Task Optimizer::agree_on_plan() {
  std::string text;
  ZERO_CO_AWAIT(agree_on(*group_, write_sealed_text(&text), "zero_optimizer_seal"));
  ZERO_CO_AWAIT(compare_texts(*group_, kSealedDiffers, text));
  ZERO_CO_TRY(layout_.check_matrices());
  Status planned = params_.check_order();
  if (planned.ok()) planned = check_room_to_meet();
  if (planned.ok()) planned = layout_.make(rank());
  if (planned.ok()) planned = replicas_.check_formats();
  if (planned.ok()) planned = gathers_.differences().check_formats();
  // What lies on a device is for its allocations to find out.
  const bool counts = planned.ok() && !settings_.on_device;
  MemoryNeed need = counts ? memory_need(plan_, layout_.formats(), needs()) : MemoryNeed{};
  for (int64_t &nbytes : need) nbytes += module_buffers_.formula_nbytes();
  co_return co_await check_memory(*group_, std::move(planned), need, settings_.stage, settings_.memory_limit, memory_offer());
}

/// Before anything is made: groups meet, and memory is shared, one after another; what is shared keeps a descriptor each.
Status Optimizer::check_room_to_meet() const {
  constexpr int64_t kMostShared = 3;  // gradients, parameters, states
  const int64_t to_meet = group_->size() == 1 ? 0 : group_->transport().descriptors_to_meet();
  if (to_meet == 0) return {};
  const std::string what = "rank " + std::to_string(group_->rank()) + " has too few file descriptors to seal an optimizer of " +
                           std::to_string(group_->size()) + " ranks, not all of which are threads of its process";
  return check_descriptors(to_meet + kMostShared, what.c_str());
}

NeedOptions Optimizer::needs() const {
  const int64_t of_replicas =
      replicas_.workspace_nbytes() + gradients_.workspace_nbytes(layout_.formats()) + gathers_.differences().workspace_nbytes();
  return {.alone = alone(),
          .adopts = one_copy() && rank() > 0,
          .pool_limit = settings_.pool_limit,
          .ahead_nbytes = settings_.overlaps_in(*group_) ? layout_.prefetch_nbytes() : 0,
          .workspace_nbytes = updates_.workspace_nbytes(layout_.formats(), alone()) + of_replicas,
          .whole_workspace_nbytes = updates_.workspace_nbytes(layout_.formats(), true) + of_replicas};
}

/// A number that the ranks of this optimizer's group have, and those of no other: one that rank 0 draws.
Task Optimizer::name_replicas(int64_t *out) {
  std::vector<int64_t> all(static_cast<size_t>(group_->size()));
  ZERO_CO_AWAIT(tell_word(*group_, SealRound::replicas, drawn_number(this), all));
  *out = all[0];
  co_return Status();
}

/// `mine`: whether this rank's own group agreed, which has the number `replicas`. What the whole model clips and skips by is the same
/// everywhere, and no part of it is there twice.
Task Optimizer::agree_on_model(Status mine, int64_t replicas) {
  Group &model = *groups_.model_parent();
  ZERO_CO_AWAIT(agree_on(model, std::move(mine), "zero_optimizer_seal"));
  const std::string text = settings_.model_text() + loss_scale_.text(run_.known().loss_scale);
  ZERO_CO_AWAIT(compare_texts(model, kSealedDiffers, text));
  std::vector<int64_t> names(static_cast<size_t>(model.size()));
  ZERO_CO_AWAIT(tell_word(model, SealRound::model, replicas, names));
  for (auto name = names.begin(); name != names.end(); ++name) {
    const auto first = std::find(names.begin(), name, *name);
    if (first == name) continue;
    Status twice =
        Status::error(ZERO_E_INVALID_ARGUMENT,
                      "ranks %lld and %lld of the model group belong to one group of an optimizer, so that both hold the same part "
                      "of the model; a model group has one rank of each such group",
                      lld(first - names.begin()), lld(name - names.begin()));
    model.fail(twice);
    co_return twice;
  }
  co_return Status();
}

Status Optimizer::allocate() {
  try {
    trace_.open(settings_.trace_events);
    for (const Group *group : groups_.all()) {
      if (group != nullptr) accounting_.add(ZERO_MEMORY_STAGING, group->staging_nbytes());
    }
    if (device_ != nullptr) ZERO_TRY(allocate_on_device());
    ZERO_TRY(slots_.allocate(plan_, layout_.formats(), sharding(), memory_source()));
    ZERO_TRY(gradients_.open(groups_.reduce(), groups_.across(), alone(), memory_source(), counted_buckets()));
    ZERO_TRY(replicas_.open(groups_.gather(), groups_.across(), memory_source()));
    ZERO_TRY(coded_params_.open(memory_source()));
    ZERO_TRY(module_buffers_.allocate(host_source()));
    ZERO_TRY(gathers_.open(groups_.gather(), memory_source(), one_copy()));
    first_values_.open(memory_source(), one_copy());
    access_.resize(plan_.params().size());
    replica_run_.applied_ahead.assign(static_cast<size_t>(settings_.replicas.count), 0);
    make_views();
    ballot_.open(settings_.leaves_unfilled ? params_.size() : 0);
    update_counts_.open(slots_.update_counts(), params_.size(), run_.known().applied_count);
    if (!settings_.on_device) update_counts_.tell();
    return {};
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for the tables of all parameters (%lld)", lld(params_.size()));
  }
}

/// Sources of a reduction that come through the host fill a round at most, each on lines of its own.
Status Optimizer::allocate_on_device() {
  ZERO_TRY(device_->allocate());
  accounting_.add(ZERO_MEMORY_STAGING, Device::staging_nbytes());
  if (!settings_.on_device) return {};
  const int64_t round_nbytes = alone() ? 0 : groups_.reduce()->transport().round_nbytes();
  return device_kernels_->allocate(memory_source(), Arena::view_nbytes(round_nbytes) + group_->size() * kViewAlignment);
}

/// Tensors that all ranks of the model group hold count once: on its rank 0.
std::vector<bool> Optimizer::counted_buckets() const {
  std::vector<bool> counted;
  const bool first = groups_.model() == nullptr || groups_.model()->rank() == 0;
  for (const PlannedBucket &bucket : plan_.buckets()) counted.push_back(first || !layout_.format_in(bucket).replicated);
  return counted;
}

/// Who cannot share leaves nobody waiting for it: all come to the agreement that follows.
Task Optimizer::reach() {
  Status shared = co_await share_memory();
  if (!shared.ok()) {
    for (const std::shared_ptr<Group> &group : {groups_.reduce(), groups_.gather()}) group->fail(shared);
    // A rank that did not come there in time would be awaited once more by those that agree on it.
    if (shared.code() == ZERO_E_TIMEOUT) group_->fail(shared);
    co_return shared;
  }
  co_return prepare();
}

/// What other ranks read or write: contributions, which move in the group of reductions, and parameters and states.
Task Optimizer::share_memory() {
  if (alone()) co_return Status();
  bool reaches = true;
  if (settings_.on_device) ZERO_CO_AWAIT(reach_devices(&reaches));
  std::shared_ptr<Mapping> contributions;
  std::shared_ptr<Mapping> params;
  if (reaches) contributions = settings_.stage < 2 ? slots_.grad_mapping() : gradients_.pool().mapping();
  if (reaches) params = slots_.param_mapping();
  ZERO_CO_AWAIT(grad_views_.open(*groups_.reduce(), contributions));
  ZERO_CO_AWAIT(param_views_.open(*groups_.gather(), params));
  if (shares_states()) ZERO_CO_AWAIT(state_views_.open(*groups_.gather(), slots_.state_mapping()));
  co_return Status();
}

/// Whether all ranks are threads of this process whose devices reach each other's memory; the same on all of them.
Task Optimizer::reach_devices(bool *out) {
  std::vector<int64_t> devices(static_cast<size_t>(group_->size()));
  std::vector<int64_t> reached(devices.size());
  ZERO_CO_AWAIT(tell_word(*groups_.gather(), SealRound::devices, device_->index(), devices));
  const bool here = group_->transport().within_process() &&
                    std::all_of(devices.begin(), devices.end(), [this](int64_t device) { return device_->reach(device).ok(); });
  ZERO_CO_AWAIT(tell_word(*groups_.gather(), SealRound::devices, here ? 1 : 0, reached));
  *out = std::all_of(reached.begin(), reached.end(), [](int64_t other) { return other == 1; });
  co_return Status();
}

/// What refers to addresses, once they are known.
Status Optimizer::prepare() {
  try {
    if (one_copy()) {
      ZERO_CHECK(param_views_.reach_all(), ZERO_E_UNSUPPORTED,
                 "ZERO_KEY_ONE_COPY is 1, but rank %lld cannot reach the memory of all ranks over transport %s; ranks must run on one host",
                 lld(group_->rank()), group_->transport().name());
      if (rank() > 0) slots_.adopt_params(plan_, param_views_.base(0));
    }
    ZERO_TRY(updates_.build(layout_.formats(), updates_all(), memory_source()));
    ZERO_TRY(updates_.begin_states(memory_source()));
    ZERO_TRY(verifier_.open(groups_.gather(), groups_.across(), settings_.verify_every, one_copy()));
    plan_paths();
    return updates_.prepare();
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for the updates of all parameters (%lld)", lld(params_.size()));
  }
}

/// Stages 0 to 2 lay parameters out alike on all ranks, stages 0 and 1 gradients too, stage 0 states. What reductions find out, or do while
/// the caller works, needs reductions; so do weights, which they exchange.
PathFacts Optimizer::path_facts() const {
  PathFacts facts{};
  facts.alone = alone();
  facts.device_decides = settings_.on_device && alone() && groups_.model() == nullptr;
  facts.updates_all = updates_all();
  facts.one_copy = one_copy();
  facts.trails = gathers_.may_trail();
  if (alone()) return facts;
  const bool all_reached = param_views_.reach_all() && (settings_.stage > 0 || state_views_.reach_all());
  facts.writes = settings_.stage <= 2 && settings_.algorithm != nullptr && all_reached && !gathers_.differences().on();
  const bool few = ranks() <= static_cast<int64_t>(kernels::kMostSources);
  facts.fuses = facts.writes && settings_.stage <= 1 && grad_views_.reach_all() && few && !settings_.overlap && !settings_.grad_norm &&
                settings_.divisor != ZERO_DIVISOR_WEIGHTS && !settings_.replicas.sum_gradients() && !plan_.any_rows();
  return facts;
}

void Optimizer::plan_paths() {
  const PathFacts facts = path_facts();
  paths_.list(facts);
  gradients_.sum_late(facts.fuses);
  if (!facts.writes) return;
  gradients_.leave_cuts();
  const auto given = [](const PeerViews &views, bool wanted) { return wanted ? &views : nullptr; };
  const Updates::Reached reached{given(param_views_, !one_copy()), given(state_views_, settings_.stage == 0),
                                 given(grad_views_, facts.fuses)};
  updates_.reach(layout_.formats(), reached, ranks(), rank());
}

void Optimizer::make_views() {
  const auto trains = [this](int64_t id) { return layout_.format_of(id).trains; };
  if (!updates_all()) {
    for (const PlannedView &view : plan_.views()) {
      if (trains(view.param)) views_.push_back({view.param, view.offset, view.count, nullptr});
    }
    return;
  }
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (params_[id].count > 0 && !params_[id].tied() && trains(id)) views_.push_back({id, 0, params_[id].count, nullptr});
  }
}

/// Gives everything back that seal made.
void Optimizer::unseal() {
  gathers_.close();
  replicas_.close();
  // Work may still use what is given back, other ranks' included: this rank's last comes after it.
  if (settings_.on_device) (void)device_->wait();
  grad_views_.close();
  param_views_.close();
  state_views_.close();
  gradients_.close();
  if (device_kernels_ != nullptr) device_kernels_->release();
  if (groups_.gather() != nullptr) {
    accounting_.add(ZERO_MEMORY_STAGING, -accounting_.now(ZERO_MEMORY_STAGING));
    for (const auto &mapping : {slots_.param_mapping(), slots_.state_mapping()}) {
      if (mapping != nullptr) groups_.gather()->transport().unshare(*mapping);
    }
  }
  if (groups_.reduce() != nullptr && slots_.grad_mapping() != nullptr) groups_.reduce()->transport().unshare(*slots_.grad_mapping());
  update_counts_.close();
  slots_.release();
  gathers_.release();
  coded_params_.release();
  module_buffers_.release();
  if (device_ != nullptr) device_->release();
  verifier_.close();
  first_values_.release();
  access_.clear();
  views_.clear();
  updates_.clear();
  layout_.clear();
  groups_.close();
}

}  // namespace zero
