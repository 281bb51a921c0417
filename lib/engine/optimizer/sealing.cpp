/// @file Seal: from registered tensors to a plan, memory and groups that all ranks agree on.
#include "engine/optimizer/sealing.h"

#include "core/clock.h"
#include "core/descriptor_room.h"
#include "core/hash.h"
#include "engine/optimizer/config_digest.h"
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

Task Sealing::seal() {
  ZERO_CO_TRY(parts_.guard.check_phase("zero_optimizer_seal", CallGuard::Phase::building, CallGuard::Phase::building));
  const CallerScope in_group(*parts_.group, Caller::seal);
  Group *model = parts_.groups.model_parent().get();
  std::optional<CallerScope> in_model;
  if (model != nullptr) in_model.emplace(*model, Caller::seal);
  Status agreed = co_await agree_on_plan();
  const bool planned = agreed.ok();
  int64_t replicas = 0;
  if (planned && model != nullptr) agreed = co_await name_replicas(&replicas);
  if (model != nullptr) agreed = co_await agree_on_model(std::move(agreed), replicas);
  // Ranks of the other group wait for this one, which comes no further; of a plan that failed they
  // were told.
  bool others_wait = planned && !agreed.ok() && !model->usable().ok();
  if (agreed.ok()) {
    agreed = co_await make_groups();
    others_wait = !agreed.ok() && model != nullptr;
  }
  if (agreed.ok()) agreed = co_await agree_on(*parts_.group, allocate(), "zero_optimizer_seal");
  if (agreed.ok()) agreed = co_await agree_on(*parts_.group, co_await reach(), "zero_optimizer_seal");
  if (!agreed.ok()) {
    if (others_wait) {
      parts_.group->fail(agreed);
      model->fail(agreed);
    }
    unseal();
    co_return agreed;
  }
  parts_.guard.enter(CallGuard::Phase::sealed);
  co_return Status();
}

Task Sealing::make_groups() {
  const Reducer &whole = *parts_.group->reducer();
  ZERO_CO_AWAIT(parts_.groups.open(parts_.memory->reducer(whole), parts_.memory->host_reducer(whole),
                                   parts_.state.layout.most_round_nbytes(), parts_.ranks(), parts_.settings.gathers.param_ranks,
                                   parts_.settings.replicas.delay > 0 && parts_.settings.overlap));
  if (parts_.groups.model() != nullptr) parts_.gradients.reductions().go_on_beside(*parts_.groups.model());
  parts_.gradients.reductions().go_on_beside(*parts_.groups.gather());
  if (parts_.groups.copies() == nullptr) co_return Status();
  parts_.gradients.reductions().go_on_beside(*parts_.groups.holders());
  parts_.gradients.reductions().go_on_beside(*parts_.groups.copies());
  co_return Status();
}

Status Sealing::write_config_digest(std::string *out) const {
  try {
    const std::string keys = parts_.settings.text() + parts_.loss_scale.text(parts_.run.known().loss_scale);
    *out =
        keys + config_digest(parts_.registry.sets, parts_.registry.params, parts_.gathers.order()) + parts_.registry.module_buffers.text();
    *out += parts_.groups.model_parent() != nullptr ? "a model group\n" : "no model group\n";
    return {};
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for what ranks compare when they seal");
  }
}

/// A rank without memory reports that before any other would wait for it.
Task Sealing::agree_on_plan() {
  std::string text;
  ZERO_CO_AWAIT(agree_on(*parts_.group, write_config_digest(&text), "zero_optimizer_seal"));
  ZERO_CO_AWAIT(compare_texts(*parts_.group, kSealedDiffers, text));
  ZERO_CO_TRY(parts_.state.layout.check_matrices());
  ZERO_CO_TRY(parts_.state.layout.check_code_freeze());
  Status planned = parts_.registry.params.check_order();
  if (planned.ok()) planned = check_room_to_meet();
  if (planned.ok()) planned = parts_.state.layout.make(parts_.rank());
  if (planned.ok()) planned = parts_.replicas.lay_out();
  if (planned.ok()) planned = parts_.gathers.strategy().check_formats();
  // Device memory is not counted here: its allocations report a lack of memory.
  const bool counts = planned.ok() && !parts_.settings.on_device;
  MemoryNeed need = counts ? memory_need(parts_.state.plan, parts_.state.layout.formats(), needs()) : MemoryNeed{};
  for (int64_t &nbytes : need) nbytes += parts_.registry.module_buffers.formula_nbytes();
  co_return co_await check_memory(*parts_.group, std::move(planned), need, parts_.settings.stage, parts_.settings.memory.limit,
                                  memory_offer());
}

/// Before anything is made: groups meet, and memory is shared, one after another; what is shared
/// keeps a descriptor each.
Status Sealing::check_room_to_meet() const {
  constexpr int64_t kMostShared = 5;  // gradients, parameters in three groups, states
  const int64_t to_meet = parts_.group->size() == 1 ? 0 : parts_.group->transport().capabilities().descriptors_to_meet;
  if (to_meet == 0) return {};
  const std::string what = "rank " + std::to_string(parts_.group->rank()) + " has too few file descriptors to seal an optimizer of " +
                           std::to_string(parts_.group->size()) + " ranks, not all of which are threads of its process";
  return check_descriptors(to_meet + kMostShared, what.c_str());
}

NeedOptions Sealing::needs() const {
  const int64_t of_all_stages =
      parts_.replicas.workspace_nbytes() + parts_.gradients.reductions().workspace_nbytes(parts_.state.layout.formats()) +
      parts_.gathers.strategy().workspace_nbytes() + parts_.gradients.schedule().waiting_nbytes(parts_.state.layout.formats());
  return {.alone = parts_.alone(),
          .adopts = parts_.one_copy() && parts_.rank() > 0,
          .pool_limit = parts_.settings.buckets.pool_limit,
          .ahead_nbytes = parts_.settings.overlaps_in(*parts_.group) ? parts_.state.layout.prefetch_nbytes() : 0,
          .workspace_nbytes = parts_.updates.workspace_nbytes(parts_.state.layout.formats(), parts_.alone()) + of_all_stages,
          .whole_workspace_nbytes = parts_.updates.workspace_nbytes(parts_.state.layout.formats(), true) + of_all_stages};
}

/// A number that the ranks of this optimizer's group have, and those of no other: one that rank 0
/// draws.
Task Sealing::name_replicas(int64_t *out) {
  std::vector<int64_t> all(static_cast<size_t>(parts_.group->size()));
  ZERO_CO_AWAIT(all_gather_word(*parts_.group, SealRound::replicas, drawn_number(&parts_), all));
  *out = all[0];
  co_return Status();
}

/// `mine`: the agreement of this rank's own group, which has the number `replicas`. The settings by
/// which the whole model clips and skips are the same everywhere, and no part of the model exists
/// twice.
Task Sealing::agree_on_model(Status mine, int64_t replicas) {
  Group &model = *parts_.groups.model_parent();
  ZERO_CO_AWAIT(agree_on(model, std::move(mine), "zero_optimizer_seal"));
  const std::string text = parts_.settings.model_text() + parts_.loss_scale.text(parts_.run.known().loss_scale);
  ZERO_CO_AWAIT(compare_texts(model, kSealedDiffers, text));
  std::vector<int64_t> names(static_cast<size_t>(model.size()));
  ZERO_CO_AWAIT(all_gather_word(model, SealRound::model, replicas, names));
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

Status Sealing::allocate() {
  try {
    parts_.trace.open(parts_.settings.monitoring.trace_events);
    for (const Group *group : parts_.groups.all()) {
      if (group != nullptr) parts_.memory->accounting.add(ZERO_MEMORY_STAGING, group->staging_nbytes());
    }
    ZERO_TRY(open_memory());
    ZERO_TRY(parts_.state.slots.allocate(parts_.state.plan, parts_.state.layout.formats(), parts_.sharding(), parts_.memory_source()));
    parts_.state.given_rows.open(parts_.state.plan, parts_.settings.leaves_unfilled);
    ZERO_TRY(
        parts_.gradients.open(parts_.groups.reduce(), parts_.groups.across(), parts_.alone(), parts_.memory_source(), counted_buckets()));
    ZERO_TRY(parts_.replicas.open(parts_.groups, parts_.memory_source()));
    ZERO_TRY(parts_.state.quantized_params.open(parts_.memory_source()));
    ZERO_TRY(parts_.registry.module_buffers.allocate(parts_.host_source()));
    ZERO_TRY(parts_.gathers.open(parts_.groups, parts_.memory_source(), parts_.one_copy()));
    parts_.first_values.open(parts_.memory_source(), parts_.one_copy());
    access_.open(parts_.state.plan.params().size());
    parts_.replica_run.applied_ahead.assign(static_cast<size_t>(parts_.settings.replicas.count), 0);
    parts_.state.list_views(parts_.registry.params, parts_.updates_all());
    vote_.open(parts_.settings.leaves_unfilled ? parts_.registry.params.size() : 0);
    parts_.state.update_counts.open(parts_.state.slots.update_counts(), parts_.registry.params.size(), parts_.run.known().applied_count);
    if (!parts_.settings.on_device) parts_.state.update_counts.tell();
    return {};
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for the tables of all parameters (%lld)", lld(parts_.registry.params.size()));
  }
}

/// Sources of a reduction that come through the host fill a round at most, each on lines of its
/// own.
Status Sealing::open_memory() {
  if (parts_.memory->device != nullptr) {
    ZERO_TRY(parts_.memory->device->allocate());
    parts_.memory->accounting.add(ZERO_MEMORY_STAGING, Device::staging_nbytes());
  }
  const int64_t round_nbytes = parts_.alone() ? 0 : parts_.groups.reduce()->transport().capabilities().round_nbytes;
  return parts_.memory->open(parts_.memory_source(), Arena::view_nbytes(round_nbytes) + parts_.group->size() * kViewAlignment);
}

/// Tensors that all ranks of the model group hold count once: on its rank 0.
std::vector<bool> Sealing::counted_buckets() const {
  std::vector<bool> counted;
  const bool first = parts_.groups.model() == nullptr || parts_.groups.model()->rank() == 0;
  for (const PlannedBucket &bucket : parts_.state.plan.buckets())
    counted.push_back(first || !parts_.state.layout.format_in(bucket).replicated);
  return counted;
}

/// A rank that cannot share memory leaves no peer waiting: all ranks reach the agreement that
/// follows.
Task Sealing::reach() {
  Status shared = co_await share_memory();
  if (!shared.ok()) {
    for (Group *group : parts_.groups.sharing()) {
      if (group != nullptr) group->fail(shared);
    }
    // A rank that did not come there in time would be awaited once more by those that agree on it.
    if (shared.code() == ZERO_E_TIMEOUT) parts_.group->fail(shared);
    co_return shared;
  }
  co_return prepare();
}

/// Shares the memory that other ranks read or write: contributions, which move in the group of
/// reductions, and parameters and states.
Task Sealing::share_memory() {
  if (parts_.alone()) co_return Status();
  bool reaches = true;
  if (parts_.settings.on_device) ZERO_CO_AWAIT(reach_devices(&reaches));
  std::shared_ptr<Mapping> contributions;
  std::shared_ptr<Mapping> params;
  if (reaches) contributions = parts_.settings.stage < 2 ? parts_.state.slots.grad_mapping() : parts_.gradients.schedule().pool().mapping();
  if (reaches) params = parts_.state.slots.param_mapping();
  ZERO_CO_AWAIT(parts_.peers.grads.open(*parts_.groups.reduce(), contributions));
  ZERO_CO_AWAIT(parts_.peers.params.open(*parts_.groups.gather(), params));
  if (parts_.groups.copies() != nullptr) {
    ZERO_CO_AWAIT(parts_.peers.block_params.open(*parts_.groups.holders(), params));
    ZERO_CO_AWAIT(parts_.peers.copied_params.open(*parts_.groups.copies(), params));
  }
  if (parts_.shares_states()) ZERO_CO_AWAIT(parts_.peers.states.open(*parts_.groups.gather(), parts_.state.slots.state_mapping()));
  co_return Status();
}

/// Finds whether all ranks are threads of this process whose devices reach each other's memory; the
/// result is the same on all ranks.
Task Sealing::reach_devices(bool *out) {
  std::vector<int64_t> devices(static_cast<size_t>(parts_.group->size()));
  std::vector<int64_t> reached(devices.size());
  ZERO_CO_AWAIT(all_gather_word(*parts_.groups.gather(), SealRound::devices, parts_.memory->device->index(), devices));
  const bool here =
      parts_.group->transport().capabilities().within_process &&
      std::all_of(devices.begin(), devices.end(), [this](int64_t device) { return parts_.memory->device->reach(device).ok(); });
  ZERO_CO_AWAIT(all_gather_word(*parts_.groups.gather(), SealRound::devices, here ? 1 : 0, reached));
  *out = std::all_of(reached.begin(), reached.end(), [](int64_t other) { return other == 1; });
  co_return Status();
}

/// Prepares everything that refers to addresses, once they are known.
Status Sealing::prepare() {
  try {
    if (parts_.one_copy()) {
      ZERO_CHECK(parts_.peers.params.reach_all(), ZERO_E_UNSUPPORTED,
                 "ZERO_KEY_ONE_COPY is 1, but rank %lld cannot reach the memory of all ranks over transport %s; ranks must run on one host",
                 lld(parts_.group->rank()), parts_.group->transport().capabilities().name.c_str());
      if (parts_.rank() > 0) parts_.state.slots.adopt_params(parts_.peers.params.base(0));
    }
    ZERO_TRY(parts_.updates.build(parts_.state.layout.formats(), parts_.updates_all(), parts_.memory_source()));
    ZERO_TRY(parts_.updates.begin_states(parts_.memory_source()));
    ZERO_TRY(parts_.verifier.open(parts_.groups, parts_.settings.monitoring.verify_every, parts_.one_copy()));
    plan_paths();
    return parts_.updates.prepare();
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for the updates of all parameters (%lld)",
                         lld(parts_.registry.params.size()));
  }
}

/// Stages 0 to 2 lay parameters out alike on all ranks, stages 0 and 1 gradients too, stage 0
/// states. Facts that reductions find, and work that they overlap with the caller's, need
/// reductions; so do weights, which reductions exchange, and delays, which reduce behind the
/// caller's work. Writes into the memory of others are of
/// whole pieces, so that no row could stay untouched.
PathFacts Sealing::path_facts() const {
  PathFacts facts{};
  facts.alone = parts_.alone();
  facts.device_decides = parts_.settings.on_device && parts_.alone() && parts_.groups.model() == nullptr;
  facts.updates_all = parts_.updates_all();
  facts.one_copy = parts_.one_copy();
  facts.trails = parts_.gathers.may_trail();
  if (parts_.alone()) return facts;
  const bool all_reached = parts_.peers.params.reach_all() && (parts_.settings.stage > 0 || parts_.peers.states.reach_all());
  const bool some_rows = parts_.settings.leaves_unfilled && parts_.state.plan.any_rows();
  facts.writes = parts_.settings.stage <= 2 && parts_.settings.algorithm != nullptr && all_reached && !some_rows &&
                 !parts_.gathers.strategy().changes_own();
  const bool few = parts_.ranks() <= static_cast<int64_t>(kernels::kMostSources);
  facts.fuses = facts.writes && !parts_.settings.delays_grads && parts_.settings.stage <= 1 && parts_.peers.grads.reach_all() && few &&
                !parts_.settings.overlap && !parts_.settings.grad_norm && !parts_.settings.weighted() &&
                !parts_.settings.replicas.sum_gradients() && !parts_.state.plan.any_rows();
  return facts;
}

void Sealing::plan_paths() {
  const PathFacts facts = path_facts();
  parts_.paths.list(facts);
  parts_.gradients.fuse_reduction(facts.fuses);
  if (!facts.writes) return;
  parts_.gradients.reductions().keep_sharded_sums();
  const auto given = [](const PeerViews &views, bool wanted) { return wanted ? &views : nullptr; };
  const ShardUpdater::Reached reached{given(parts_.peers.params, !parts_.one_copy()),
                                      given(parts_.peers.states, parts_.settings.stage == 0), given(parts_.peers.grads, facts.fuses)};
  parts_.updates.reach(parts_.state.layout.formats(), reached, parts_.ranks(), parts_.rank());
}

/// Gives everything back that seal made. Delayed reductions end by themselves; other ranks wait for
/// this one in theirs.
void Sealing::unseal() {
  parts_.gradients.settle_before_close();
  parts_.gathers.close();
  parts_.replicas.close();
  // Work may still use what is given back, other ranks' included: this rank's last comes after it.
  (void)parts_.memory->wait();
  parts_.peers.grads.close();
  parts_.peers.params.close();
  parts_.peers.block_params.close();
  parts_.peers.copied_params.close();
  parts_.peers.states.close();
  parts_.gradients.close();
  parts_.memory->close();
  if (parts_.groups.gather() != nullptr) {
    parts_.memory->accounting.add(ZERO_MEMORY_STAGING, -parts_.memory->accounting.now(ZERO_MEMORY_STAGING));
  }
  for (Group *group : parts_.groups.sharing()) {
    for (const auto &mapping :
         {parts_.state.slots.param_mapping(), parts_.state.slots.grad_mapping(), parts_.state.slots.state_mapping()}) {
      if (group != nullptr && mapping != nullptr) group->transport().unshare(*mapping);
    }
  }
  parts_.state.update_counts.close();
  parts_.state.given_rows.close();
  parts_.state.slots.release();
  parts_.gathers.release();
  parts_.state.quantized_params.release();
  parts_.registry.module_buffers.release();
  if (parts_.memory->device != nullptr) parts_.memory->device->release();
  parts_.verifier.close();
  parts_.first_values.release();
  access_.close();
  parts_.state.views.clear();
  parts_.updates.clear();
  parts_.state.layout.clear();
  parts_.groups.close();
}

}  // namespace zero
