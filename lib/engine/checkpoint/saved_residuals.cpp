/// @file Describes, copies and finds residuals.
#include "engine/checkpoint/saved_residuals.h"

#include "core/log.h"
#include "core/number_text.h"
#include "engine/checkpoint/load_plan.h"
#include "engine/gradients/residuals.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zero {
namespace {

using checkpoint::SaveDescription;
using checkpoint::SavedSlot;
using checkpoint::SavedTensor;
using checkpoint::Section;

/// Follow the prefix of the optimizer.
constexpr const char *kSumsPrefix = "residual_sums.";
constexpr const char *kResultsPrefix = "residual_results.";
/// Facts of a section.
constexpr const char *kResidualScale = "loss_scale";
constexpr const char *kResidualReplicas = "replicas";

int64_t all_ranks(const SavedState &state) { return state.replica_count() * state.plan().rank_count(); }

/// Tensors of fewer elements than a line are never coded.
bool has_residual(const SavedState &state, int64_t id) {
  const Param &param = state.params()[id];
  return !param.tied() && param.count >= kLine && state.format_of(id).trains;
}

/// Sums have all elements of each replica, one replica after another.
std::vector<int64_t> residual_shape(const SavedState &state, int64_t id, bool sums) {
  std::vector<int64_t> shape = state.params()[id].shape;
  if (sums) shape.insert(shape.begin(), state.replica_count());
  return shape;
}

/// The number of a tensor's first element of this rank's replica.
int64_t first_residual(const SavedState &state, int64_t id, bool sums) { return sums ? state.replica() * state.params()[id].count : 0; }

/// The part of this rank.
Residuals::Part residual_part(const SavedState &state, int64_t id, bool sums) {
  const Residuals &residuals = *state.residuals();
  return sums ? residuals.sums_of(state.plan(), id) : residuals.results_of(state.plan(), id, state.replica(), state.replica_count());
}

/// Sums are in the order of replicas and the shards of each; results in the order of shards and the
/// replicas that share the work on each. State files are in the order of the sums.
void add_residual_cuts(const SavedState &state, bool sums, Section *out) {
  const Plan &plan = state.plan();
  const int64_t replicas = state.replica_count();
  for (int64_t id = 0; id < state.params().size(); ++id) {
    int64_t cut = 0;
    out->cuts.push_back(cut);
    for (int64_t at = 0; at < out->rank_count; ++at) {
      const int64_t replica = sums ? at / plan.rank_count() : at % replicas;
      const int64_t rank = sums ? at % plan.rank_count() : at / replicas;
      const Range range = sums ? plan.param_cut(id, rank) : Residuals::results_in(plan, id, rank, replica, replicas);
      if (!range.empty()) cut = range.end + (sums ? replica * state.params()[id].count : 0);
      out->cuts.push_back(cut);
    }
  }
  for (int64_t at = 0; at < out->rank_count && !sums; ++at) out->state_files.push_back(at % replicas * plan.rank_count() + at / replicas);
}

/// All tensors are listed, as in the optimizer's section, so that they have the same numbers.
Section describe_section(const SavedState &state, const std::string &prefix, bool sums) {
  Section section;
  section.kind = kResidualKind;
  section.prefix = prefix + (sums ? kSumsPrefix : kResultsPrefix);
  section.facts[kResidualScale] = hex_float(state.residuals()->loss_scale());
  section.facts[kResidualReplicas] = std::to_string(state.replica_count());
  section.rank_count = all_ranks(state);
  for (int64_t id = 0; id < state.params().size(); ++id) {
    SavedTensor tensor;
    tensor.name = state.params()[id].given_name;
    tensor.shape = residual_shape(state, id, sums);
    SavedSlot slot;
    slot.name = "residual";
    slot.type = checkpoint::DiskType::f32;
    if (has_residual(state, id)) tensor.slots.push_back(std::move(slot));
    section.tensors.push_back(std::move(tensor));
  }
  add_residual_cuts(state, sums, &section);
  return section;
}

/// The two sections of the save.
struct FoundResiduals {
  int64_t sums = -1;
  int64_t results = -1;
};

FoundResiduals find_residuals(const SaveDescription &saved, const std::string &prefix) {
  FoundResiduals found;
  for (int64_t number = 0; number < std::ssize(saved.sections); ++number) {
    const Section &section = saved.sections[static_cast<size_t>(number)];
    if (!is_of_residuals(section, prefix)) continue;
    (section.prefix == prefix + kSumsPrefix ? found.sums : found.results) = number;
  }
  return found;
}

bool has_residual_of(const SaveDescription &saved, int64_t section, int64_t tensor) {
  const std::vector<SavedTensor> &tensors = saved.sections[static_cast<size_t>(section)].tensors;
  return tensor < std::ssize(tensors) && !tensors[static_cast<size_t>(tensor)].slots.empty();
}

/// The same on all ranks.
bool fits_here(const SavedState &state, int64_t id, const SaveDescription &saved, int64_t section, int64_t tensor) {
  const Section &in = saved.sections[static_cast<size_t>(section)];
  if (state.residuals() == nullptr || !has_residual(state, id) || !has_residual_of(saved, section, tensor)) return false;
  if (in.rank_count != all_ranks(state) || fact(in.facts, kResidualReplicas) != std::to_string(state.replica_count())) return false;
  const SavedTensor &there = in.tensors[static_cast<size_t>(tensor)];
  return there.slots.front().type == checkpoint::DiskType::f32 &&
         there.shape == residual_shape(state, id, in.prefix.ends_with(kSumsPrefix));
}

void add_residual_part(const SavedState &state, int64_t id, bool sums, int64_t section, int64_t tensor, LoadPlan *plan) {
  const Residuals::Part part = residual_part(state, id, sums);
  if (part.elements.empty()) return;
  const int64_t first = first_residual(state, id, sums);
  checkpoint::Wanted copied;
  copied.section = section;
  copied.tensor = tensor;
  copied.slot = 0;
  copied.entries = {first + part.elements.begin, first + part.elements.end};
  copied.user = std::ssize(plan->targets);
  plan->copied.push_back(copied);
  plan->targets.push_back({nullptr, 0, 0, 1, reinterpret_cast<std::byte *>(part.data)});
}

}  // namespace

void describe_residuals(const SavedState &state, const std::string &prefix, std::vector<Section> *out) {
  if (state.residuals() == nullptr || state.residuals()->zero()) return;
  for (const bool sums : {true, false}) out->push_back(describe_section(state, prefix, sums));
}

bool is_of_residuals(const Section &section, const std::string &prefix) {
  return section.kind == kResidualKind && (section.prefix == prefix + kSumsPrefix || section.prefix == prefix + kResultsPrefix);
}

Status copy_residuals(const SavedState &state, const Section &section, int64_t tensor, int64_t first, std::span<std::byte> out) {
  if (out.empty()) return {};
  const bool sums = section.prefix.ends_with(kSumsPrefix);
  const Residuals::Part part = residual_part(state, tensor, sums);
  const int64_t begin = first - first_residual(state, tensor, sums);
  const Range wanted = {begin, begin + std::ssize(out) / static_cast<int64_t>(sizeof(float))};
  ZERO_CHECK(intersect(wanted, part.elements).count() == wanted.count(), ZERO_E_INTERNAL,
             "%s has residuals of elements [%lld, %lld) here, but [%lld, %lld) are to be saved", state.params()[tensor].name.c_str(),
             lld(part.elements.begin), lld(part.elements.end), lld(wanted.begin), lld(wanted.end));
  std::memcpy(out.data(), part.data + (wanted.begin - part.elements.begin), out.size());
  return {};
}

Status plan_residuals(const SavedState &state, const std::string &prefix, const SaveDescription &saved, std::span<const SavedPlace> places,
                      LoadPlan *plan) {
  plan->residual_scales.push_back(0);
  const auto [sums, results] = find_residuals(saved, prefix);
  if (sums < 0 || results < 0) return {};
  const std::string scale = fact(saved.sections[static_cast<size_t>(sums)].facts, kResidualScale);
  double loss_scale = 0;
  ZERO_CHECK(read_hex_float(scale, &loss_scale) && check_f64(ZERO_KEY_LOSS_SCALE, loss_scale).ok(), ZERO_E_CHECKPOINT,
             "the save says that residuals have %s = \"%s\", which is no value that it can have", kResidualScale, scale.c_str());
  WrongNames dropped;
  for (size_t index = 0; index < places.size(); ++index) {
    const auto id = static_cast<int64_t>(index);
    const int64_t tensor = places[index].tensor;
    if (places[index].section != plan->sections.back() || tensor < 0 || !has_residual_of(saved, sums, tensor)) continue;
    if (fits_here(state, id, saved, sums, tensor) && fits_here(state, id, saved, results, tensor)) {
      add_residual_part(state, id, true, sums, tensor, plan);
      add_residual_part(state, id, false, results, tensor, plan);
      plan->residual_scales.back() = loss_scale;
    } else {
      dropped.add(quoted_name(prefix + state.params()[id].given_name + ":residual"));
    }
  }
  dropped.list("dropped", &plan->skipped);
  if (dropped.size() > 0) {
    log_line(
        "a load drops the residuals of %s, saved by %s replicas on %s; to keep them, load with as many of both and with "
        "ZERO_RESIDUAL_F32, and use another code than ZERO_CODE_LOW_RANK",
        count_text(dropped.size(), "tensor").c_str(), fact(saved.sections[static_cast<size_t>(sums)].facts, kResidualReplicas).c_str(),
        count_text(saved.sections[static_cast<size_t>(sums)].rank_count, "rank").c_str());
  }
  return {};
}

}  // namespace zero
