/// @file Describing, reading and writing what an optimizer keeps.
#include "engine/optimizer/saved_state.h"

#include "core/number_text.h"
#include "engine/storage/host_copy.h"
#include "kernels/convert.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace zero {
namespace {

using checkpoint::Facts;
using checkpoint::Placement;
using checkpoint::SavedSlot;
using checkpoint::SavedTensor;
using checkpoint::Section;

constexpr std::array<std::pair<int32_t, const char *>, 15> kDiskNames = {{{ZERO_SLOT_PARAM, "param"},
                                                                          {ZERO_SLOT_GRAD, "gradient"},
                                                                          {ZERO_SLOT_MASTER, "master"},
                                                                          {ZERO_SLOT_AVERAGE, "average"},
                                                                          {ZERO_SLOT_PARAM_SCALE, "param_scale"},
                                                                          {ZERO_SLOT_UPDATE_COUNT, "update_count"},
                                                                          {ZERO_SLOT_FIRST_MOMENT, "first_moment"},
                                                                          {ZERO_SLOT_SECOND_MOMENT, "second_moment"},
                                                                          {ZERO_SLOT_OUTER_MOMENT, "outer_moment"},
                                                                          {ZERO_SLOT_FIRST_SCALE, "first_scale"},
                                                                          {ZERO_SLOT_SECOND_SCALE, "second_scale"},
                                                                          {ZERO_SLOT_CUSTOM, "custom0"},
                                                                          {ZERO_SLOT_CUSTOM + 1, "custom1"},
                                                                          {ZERO_SLOT_CUSTOM + 2, "custom2"},
                                                                          {ZERO_SLOT_CUSTOM + 3, "custom3"}}};

bool read_integer(const std::string &text, int64_t *out) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), *out);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

std::string hyper_name(size_t set, int32_t key) { return "set." + std::to_string(set) + "." + std::to_string(key); }

constexpr std::array<std::pair<int32_t, const char *>, 4> kCounts = {{{ZERO_KEY_STEP_COUNT, "step_count"},
                                                                      {ZERO_KEY_SKIPPED_COUNT, "skipped_count"},
                                                                      {ZERO_KEY_GROWTH_COUNT, "growth_count"},
                                                                      {ZERO_KEY_OVERFLOW_COUNT, "overflow_count"}}};
constexpr const char *kSecondMissed = "second_moment_missed";
constexpr const char *kLossScale = "loss_scale";
constexpr const char *kDynamic = "loss_scale_dynamic";
constexpr const char *kOuterLr = "outer_lr";
constexpr const char *kOuterMomentum = "outer_momentum";
constexpr const char *kSyncMix = "sync_mix";

Status check_fact(bool good, const std::string &name, const Facts &facts) {
  const auto found = facts.find(name);
  ZERO_CHECK(good, ZERO_E_CHECKPOINT, "the save says %s = \"%s\", which is no value that it can have", name.c_str(),
             found != facts.end() ? found->second.c_str() : "");
  return {};
}

}  // namespace

std::string hex_float(double value) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::hex).ptr;
  return std::string(text.data(), end);
}

bool read_hex_float(const std::string &text, double *out) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), *out, std::chars_format::hex);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

/// Replicas are saved while they are alike: an anchor is then the parameter.
std::vector<SlotFormat> SavedState::slots_of(int64_t id) const {
  std::vector<SlotFormat> slots = optimizer_->parts_.state.layout.slots_of(id);
  std::erase_if(slots, [](const SlotFormat &slot) { return slot.number == ZERO_SLOT_ANCHOR; });
  return slots;
}

const char *disk_slot_name(int32_t number) {
  for (const auto &[known, name] : kDiskNames) {
    if (known == number) return name;
  }
  return nullptr;
}

int32_t slot_of_disk_name(const std::string &name) {
  for (const auto &[number, known] : kDiskNames) {
    if (name == known) return number;
  }
  return 0;
}

Status SavedState::check_save(const char *call) const {
  Optimizer &optimizer = *optimizer_;
  ZERO_TRY(optimizer.parts_.guard.check_phase(call, CallGuard::Phase::running, CallGuard::Phase::running));
  ZERO_TRY(optimizer.parts_.check_taken_over());
  ZERO_CHECK(!optimizer.parts_.gradients.any_acquired() && !optimizer.parts_.gradients.started(), ZERO_E_STATE,
             "%s was called while a step has gradients already; call it between steps", call);
  ZERO_CHECK(!optimizer.parts_.replicas.differ(), ZERO_E_STATE,
             "replicas have made steps of their own since they were last brought together; zero_optimizer_sync comes before %s", call);
  return optimizer.parts_.gradients.check_between_steps(call);
}

Status SavedState::check_load(const char *call) const {
  Optimizer &optimizer = *optimizer_;
  ZERO_TRY(optimizer.parts_.guard.check_phase(call, CallGuard::Phase::sealed, CallGuard::Phase::running));
  ZERO_CHECK(optimizer.parts_.acquired_count == 0, ZERO_E_STATE, "acquired parameters: %lld; zero_optimizer_param_release comes before %s",
             lld(optimizer.parts_.acquired_count), call);
  ZERO_CHECK(!optimizer.parts_.gradients.any_acquired() && !optimizer.parts_.gradients.started(), ZERO_E_STATE,
             "%s was called while a step has gradients already; call it between steps", call);
  return optimizer.parts_.gradients.check_between_steps(call);
}

Task SavedState::settle() const {
  Optimizer &optimizer = *optimizer_;
  ZERO_CO_AWAIT(optimizer.parts_.await_readers());
  ZERO_CO_AWAIT(optimizer.parts_.gathers.end());
  ZERO_CO_AWAIT(optimizer.parts_.gradients.settle());
  ZERO_CO_TRY(optimizer.parts_.run.learn());
  ZERO_CO_TRY(optimizer.parts_.tell_update_counts());
  ZERO_CO_TRY(optimizer.parts_.memory->wait());
  co_return optimizer.parts_.memory->kernels().status();
}

void SavedState::describe_facts(Facts *out) const {
  const Optimizer &optimizer = *optimizer_;
  const Settings &settings = optimizer.parts_.settings;
  Facts &facts = *out;
  facts[kStage] = std::to_string(settings.stage);
  facts[kAlgorithm] = settings.algorithm_name();
  facts["rounding"] = settings.rounding.stochastic ? "stochastic" : "nearest";
  facts["seed"] = std::to_string(settings.rounding.seed);
  facts["gather_below"] = std::to_string(settings.gathers.below);
  std::string weights;
  for (const int64_t weight : settings.shard_weights) weights += (weights.empty() ? "" : ",") + std::to_string(weight);
  facts["shard_weights"] = weights;
  facts[kSetCount] = std::to_string(optimizer.parts_.registry.sets.size());
  for (size_t set = 0; set < optimizer.parts_.registry.sets.size(); ++set) {
    const kernels::Algorithm *algorithm = optimizer.parts_.registry.sets[set].algorithm();
    facts["set." + std::to_string(set) + ".algorithm"] = algorithm != nullptr ? algorithm->name : settings.algorithm_name();
    for (const auto &[key, value] : optimizer.parts_.registry.sets[set].all()) facts[hyper_name(set, key)] = hex_float(value);
  }
  if (saves_gradients()) {
    facts[kGradientScale] = hex_float(optimizer.parts_.gradients.loss_scale());
    facts[kGradientWeight] = hex_float(optimizer.parts_.gradients.weight_sum());
  }
  if (settings.replicas.part()) {
    facts[kOuterLr] = hex_float(optimizer.parts_.replicas.outer().lr);
    facts[kOuterMomentum] = hex_float(optimizer.parts_.replicas.outer().momentum);
    facts[kSyncMix] = hex_float(optimizer.parts_.replicas.outer().mix);
  }
  describe_counts(0, out);
}

/// Every step that another replica applied and this one did not was skipped here.
kernels::StepState SavedState::run_of(int64_t set) const {
  kernels::StepState run = optimizer_->parts_.run.known();
  if (state_set_count() == 1 || optimizer_->parts_.replica_run.applied_ahead.empty()) return run;
  const int64_t ahead = optimizer_->parts_.replica_run.applied_ahead[static_cast<size_t>(set)];
  run.applied_count += ahead;
  run.skipped_count -= ahead;
  return run;
}

void SavedState::describe_counts(int64_t set, Facts *out) const {
  kernels::StepState run = run_of(set);
  for (const auto &[key, name] : kCounts) (*out)[name] = std::to_string(*count_of(run, key));
  const int64_t missed = optimizer_->parts_.state.moment_freeze.missed();
  if (missed > 0) (*out)[kSecondMissed] = std::to_string(missed);
  (*out)[kLossScale] = hex_float(run.loss_scale.value);
  (*out)[kDynamic] = std::to_string(optimizer_->parts_.loss_scale.rules().dynamic);
}

void SavedState::store_counts(const std::vector<SavedScalars> &sets) const {
  const auto saved = [&sets](size_t set) { return sets[set % sets.size()].run.applied_count; };
  std::vector<int64_t> &ahead = optimizer_->parts_.replica_run.applied_ahead;
  for (size_t set = 0; set < ahead.size(); ++set) ahead[set] = saved(set) - saved(static_cast<size_t>(state_set()));
}

bool SavedState::is_of_set(int32_t slot) { return !is_alike_together(slot) && slot != ZERO_SLOT_OUTER_MOMENT; }

/// Ranks of the first replica write what all have alike.
void SavedState::describe(bool whole_params, Section *out) const {
  out->kind = "optimizer";
  describe_facts(&out->facts);
  describe_tensors(whole_params, false, out);
  describe_cuts(out);
}

void SavedState::describe_set(const std::string &prefix, int64_t set, Section *out) const {
  out->kind = kSetKind;
  out->prefix = set_prefix(prefix, set);
  describe_counts(set, &out->facts);
  describe_tensors(false, true, out);
  describe_cuts(out);
  for (int64_t rank = 0; rank < out->rank_count; ++rank) out->state_files.push_back(set * out->rank_count + rank);
}

void SavedState::describe_tensors(bool whole_params, bool of_set, Section *out) const {
  for (int64_t id = 0; id < params().size(); ++id) {
    const Param &param = params()[id];
    SavedTensor tensor;
    tensor.name = param.given_name;
    tensor.shape = param.shape;
    tensor.facts[kDtype] = dtype_name(param.dtype);
    if (param.tied()) {
      tensor.tied_to = params()[params().holder(id)].given_name;
    } else {
      tensor.facts[kSet] = std::to_string(param.options.set);
      tensor.facts[kFrozen] = param.options.frozen ? "1" : "0";
      std::vector<SlotFormat> slots = slots_of(id);
      if (saves_gradients() && format_of(id).trains) slots.push_back({ZERO_SLOT_GRAD, format_of(id).grad});
      for (const SlotFormat &slot : slots) {
        if (of_set && !is_of_set(slot.number)) continue;
        SavedSlot saved;
        saved.name = disk_slot_name(slot.number);
        saved.type = checkpoint::disk_type_of(slot.dtype);
        if (slot.dtype == DType::f8ue5m3) saved.true_type = dtype_name(slot.dtype);
        saved.per = slot.per;
        saved.placement = whole_params && is_param_slot(slot.number) ? Placement::whole : Placement::pieces;
        tensor.slots.push_back(std::move(saved));
      }
    }
    out->tensors.push_back(std::move(tensor));
  }
}

void SavedState::describe_cuts(Section *out) const {
  out->rank_count = plan().rank_count();
  for (int64_t id = 0; id < params().size(); ++id) {
    int64_t cut = 0;
    out->cuts.push_back(cut);
    for (int64_t rank = 0; rank < plan().rank_count(); ++rank) {
      const Range range = plan().param_cut(id, rank);
      if (!range.empty()) cut = range.end;
      out->cuts.push_back(cut);
    }
  }
}

Status SavedState::find_place(int64_t id, int32_t slot, const Slot **out_slot) const {
  const Optimizer &optimizer = *optimizer_;
  ZERO_CHECK(params()[id].count > 0 && optimizer.parts_.state.tensors.find(slot, id, out_slot), ZERO_E_INTERNAL,
             "%s has no slot %d to save or load", params()[id].name.c_str(), slot);
  return {};
}

std::byte *SavedState::entry(int64_t id, const Slot &slot, int64_t first) const {
  const TensorSlots &tensors = optimizer_->parts_.state.tensors;
  const SlotPlace &place = tensors.place(slot, id);
  return tensors.at(slot, id, place.per_tensor() ? 0 : first * place.per);
}

bool SavedState::holds_whole(int64_t id, int32_t slot) const {
  const Slot *found = nullptr;
  return params()[id].count == 0 ||
         (optimizer_->parts_.state.tensors.find(slot, id, &found) && optimizer_->parts_.state.tensors.place(*found, id).whole);
}

Status SavedState::copy(int64_t id, int32_t slot, int64_t first, std::span<std::byte> out) const {
  if (out.empty()) return {};
  const Slot *found = nullptr;
  ZERO_TRY(find_place(id, slot, &found));
  HostCopy host;
  ZERO_TRY(host.open(optimizer_->parts_.memory_source(), entry(id, *found, first), std::ssize(out)));
  std::memcpy(out.data(), host.data(), out.size());
  return {};
}

Status SavedState::store(int64_t id, int32_t slot, int64_t first, std::span<const std::byte> data) const {
  if (data.empty()) return {};
  const Slot *found = nullptr;
  ZERO_TRY(find_place(id, slot, &found));
  HostCopy host;
  ZERO_TRY(host.open(optimizer_->parts_.memory_source(), entry(id, *found, first), std::ssize(data)));
  std::memcpy(host.data(), data.data(), data.size());
  return host.write_back();
}

/// The host's kernels make what lies on a device too: its bits are theirs.
Status SavedState::store_state(int64_t id, int32_t slot, int64_t first, std::span<const float> values) const {
  const Slot *found = nullptr;
  if (values.empty()) return {};
  ZERO_TRY(find_place(id, slot, &found));
  const kernels::Table &table = kernels::active();
  const DType dtype = optimizer_->parts_.state.tensors.place(*found, id).dtype;
  const int64_t count = std::ssize(values);
  std::vector<std::byte> stored(values.size() * static_cast<size_t>(dtype_nbytes(dtype)));
  if (dtype == DType::f8e4m3 || dtype == DType::f8ue5m3) {
    std::vector<float> scales(static_cast<size_t>(round_up(count, kLine) / kLine));
    table.encode(reinterpret_cast<uint8_t *>(stored.data()), scales.data(), dtype, values.data(), count, nullptr);
    const int32_t number = slot == ZERO_SLOT_PARAM ? int32_t{ZERO_SLOT_PARAM_SCALE} : scale_slot(slot);
    ZERO_TRY(store(id, number, first / kLine, std::as_bytes(std::span(scales))));
  } else {
    kernels::narrow(table, stored.data(), dtype, values.data(), count);
  }
  return store(id, slot, first, stored);
}

Status SavedState::store_values(int64_t id, int64_t first, std::span<const float> values) const {
  const Slot *master = nullptr;
  if (values.empty()) return {};
  if (!optimizer_->parts_.state.tensors.find(ZERO_SLOT_MASTER, id, &master)) return store_state(id, ZERO_SLOT_PARAM, first, values);
  if (optimizer_->parts_.state.tensors.place(*master, id).dtype == DType::f32) {
    ZERO_TRY(store(id, ZERO_SLOT_MASTER, first, std::as_bytes(values)));
    return store_state(id, ZERO_SLOT_PARAM, first, values);
  }
  std::vector<uint16_t> upper(values.size());
  std::vector<uint16_t> lower(values.size());
  kernels::active().split(upper.data(), lower.data(), values.data(), std::ssize(values));
  ZERO_TRY(store(id, ZERO_SLOT_MASTER, first, std::as_bytes(std::span(lower))));
  return store(id, ZERO_SLOT_PARAM, first, std::as_bytes(std::span(upper)));
}

Status SavedState::read_scalars(const Facts &facts, SavedScalars *out) {
  for (const auto &[key, name] : kCounts) {
    const auto found = facts.find(name);
    int64_t value = 0;
    const bool good = found != facts.end() && read_integer(found->second, &value) && check_i64(key, value).ok();
    ZERO_TRY(check_fact(good, name, facts));
    *count_of(out->run, key) = value;
  }
  if (const auto missed = facts.find(kSecondMissed); missed != facts.end()) {
    const bool good =
        read_integer(missed->second, &out->second_missed) && out->second_missed >= 0 && out->second_missed <= out->run.applied_count;
    ZERO_TRY(check_fact(good, kSecondMissed, facts));
  }
  const auto scale = facts.find(kLossScale);
  const bool good = scale != facts.end() && read_hex_float(scale->second, &out->run.loss_scale.value) &&
                    check_f64(ZERO_KEY_LOSS_SCALE, out->run.loss_scale.value).ok();
  ZERO_TRY(check_fact(good, kLossScale, facts));
  for (const auto &[name, value] : {std::pair{kGradientScale, &out->gradient_scale}, {kGradientWeight, &out->gradient_weight}}) {
    const auto found = facts.find(name);
    ZERO_TRY(check_fact(found == facts.end() || (read_hex_float(found->second, value) && *value >= 0), name, facts));
  }
  const auto dynamic = facts.find(kDynamic);
  out->dynamic_loss_scale = dynamic != facts.end() && dynamic->second != "0";
  return {};
}

Status SavedState::store_outer(const Facts &facts) const {
  for (const auto &[key, name] :
       {std::pair{ZERO_KEY_OUTER_LR, kOuterLr}, {ZERO_KEY_OUTER_MOMENTUM, kOuterMomentum}, {ZERO_KEY_SYNC_MIX, kSyncMix}}) {
    const auto found = facts.find(name);
    if (found == facts.end() || !optimizer_->parts_.settings.replicas.part() || optimizer_->parts_.settings.replicas.ring) continue;
    double value = 0;
    ZERO_TRY(check_fact(read_hex_float(found->second, &value) && check_f64(key, value).ok(), name, facts));
    // Without momentum of its own the optimizer keeps none.
    if (key != ZERO_KEY_OUTER_MOMENTUM || optimizer_->parts_.settings.replicas.outer_momentum > 0)
      ZERO_TRY(optimizer_->parts_.replicas.set(key, value));
  }
  return {};
}

Status SavedState::store_hyper(int64_t set, const Facts &facts) const {
  HyperSet &values = optimizer_->parts_.registry.sets[static_cast<size_t>(set)];
  HyperSet changed = values;
  for (const auto &[key, before] : values.all()) {
    const std::string name = hyper_name(static_cast<size_t>(set), key);
    const auto found = facts.find(name);
    if (found == facts.end()) continue;
    double value = before;
    ZERO_TRY(check_fact(read_hex_float(found->second, &value) && check_f64(key, value).ok(), name, facts));
    changed.put(key, value);
  }
  values = changed;
  return {};
}

void SavedState::begin_load() const {
  optimizer_->parts_.guard.enter(CallGuard::Phase::sealed);
  optimizer_->parts_.guard.changes_in("a load");
  optimizer_->parts_.gradients.drop();
  optimizer_->parts_.gradients.reductions().forget();
}

/// If it fails here, ranks that wait inside the optimizer get the error.
Task SavedState::finish_load(const SavedScalars *scalars, bool counts_set) const {
  Status status;
  try {
    status = co_await take_loaded(scalars, counts_set);
  } catch (...) {
    status = exception_status();
  }
  if (!status.ok()) optimizer_->parts_.guard.lose(status);
  co_return status;
}

/// A rank that updates everything needs the sums of all ranks.
Task SavedState::take_gradients(const SavedScalars &scalars) const {
  const OptimizerParts &parts = optimizer_->parts_;
  for (int64_t id = 0; id < params().size(); ++id) {
    if (!params()[id].tied() && params()[id].count > 0 && format_of(id).trains)
      ZERO_CO_AWAIT(parts.state.follow_owners(*parts.groups.gather(), parts.state.slots.grad(), id));
  }
  optimizer_->parts_.gradients.take_loaded(scalars.gradient_scale, scalars.gradient_weight);
  co_return Status();
}

/// Each rank has written its own cuts. A device learns scalars with the next step.
Task SavedState::take_loaded(const SavedScalars *scalars, bool counts_set) const {
  Optimizer &optimizer = *optimizer_;
  if (scalars != nullptr) {
    ZERO_CO_TRY(optimizer.parts_.run.learn());
    kernels::StepState &run = optimizer.parts_.run.edit();
    const kernels::LossScaleState before = run.loss_scale;
    run.applied_count = scalars->run.applied_count;
    run.skipped_count = scalars->run.skipped_count;
    optimizer.parts_.state.moment_freeze.set_missed(scalars->second_missed);
    const bool alike = scalars->dynamic_loss_scale == (optimizer.parts_.loss_scale.rules().dynamic != 0);
    run.loss_scale = before;
    if (alike) {
      run.loss_scale.growth_count = scalars->run.loss_scale.growth_count;
      run.loss_scale.overflow_count = scalars->run.loss_scale.overflow_count;
      run.loss_scale.value = scalars->run.loss_scale.value;
    }
    if (!counts_set) optimizer.parts_.state.update_counts.set_all(run.applied_count);
    if (!counts_set) ZERO_CO_TRY(optimizer.parts_.tell_update_counts());
  }
  optimizer.parts_.groups.name_caller(Caller::load);
  for (int64_t id = 0; id < params().size(); ++id) {
    if (params()[id].tied() || params()[id].count == 0) continue;
    for (const SlotFormat &format : slots_of(id)) {
      const Slot *slot = nullptr;
      if (is_param_slot(format.number) || !optimizer.parts_.state.tensors.find(format.number, id, &slot)) continue;
      ZERO_CO_AWAIT(optimizer.parts_.state.follow_owners(*optimizer.parts_.groups.gather(), *slot, id));
    }
  }
  if (scalars != nullptr && scalars->gradient_scale > 0) ZERO_CO_AWAIT(take_gradients(*scalars));
  ZERO_CO_AWAIT(optimizer.parts_.first_values.take_loaded());
  ZERO_CO_AWAIT(optimizer.parts_.replicas.drop_exchange());
  optimizer.parts_.replicas.meet();
  optimizer.parts_.plan_next_step();
  optimizer.parts_.guard.end_change();
  optimizer.parts_.guard.enter(CallGuard::Phase::running);
  ZERO_CO_TRY(optimizer.parts_.memory->kernels().status());
  co_return optimizer.parts_.verifier.move_window();
}

}  // namespace zero
