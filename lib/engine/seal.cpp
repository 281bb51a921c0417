/// @file Seal: from registered tensors to a plan, memory and groups that all ranks agree on.
#include "engine/optimizer.h"

#include "core/clock.h"
#include "core/hash.h"
#include "engine/agreement.h"
#include "engine/device_reducer.h"
#include "engine/sealed_text.h"

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

Task Optimizer::seal() { return run(seal_body(), Caller::seal); }

Task Optimizer::seal_body() {
  ZERO_CO_TRY(check_phase("zero_optimizer_seal", Phase::building, Phase::building));
  const CallerScope in_group(*group_, Caller::seal);
  std::optional<CallerScope> in_model;
  if (model_parent_ != nullptr) in_model.emplace(*model_parent_, Caller::seal);
  Status agreed = co_await agree_on_plan();
  const bool planned = agreed.ok();
  int64_t replicas = 0;
  if (planned && model_parent_ != nullptr) agreed = co_await name_replicas(&replicas);
  if (model_parent_ != nullptr) agreed = co_await agree_on_model(std::move(agreed), replicas);
  // Ranks of the other group wait for this one, which comes no further; of a plan that failed they were told.
  bool others_wait = planned && !agreed.ok() && !model_parent_->usable().ok();
  if (agreed.ok()) {
    agreed = co_await make_groups();
    others_wait = !agreed.ok() && model_parent_ != nullptr;
  }
  if (agreed.ok()) agreed = co_await agree_on(*group_, allocate(), "zero_optimizer_seal");
  if (agreed.ok()) agreed = co_await agree_on(*group_, co_await reach(), "zero_optimizer_seal");
  if (!agreed.ok()) {
    if (others_wait) {
      group_->fail(agreed);
      model_parent_->fail(agreed);
    }
    unseal();
    co_return agreed;
  }
  phase_ = Phase::sealed;
  sealed_.store(true, std::memory_order_release);
  co_return Status();
}

Task Optimizer::make_groups() {
  // Where the group reaches a device, what stays on the host needs no communicators of its own.
  std::shared_ptr<const Reducer> on_host;
  if (group_->reducer()->on_device()) on_host = std::make_shared<HostReducer>(host_kernels_.threads());
  std::shared_ptr<const Reducer> reducer = on_host;
  if (settings_.on_device) reducer = std::make_shared<DeviceReducer>(*device_kernels_, host_kernels_.threads());
  ZERO_CO_AWAIT(split(*group_, 0, group_->rank(), &reduce_group_, reducer));
  ZERO_CO_AWAIT(split(*group_, 0, group_->rank(), &gather_group_, reducer));
  reduce_group_->set_caller(Caller::gradients);
  gather_group_->set_caller(Caller::seal);
  if (model_parent_ != nullptr) {
    ZERO_CO_AWAIT(split(*model_parent_, 0, model_parent_->rank(), &model_group_, on_host));
    // Who waits for one replica's ranks learns at once that those of the other group have failed or were told to give up.
    model_group_->heed(gather_group_);
    gather_group_->heed(model_group_);
    reduce_group_->heed(model_group_);
    gradients_.go_on_beside(*model_group_);
  }
  gradients_.go_on_beside(*gather_group_);
  co_return Status();
}

Status Optimizer::write_sealed_text(std::string *out) const {
  try {
    const std::string scale = loss_scale_.text(run_.known().loss_scale);
    *out = sealed_text(settings_, sets_, scale, params_, prefetch_.order()) + module_buffers_.text();
    *out += model_parent_ != nullptr ? "a model group\n" : "no model group\n";
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
  if (planned.ok()) planned = layout_.make(group_->rank());
  // What lies on a device is for its allocations to find out.
  const bool counts = planned.ok() && !settings_.on_device;
  MemoryNeed need = counts ? memory_need(plan_, layout_.formats(), needs()) : MemoryNeed{};
  for (int64_t &nbytes : need) nbytes += module_buffers_.formula_nbytes();
  co_return co_await check_memory(*group_, std::move(planned), need, settings_.stage, settings_.memory_limit, memory_offer());
}

NeedOptions Optimizer::needs() const {
  const bool runs_ahead = settings_.overlap && !alone() && !group_->transport().single_thread();
  return {.alone = alone(),
          .adopts = one_copy() && group_->rank() > 0,
          .ahead_nbytes = runs_ahead ? settings_.prefetch_nbytes : 0,
          .workspace_nbytes = updates_.workspace_nbytes(layout_.formats(), alone()),
          .whole_workspace_nbytes = updates_.workspace_nbytes(layout_.formats(), true)};
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
  ZERO_CO_AWAIT(agree_on(*model_parent_, std::move(mine), "zero_optimizer_seal"));
  const std::string text = settings_.model_text() + "loss scale " + loss_scale_.text(run_.known().loss_scale) + "\n";
  ZERO_CO_AWAIT(compare_texts(*model_parent_, kSealedDiffers, text));
  std::vector<int64_t> names(static_cast<size_t>(model_parent_->size()));
  ZERO_CO_AWAIT(tell_word(*model_parent_, SealRound::model, replicas, names));
  for (auto name = names.begin(); name != names.end(); ++name) {
    const auto first = std::find(names.begin(), name, *name);
    if (first == name) continue;
    Status twice =
        Status::error(ZERO_E_INVALID_ARGUMENT,
                      "ranks %lld and %lld of the model group belong to one group of an optimizer, so that both hold the same part "
                      "of the model; a model group has one rank of each such group",
                      lld(first - names.begin()), lld(name - names.begin()));
    model_parent_->fail(twice);
    co_return twice;
  }
  co_return Status();
}

Status Optimizer::allocate() {
  try {
    trace_.open(settings_.trace_events);
    for (const Group *group : {reduce_group_.get(), gather_group_.get(), model_group_.get()}) {
      if (group != nullptr) accounting_.add(ZERO_MEMORY_STAGING, group->staging_nbytes());
    }
    if (device_ != nullptr) ZERO_TRY(allocate_on_device());
    ZERO_TRY(slots_.allocate(plan_, layout_.formats(), sharding(), memory_source()));
    ZERO_TRY(gradients_.open(reduce_group_, memory_source(), counted_buckets()));
    param_pool_.open(memory_source());
    ZERO_TRY(coded_params_.open(memory_source()));
    ZERO_TRY(module_buffers_.allocate(host_source()));
    open_gathers();
    access_.resize(plan_.params().size());
    first_copies_.resize(plan_.params().size());
    master_written_.resize(plan_.params().size());
    average_written_.resize(plan_.params().size());
    make_views();
    if (settings_.leaves_unfilled) touched_.resize(plan_.params().size());
    votes_.resize(kVoteWords + touched_.size());
    vote_sums_.resize(votes_.size());
    return {};
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for the tables of %lld parameters", lld(params_.size()));
  }
}

/// Sources of a reduction that come through the host fill a round at most, each on lines of its own.
Status Optimizer::allocate_on_device() {
  ZERO_TRY(device_->allocate());
  accounting_.add(ZERO_MEMORY_STAGING, Device::staging_nbytes());
  if (!settings_.on_device) return {};
  const int64_t round_nbytes = alone() ? 0 : reduce_group_->transport().round_nbytes();
  return device_kernels_->allocate(memory_source(), Arena::view_nbytes(round_nbytes) + group_->size() * kViewAlignment);
}

/// Without a thread that advances them, gathers ahead of the caller or behind a step would only come at another time.
void Optimizer::open_gathers() {
  const bool overlaps = settings_.overlap && !alone() && !gather_group_->transport().single_thread();
  const bool trails = (settings_.stage == 1 || settings_.stage == 2) && !one_copy();
  trailing_.open(gather_group_, plan_.bucket_count(), overlaps && trails);
  const bool useful = shards_params() && overlaps;
  std::vector<int64_t> nbytes;
  for (int64_t id = 0; id < params_.size(); ++id) {
    nbytes.push_back(tensors_.sharded(id) ? params_[id].count * dtype_nbytes(params_[id].dtype) : 0);
  }
  prefetch_.open(gather_group_, &param_pool_, useful ? settings_.prefetch_nbytes : 0, std::move(nbytes),
                 [this](int64_t id, std::byte *whole) { return gather_ahead(id, whole); });
}

/// Tensors that all ranks of the model group hold count once: on its rank 0.
std::vector<bool> Optimizer::counted_buckets() const {
  std::vector<bool> counted;
  const bool first = model_group_ == nullptr || model_group_->rank() == 0;
  for (const PlannedBucket &bucket : plan_.buckets()) counted.push_back(first || !layout_.format_in(bucket).replicated);
  return counted;
}

/// Who cannot share leaves nobody waiting for it: all come to the agreement that follows.
Task Optimizer::reach() {
  Status shared = co_await share_memory();
  if (!shared.ok()) {
    for (const std::shared_ptr<Group> &group : {reduce_group_, gather_group_}) group->fail(shared);
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
  ZERO_CO_AWAIT(grad_views_.open(*reduce_group_, contributions));
  ZERO_CO_AWAIT(param_views_.open(*gather_group_, params));
  if (shares_states()) ZERO_CO_AWAIT(state_views_.open(*gather_group_, slots_.state_mapping()));
  if (lines_up()) {
    ZERO_CO_AWAIT(line_up_.open(*group_, *device_, device_kernels_->told_mapping()));
    device_kernels_->meet(line_up_.memory());
    accounting_.add(ZERO_MEMORY_STAGING, line_up_.group()->staging_nbytes());
  }
  co_return Status();
}

/// Where one pass takes a step all the way, threads of one process can leave the waiting to their devices. Checksums are the host's.
bool Optimizer::lines_up() const {
  return settings_.on_device && grad_views_.reach_all() && param_views_.reach_all() && settings_.stage == 1 &&
         settings_.algorithm != nullptr && !settings_.overlap && settings_.divisor != ZERO_DIVISOR_WEIGHTS && model_group_ == nullptr &&
         settings_.verify_every == 0 && group_->size() <= kernels::cuda::kMostSources;
}

/// Whether all ranks are threads of this process whose devices reach each other's memory; the same on all of them.
Task Optimizer::reach_devices(bool *out) {
  std::vector<int64_t> devices(static_cast<size_t>(group_->size()));
  std::vector<int64_t> reached(devices.size());
  ZERO_CO_AWAIT(tell_word(*gather_group_, SealRound::devices, device_->index(), devices));
  const bool here = group_->transport().within_process() &&
                    std::all_of(devices.begin(), devices.end(), [this](int64_t device) { return device_->reach(device).ok(); });
  ZERO_CO_AWAIT(tell_word(*gather_group_, SealRound::devices, here ? 1 : 0, reached));
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
      if (group_->rank() > 0) slots_.adopt_params(plan_, param_views_.base(0));
    }
    ZERO_TRY(updates_.build(layout_.formats(), updates_all(), memory_source()));
    ZERO_TRY(updates_.begin_states(memory_source()));
    ZERO_TRY(verifier_.open(gather_group_, settings_.verify_every, one_copy()));
    plan_ways();
    return updates_.prepare();
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for the updates of %lld parameters", lld(params_.size()));
  }
}

/// Stages 0 to 2 lay parameters out alike on all ranks, stages 0 and 1 gradients too, stage 0 states. What reductions find out, or do while
/// the caller works, needs reductions; so do weights, which they exchange.
void Optimizer::plan_ways() {
  device_judges_ = settings_.on_device && alone() && model_group_ == nullptr;
  if (alone()) return;
  const bool all_reached = param_views_.reach_all() && (settings_.stage > 0 || state_views_.reach_all());
  replicates_ = settings_.stage <= 2 && settings_.algorithm != nullptr && all_reached;
  const bool few = group_->size() <= static_cast<int64_t>(kernels::kMostSources);
  const bool late = replicates_ && settings_.stage <= 1 && grad_views_.reach_all() && few && !settings_.overlap &&
                    (!settings_.grad_norm || line_up_.is_open()) && settings_.divisor != ZERO_DIVISOR_WEIGHTS;
  gradients_.sum_late(late, !settings_.grad_norm);
  if (!replicates_) return;
  gradients_.leave_cuts();
  const auto given = [](const PeerViews &views, bool wanted) { return wanted ? &views : nullptr; };
  const Updates::Reached reached{given(param_views_, !one_copy()), given(state_views_, settings_.stage == 0), given(grad_views_, late)};
  updates_.reach(layout_.formats(), reached, group_->size(), group_->rank());
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
  prefetch_.stop();
  trailing_.stop();
  // Work may still use what is given back, other ranks' included: this rank's last comes after it.
  if (settings_.on_device) (void)device_->wait();
  line_up_.close();
  grad_views_.close();
  param_views_.close();
  state_views_.close();
  gradients_.close();
  if (device_kernels_ != nullptr) device_kernels_->release();
  if (gather_group_ != nullptr) {
    accounting_.add(ZERO_MEMORY_STAGING, -accounting_.now(ZERO_MEMORY_STAGING));
    for (const auto &mapping : {slots_.param_mapping(), slots_.state_mapping()}) {
      if (mapping != nullptr) gather_group_->transport().unshare(*mapping);
    }
  }
  if (reduce_group_ != nullptr && slots_.grad_mapping() != nullptr) reduce_group_->transport().unshare(*slots_.grad_mapping());
  slots_.release();
  param_pool_.release();
  coded_params_.release();
  module_buffers_.release();
  if (device_ != nullptr) device_->release();
  verifier_.close();
  first_copies_.clear();
  access_.clear();
  views_.clear();
  updates_.clear();
  layout_.clear();
  reduce_group_.reset();
  gather_group_.reset();
  model_group_.reset();
}

}  // namespace zero
