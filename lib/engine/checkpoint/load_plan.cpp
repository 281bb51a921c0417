/// @file Matches a save, or plain files, with the registered things.
#include "engine/checkpoint/load_plan.h"

#include "engine/checkpoint/carried_sections.h"
#include "engine/checkpoint/saved_gradients.h"
#include "engine/checkpoint/saved_names.h"
#include "engine/checkpoint/state_sets.h"

#include <zero/checkpoint.h>

#include <algorithm>
#include <map>
#include <set>

namespace zero {
namespace {

using checkpoint::SaveDescription;
using checkpoint::SavedExtra;
using checkpoint::SavedSlot;
using checkpoint::SavedTensor;
using checkpoint::Scope;
using checkpoint::Section;
using checkpoint::Wanted;

/// Makes the plan, one registered thing after another.
class Planner {
 public:
  Planner(const SavedThings &things, const Renames &renames, const CheckpointSettings &settings, bool params_alone,
          const SaveDescription &saved, const LoadedFrom &from, LoadPlan &plan)
      : things_(things), renames_(renames), settings_(settings), params_alone_(params_alone), saved_(saved), from_(from), plan_(plan) {}

  Status make() {
    ZERO_TRY(index_names());
    for (size_t number = 0; number < things_.optimizers().size(); ++number) ZERO_TRY(add_optimizer(number));
    if (!params_alone_) {
      for (const SavedThings::SavedBuffer &buffer : things_.buffers()) ZERO_TRY(add_buffer(buffer));
      add_extras();
    }
    find_extra();
    return finish();
  }

 private:
  const SavedTensor &tensor_at(SavedPlace place) const {
    return saved_.sections[static_cast<size_t>(place.section)].tensors[static_cast<size_t>(place.tensor)];
  }

  const std::string &source_of(SavedPlace place) const {
    return from_.of_tensor.empty() ? from_.all : from_.of_tensor[static_cast<size_t>(place.tensor)];
  }

  Status index_names() {
    for (size_t section = 0; section < saved_.sections.size(); ++section) {
      const Section &each = saved_.sections[section];
      if (each.kind == SavedState::kSetKind || each.kind == kCarriedKind) continue;
      auto &names = each.kind == "buffer" ? buffers_ : tensors_;
      for (size_t tensor = 0; tensor < each.tensors.size(); ++tensor) {
        const SavedPlace place{static_cast<int64_t>(section), static_cast<int64_t>(tensor)};
        const std::string here = renames_.here(each.prefix + each.tensors[tensor].name);
        ZERO_CHECK(names.emplace(here, place).second, ZERO_E_CHECKPOINT, "two names of the save become %s here; change the renames",
                   quoted_name(here).c_str());
      }
    }
    return {};
  }

  /// Returns the tensor that holds the values: for a tied tensor, the one that it is tied to.
  SavedPlace holder_of(SavedPlace place) const {
    const SavedTensor &tensor = tensor_at(place);
    if (tensor.tied_to.empty()) return place;
    const Section &section = saved_.sections[static_cast<size_t>(place.section)];
    for (size_t other = 0; other < section.tensors.size(); ++other) {
      if (section.tensors[other].name == tensor.tied_to) return {place.section, static_cast<int64_t>(other)};
    }
    return place;
  }

  Status add_optimizer(size_t number) {
    const SavedThings::SavedOptimizer &optimizer = things_.optimizers()[number];
    int64_t found = -1;
    for (size_t section = 0; section < saved_.sections.size(); ++section) {
      if (saved_.sections[section].kind == "optimizer" && saved_.sections[section].prefix == optimizer.prefix)
        found = static_cast<int64_t>(section);
    }
    plan_.sections.push_back(found);
    plan_.sets.push_back(state_sets_of(saved_, found));
    plan_.counts_copied.push_back(false);
    if (!params_alone_) ZERO_TRY(check_sets(optimizer, found));
    const Params &params = optimizer.state.params();
    std::vector<SavedPlace> places(static_cast<size_t>(params.size()));
    for (int64_t id = 0; id < params.size(); ++id) {
      if (!params[id].tied()) ZERO_TRY(add_tensor(number, optimizer, id, &places[static_cast<size_t>(id)]));
    }
    if (!params_alone_) plan_gradients(optimizer.state, saved_, places, &plan_);
    if (!params_alone_) ZERO_TRY(plan_carried(optimizer.state, optimizer.prefix, saved_, places, &plan_));
    for (int64_t id = 0; id < params.size() && params_alone_; ++id) {
      if (params[id].tied()) ZERO_TRY(add_second_name(optimizer, id, places[static_cast<size_t>(params.holder(id))]));
    }
    return {};
  }

  /// Finds a tensor by its own name or, if that is missing, by a name that is tied to it.
  std::map<std::string, SavedPlace>::const_iterator find_tensor(const SavedThings::SavedOptimizer &optimizer, int64_t id) const {
    const Params &params = optimizer.state.params();
    auto found = tensors_.find(optimizer.prefix + params[id].given_name);
    for (int64_t other = 0; found == tensors_.end() && params_alone_ && other < params.size(); ++other) {
      if (params[other].tied() && params.holder(other) == id) found = tensors_.find(optimizer.prefix + params[other].given_name);
    }
    return found;
  }

  /// A tied name may be missing. A separate tensor of that name must have the holder's values.
  Status add_second_name(const SavedThings::SavedOptimizer &optimizer, int64_t id, SavedPlace first) {
    const Param &param = optimizer.state.params()[id];
    const auto found = tensors_.find(optimizer.prefix + param.given_name);
    if (found == tensors_.end()) return {};
    const SavedPlace second = holder_of(found->second);
    used_.insert({found->second.section, found->second.tensor});
    if (first.section < 0 || (first.section == second.section && first.tensor == second.tensor)) return {};
    used_.insert({second.section, second.tensor});
    const int64_t holder = optimizer.state.params().holder(id);
    const std::string name = optimizer.prefix + param.given_name;
    const std::string first_name = optimizer.prefix + optimizer.state.params()[holder].given_name;
    ZERO_TRY(check_shape(optimizer.state.params()[holder], second, name));
    if (param.count == 0) return {};
    EqualValues equal{quoted_name(first_name) + " and " + quoted_name(name), {}, {}};
    ZERO_TRY(find_values(optimizer.state, holder, first, first_name, &equal.first));
    ZERO_TRY(find_values(optimizer.state, holder, second, name, &equal.second));
    if (!optimizer.state.own(holder).empty()) plan_.equal.push_back(std::move(equal));
    return {};
  }

  Status check_shape(const Param &param, SavedPlace place, const std::string &name) const {
    ZERO_CHECK(tensor_at(place).shape == param.shape, ZERO_E_CHECKPOINT, "tensor %s has shape %s in %s, but %s here; register it with that shape",
               quoted_name(name).c_str(), shape_text(tensor_at(place).shape).c_str(), source_of(place).c_str(), shape_text(param.shape).c_str());
    return {};
  }

  Status check_sets(const SavedThings::SavedOptimizer &optimizer, int64_t section) const {
    ZERO_CHECK(section >= 0, ZERO_E_CHECKPOINT, "the save has no optimizer with prefix \"%s\"; load parameters alone with ZERO_PART_PARAMS",
               optimizer.prefix.c_str());
    const checkpoint::Facts &facts = saved_.sections[static_cast<size_t>(section)].facts;
    const std::vector<HyperSet> &sets = optimizer.state.sets();
    const std::string count = fact(facts, SavedState::kSetCount);
    ZERO_CHECK(count == std::to_string(sets.size()), ZERO_E_CHECKPOINT,
               "the save has %s parameter sets, but here are %zu; load parameters alone with ZERO_PART_PARAMS", count.c_str(), sets.size());
    for (size_t set = 0; set < sets.size(); ++set) {
      const std::string there = fact(facts, "set." + std::to_string(set) + ".algorithm");
      const kernels::Algorithm *algorithm = sets[set].algorithm();
      const std::string here = algorithm != nullptr ? algorithm->name : optimizer.state.algorithm_name();
      ZERO_CHECK(there == here, ZERO_E_CHECKPOINT,
                 "parameter set %zu of the save has algorithm \"%s\", but here it has \"%s\"; load parameters alone with ZERO_PART_PARAMS", set,
                 there.c_str(), here.c_str());
    }
    return {};
  }

  Status add_tensor(size_t number, const SavedThings::SavedOptimizer &optimizer, int64_t id, SavedPlace *out_place) {
    const Param &param = optimizer.state.params()[id];
    const std::string name = optimizer.prefix + param.given_name;
    const auto found = find_tensor(optimizer, id);
    if (found == tensors_.end()) {
      missing_.add(quoted_name(name));
      return {};
    }
    used_.insert({found->second.section, found->second.tensor});
    const SavedPlace place = holder_of(found->second);
    used_.insert({place.section, place.tensor});
    *out_place = place;
    ZERO_TRY(check_shape(param, place, name));
    if (!params_alone_) {
      const std::string set = fact(tensor_at(place).facts, SavedState::kSet);
      ZERO_CHECK(set == std::to_string(param.options.set), ZERO_E_CHECKPOINT,
                 "tensor %s belongs to parameter set %s in the save, but to %lld here; load parameters alone with ZERO_PART_PARAMS",
                 quoted_name(name).c_str(), set.c_str(), lld(param.options.set));
    }
    if (param.count == 0) return {};
    ZERO_TRY(add_values(optimizer.state, id, place, name));
    return params_alone_ ? Status() : add_states(number, optimizer.state, id, place, name);
  }

  Wanted wanted(const SavedState &state, int64_t id, SavedPlace place, int64_t slot) const {
    const SavedSlot &saved = tensor_at(place).slots[static_cast<size_t>(slot)];
    Wanted wanted;
    wanted.section = place.section;
    wanted.tensor = place.tensor;
    wanted.slot = slot;
    wanted.entries = checkpoint::entries_of(saved, state.own(id));
    return wanted;
  }

  void copy_slot(const SavedState &state, int64_t id, SavedPlace place, int64_t slot, const SlotFormat &format) {
    Wanted copied = wanted(state, id, place, slot);
    if (copied.entries.empty()) return;
    copied.user = std::ssize(plan_.targets);
    plan_.copied.push_back(copied);
    plan_.targets.push_back({&state, id, format.number, dtype_nbytes(format.dtype), nullptr});
  }

  /// Loads the parameter, its scales and its master. They are copied if both sides have the same
  /// slots, otherwise converted by value.
  Status add_values(const SavedState &state, int64_t id, SavedPlace place, const std::string &name) {
    const SavedTensor &tensor = tensor_at(place);
    const auto of_value = [](int32_t number) { return is_param_slot(number) || number == ZERO_SLOT_MASTER; };
    bool same = !params_alone_;
    int64_t here = 0;
    int64_t average = -1;
    bool wants_average = false;
    for (const SlotFormat &format : state.slots_of(id)) {
      wants_average = wants_average || format.number == ZERO_SLOT_AVERAGE;
      if (!of_value(format.number)) continue;
      ++here;
      int64_t index = 0;
      DType dtype{};
      const SavedSlot *saved = find_slot(tensor, disk_slot_name(format.number), &index);
      same = same && saved != nullptr && dtype_in(*saved, &dtype) && dtype == format.dtype && saved->per == format.per;
    }
    int64_t there = 0;
    for (const SavedSlot &slot : tensor.slots) there += of_value(slot_of_disk_name(slot.name)) ? 1 : 0;
    const bool makes_average = wants_average && (params_alone_ || find_slot(tensor, "average", &average) == nullptr);
    if (same && here == there) {
      for (const SlotFormat &format : state.slots_of(id)) {
        int64_t index = 0;
        if (!of_value(format.number)) continue;
        find_slot(tensor, disk_slot_name(format.number), &index);
        copy_slot(state, id, place, index, format);
      }
      if (!makes_average) return {};
      LoadedValues values{&state, id, {}, ZERO_SLOT_AVERAGE};
      ZERO_TRY(find_values(state, id, place, name, &values.source));
      if (!state.own(id).empty()) plan_.values.push_back(values);
      return {};
    }
    LoadedValues values{&state, id, {}, 0, makes_average};
    ZERO_TRY(find_values(state, id, place, name, &values.source));
    if (fact(tensor.facts, SavedState::kDtype) != dtype_name(state.params()[id].dtype)) converted_.add(quoted_name(name));
    if (!state.own(id).empty()) plan_.values.push_back(values);
    return {};
  }

  static bool keeps_fp32(const SavedState &state, int64_t id) {
    const std::vector<SlotFormat> slots = state.slots_of(id);
    return std::any_of(slots.begin(), slots.end(), [](const SlotFormat &slot) {
      return slot.number == ZERO_SLOT_MASTER || (slot.number == ZERO_SLOT_PARAM && slot.dtype != DType::bf16 && slot.dtype != DType::f16);
    });
  }

  /// Picks the fp32 master, bf16 and remainder, the parameter, or codes and scales.
  Status find_values(const SavedState &state, int64_t id, SavedPlace place, const std::string &name, ValueSource *out) const {
    const SavedTensor &tensor = tensor_at(place);
    int64_t param_at = -1;
    int64_t master_at = -1;
    DType master_dtype{};
    const SavedSlot *param = find_slot(tensor, "param", &param_at);
    const SavedSlot *master = params_alone_ ? nullptr : find_slot(tensor, "master", &master_at);
    ZERO_CHECK(param != nullptr && dtype_in(*param, &out->dtype), ZERO_E_CHECKPOINT, "tensor %s of %s has no parameter of a known dtype",
               quoted_name(name).c_str(), source_of(place).c_str());
    out->values = wanted(state, id, place, param_at);
    if (master != nullptr && dtype_in(*master, &master_dtype) && master_dtype == DType::f32) {
      out->values = wanted(state, id, place, master_at);
      out->dtype = DType::f32;
      return {};
    }
    int64_t second_at = master_at;
    out->has_second = master != nullptr && master_dtype == DType::u16;
    out->second_dtype = DType::u16;
    if (out->dtype == DType::f8e4m3) {
      out->has_second = find_slot(tensor, "param_scale", &second_at) != nullptr;
      out->second_dtype = DType::f32;
      ZERO_CHECK(out->has_second, ZERO_E_CHECKPOINT, "tensor %s of %s has 8-bit codes, but no scales", quoted_name(name).c_str(),
                 source_of(place).c_str());
    }
    if (out->has_second) out->second = wanted(state, id, place, second_at);
    const bool known = out->dtype == DType::f32 || out->dtype == DType::f64 || out->dtype == DType::f16 || out->dtype == DType::bf16 ||
                       out->dtype == DType::f8e4m3;
    ZERO_CHECK(known, ZERO_E_CHECKPOINT, "tensor %s of %s has dtype %s, which no parameter can have", quoted_name(name).c_str(),
               source_of(place).c_str(), dtype_name(out->dtype));
    out->to_odd = out->dtype == DType::f64 && !keeps_fp32(state, id);
    return {};
  }

  Status add_states(size_t number, const SavedState &state, int64_t id, SavedPlace place, const std::string &name) {
    const SavedTensor &tensor = tensor_at(place);
    std::set<std::string> known = {"param", "param_scale", "master", kGradientSlot};
    for (const SlotFormat &format : state.slots_of(id)) {
      const std::string slot = disk_slot_name(format.number);
      if (!known.insert(slot).second) continue;
      ZERO_TRY(add_state(number, state, id, place, name, format));
      // Scales belong to the codes before them.
      if (format.number == ZERO_SLOT_FIRST_MOMENT || format.number == ZERO_SLOT_SECOND_MOMENT)
        known.insert(disk_slot_name(scale_slot(format.number)));
    }
    for (const SavedSlot &slot : tensor.slots) {
      if (!known.contains(slot.name)) extra_.add(quoted_name(name + ":" + slot.name));
    }
    return {};
  }

  /// Loads a state with its scales, if either side has scales.
  Status add_state(size_t number, const SavedState &state, int64_t id, SavedPlace place, const std::string &name, const SlotFormat &format) {
    if (SavedState::is_of_set(format.number)) place = place_of_states(saved_, plan_.sets[number], state.state_set(), place);
    const SavedTensor &tensor = tensor_at(place);
    int64_t index = 0;
    DType dtype{};
    const SavedSlot *saved = find_slot(tensor, disk_slot_name(format.number), &index);
    if (saved == nullptr) {
      // add_values() makes the average from the value, and a new update count is the step count.
      const bool made = format.number == ZERO_SLOT_AVERAGE || format.number == ZERO_SLOT_UPDATE_COUNT;
      if (!made) missing_.add(quoted_name(name + ":" + disk_slot_name(format.number)));
      return {};
    }
    ZERO_CHECK(dtype_in(*saved, &dtype), ZERO_E_CHECKPOINT, "slot %s of tensor %s of the save has a dtype that this library does not know",
               saved->name.c_str(), quoted_name(name).c_str());
    const std::vector<SlotFormat> formats = state.slots_of(id);
    const SlotFormat *scales = find_format(formats, scale_slot(format.number));
    const bool is_moment = format.number == ZERO_SLOT_FIRST_MOMENT || format.number == ZERO_SLOT_SECOND_MOMENT;
    int64_t scales_at = -1;
    const SavedSlot *saved_scales = is_moment ? find_slot(tensor, disk_slot_name(scale_slot(format.number)), &scales_at) : nullptr;
    if (dtype == format.dtype && saved->per == format.per) {
      copy_slot(state, id, place, index, format);
      if (format.number == ZERO_SLOT_UPDATE_COUNT) plan_.counts_copied[number] = true;
      if (!is_moment || scales == nullptr) return {};
      ZERO_CHECK(saved_scales != nullptr && saved_scales->per == scales->per, ZERO_E_CHECKPOINT,
                 "slot %s of tensor %s of the save has 8-bit codes, but no scales", saved->name.c_str(), quoted_name(name).c_str());
      copy_slot(state, id, place, scales_at, *scales);
      return {};
    }
    ZERO_CHECK(settings_.converts && is_moment, ZERO_E_CHECKPOINT,
               "slot %s of tensor %s has dtype %s in the save, but %s here; ZERO_KEY_CHECKPOINT_CONVERT = 1 converts moments",
               saved->name.c_str(), quoted_name(name).c_str(), dtype_name(dtype), dtype_name(format.dtype));
    LoadedValues values{&state, id, {}, format.number};
    values.source.values = wanted(state, id, place, index);
    values.source.dtype = dtype;
    if (saved_scales != nullptr) {
      values.source.has_second = true;
      values.source.second = wanted(state, id, place, scales_at);
    }
    const bool coded = dtype == DType::f8e4m3 || dtype == DType::f8ue5m3;
    ZERO_CHECK(coded == values.source.has_second, ZERO_E_CHECKPOINT, "slot %s of tensor %s of the save has dtype %s and %s scales",
               saved->name.c_str(), quoted_name(name).c_str(), dtype_name(dtype), values.source.has_second ? "has" : "no");
    converted_.add(quoted_name(name + ":" + saved->name));
    if (!state.own(id).empty()) plan_.values.push_back(values);
    return {};
  }

  Status add_buffer(const SavedThings::SavedBuffer &thing) {
    const auto found = buffers_.find(thing.name);
    if (found == buffers_.end()) {
      missing_.add(quoted_name(thing.name));
      return {};
    }
    used_.insert({found->second.section, found->second.tensor});
    const SavedTensor &tensor = tensor_at(found->second);
    DType dtype{};
    const bool same = tensor.slots.size() == 1 && dtype_in(tensor.slots[0], &dtype) && dtype == thing.buffer->dtype() &&
                      tensor.count() == thing.buffer->count();
    ZERO_CHECK(same, ZERO_E_CHECKPOINT, "buffer %s has %lld elements of %s in the save, but %lld of %s here", quoted_name(thing.name).c_str(),
               lld(tensor.count()), dtype_name(dtype), lld(thing.buffer->count()), dtype_name(thing.buffer->dtype()));
    const Buffer::Shard shard = thing.buffer->shard();
    if (shard.count == 0) return {};
    Wanted copied;
    copied.section = found->second.section;
    copied.tensor = found->second.tensor;
    copied.slot = 0;
    copied.entries = {shard.offset, shard.offset + shard.count};
    copied.user = std::ssize(plan_.targets);
    plan_.copied.push_back(copied);
    plan_.targets.push_back({nullptr, 0, 0, 1, static_cast<std::byte *>(shard.data)});
    return {};
  }

  void add_extras() {
    for (const SavedThings::Extra &extra : things_.extras()) {
      const auto is_it = [&](const SavedExtra &there) { return renames_.here(there.name) == extra.name; };
      const int64_t found = std::find_if(saved_.extras.begin(), saved_.extras.end(), is_it) - saved_.extras.begin();
      const SavedExtra *saved = found < std::ssize(saved_.extras) ? &saved_.extras[static_cast<size_t>(found)] : nullptr;
      const bool fits = saved != nullptr && saved->type == checkpoint::disk_type_of(extra.dtype) && saved->shape == extra.shape;
      if (!fits) {
        missing_.add(quoted_name(extra.name) + (saved != nullptr ? " (of another dtype or shape)" : ""));
        continue;
      }
      used_extras_.insert(found);
      if (extra.count == 0) continue;
      Wanted copied;
      copied.tensor = found;
      const int64_t rank = things_.group()->rank();
      if (saved->scope == Scope::each) copied.copy = rank < saved_.rank_count ? rank : 0;
      copied.entries = {0, extra.count};
      copied.user = std::ssize(plan_.targets);
      plan_.copied.push_back(copied);
      plan_.targets.push_back({nullptr, 0, 0, 1, extra.data});
    }
  }

  /// Lists the names that exist only in the save. A tied name is never extra.
  void find_extra() {
    for (const auto *names : {&tensors_, &buffers_}) {
      if (names == &buffers_ && params_alone_) continue;
      for (const auto &[name, place] : *names) {
        const bool tied = !tensor_at(place).tied_to.empty();
        if (!tied && !used_.contains({place.section, place.tensor})) extra_.add(quoted_name(name));
      }
    }
    for (size_t index = 0; index < saved_.extras.size() && !params_alone_; ++index) {
      if (!used_extras_.contains(static_cast<int64_t>(index))) extra_.add(quoted_name(saved_.extras[index].name));
    }
  }

  Status finish() {
    ZERO_CHECK(missing_.size() == 0 || settings_.passes_missing, ZERO_E_CHECKPOINT,
               "%s lacks %lld of the names that are here (ZERO_KEY_CHECKPOINT_MISSING = 1 leaves them as they are, and zero_checkpoint_rename "
               "finds them under other names): %s",
               from_.all.c_str(), lld(missing_.size()), missing_.text().c_str());
    ZERO_CHECK(extra_.size() == 0 || settings_.passes_extra, ZERO_E_CHECKPOINT,
               "%s has %lld names that are not here (ZERO_KEY_CHECKPOINT_EXTRA = 1 ignores them): %s", from_.all.c_str(), lld(extra_.size()),
               extra_.text().c_str());
    plan_.missing = missing_.size();
    plan_.extra = extra_.size();
    plan_.converted = converted_.size();
    missing_.list("missing", &plan_.skipped);
    extra_.list("extra", &plan_.skipped);
    converted_.list("converted", &plan_.skipped);
    return {};
  }

  const SavedThings &things_;
  const Renames &renames_;
  const CheckpointSettings &settings_;
  const bool params_alone_;
  const SaveDescription &saved_;
  const LoadedFrom &from_;
  LoadPlan &plan_;
  std::map<std::string, SavedPlace> tensors_;  ///< by the names after renames
  std::map<std::string, SavedPlace> buffers_;
  std::set<std::pair<int64_t, int64_t>> used_;
  std::set<int64_t> used_extras_;
  WrongNames missing_;
  WrongNames extra_;
  WrongNames converted_;
};

}  // namespace

Status plan_load(const SavedThings &things, const Renames &renames, const CheckpointSettings &settings, int32_t part,
                 const SaveDescription &saved, const LoadedFrom &from, LoadPlan *out) {
  return Planner(things, renames, settings, part == ZERO_PART_PARAMS, saved, from, *out).make();
}

}  // namespace zero
