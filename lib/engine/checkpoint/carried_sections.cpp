/// @file Describes, copies and finds carried values.
#include "engine/checkpoint/carried_sections.h"

#include "checkpoint/safetensors.h"
#include "core/log.h"
#include "core/number_text.h"
#include "engine/checkpoint/load_plan.h"
#include "engine/gradients/low_rank_sums.h"
#include "engine/gradients/residuals.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace zero {
namespace {

using checkpoint::SaveDescription;
using checkpoint::SavedSlot;
using checkpoint::SavedTensor;
using checkpoint::Section;

struct KindNames {
  const char *prefix;  ///< follows that of the optimizer
  const char *slot;
  const char *plural;
  const char *needed;  ///< besides ranks and replicas; nullptr: told with the kind before
};

/// By kind.
constexpr std::array<KindNames, kCarried.size()> kNames = {
    {{"residual_sums.", "residual", "residuals", "with ZERO_RESIDUAL_F32 (ZERO_CODE_LOW_RANK keeps none of other codes)"},
     {"residual_results.", "residual", "residuals", nullptr},
     {"velocities.", "velocity", "velocities", "with ZERO_CODE_TOP and ZERO_KEY_CODE_MOMENTUM"},
     {"low_rank_factors.", "factor", "low-rank factors", "with ZERO_CODE_LOW_RANK and the same ZERO_KEY_CODE_RANK"}}};

/// Facts of a section.
constexpr const char *kCarriedScale = "loss_scale";
constexpr const char *kCarriedReplicas = "replicas";

constexpr size_t number_of(Carried kind) { return static_cast<size_t>(kind); }
const KindNames &names_of(Carried kind) { return kNames[number_of(kind)]; }

int64_t all_ranks(const SavedState &state) { return state.replica_count() * state.plan().rank_count(); }

/// The section has all elements of each replica, one replica after another.
bool is_by_replica(Carried kind) { return kind == Carried::residual_sums || kind == Carried::velocities; }

/// Tensors of fewer elements than a line are never coded.
bool carries(const SavedState &state, Carried kind, int64_t id) {
  const Param &param = state.params()[id];
  if (state.carried(kind) == nullptr || param.tied() || !state.format_of(id).trains) return false;
  if (state.low_rank() > 0) return LowRankSums::sizes_of(state.plan(), id, state.low_rank()).shortens();
  return param.count >= (kind == Carried::velocities ? 1 : kLine);
}

/// Factors have the columns of Q.
std::vector<int64_t> shape_of(const SavedState &state, Carried kind, int64_t id) {
  if (kind == Carried::factors) {
    if (!carries(state, kind, id)) return {0};
    return {state.low_rank(), LowRankSums::sizes_of(state.plan(), id, state.low_rank()).columns};
  }
  std::vector<int64_t> shape = state.params()[id].shape;
  if (is_by_replica(kind)) shape.insert(shape.begin(), state.replica_count());
  return shape;
}

/// The number of a tensor's first element of a replica.
int64_t first_of(const SavedState &state, Carried kind, int64_t id, int64_t replica) {
  return is_by_replica(kind) ? replica * state.params()[id].count : 0;
}

/// The entries that rank `at` of a section writes. Ranks are in the order of replicas and the
/// shards of each; for results, in the order of shards and the replicas that share the work on
/// each. The first rank writes factors, which all have alike.
Range written_by(const SavedState &state, Carried kind, int64_t id, int64_t at) {
  const Plan &plan = state.plan();
  const int64_t replicas = state.replica_count();
  if (kind == Carried::residual_results) return Residuals::results_in(plan, id, at / replicas, at % replicas, replicas);
  if (kind == Carried::factors) return {0, at == 0 ? checkpoint::shape_count(shape_of(state, kind, id)) : 0};
  const Range cut = plan.param_cut(id, at % plan.rank_count());
  const int64_t first = first_of(state, kind, id, at / plan.rank_count());
  return cut.empty() ? Range{} : Range{first + cut.begin, first + cut.end};
}

void add_cuts(const SavedState &state, Carried kind, int64_t id, Section *out) {
  int64_t cut = 0;
  out->cuts.push_back(cut);
  for (int64_t at = 0; at < out->rank_count; ++at) {
    const Range range = written_by(state, kind, id, at);
    if (!range.empty()) cut = range.end;
    out->cuts.push_back(cut);
  }
}

/// All tensors are listed, as in the optimizer's section, so that they have the same numbers. State
/// files are in the order of replicas and the shards of each.
Section describe_section(const SavedState &state, const std::string &prefix, Carried kind) {
  Section section;
  section.kind = kCarriedKind;
  section.prefix = prefix + names_of(kind).prefix;
  section.facts[kCarriedScale] = hex_float(state.carried(kind)->loss_scale());
  section.facts[kCarriedReplicas] = std::to_string(state.replica_count());
  section.rank_count = all_ranks(state);
  for (int64_t id = 0; id < state.params().size(); ++id) {
    SavedTensor tensor;
    tensor.name = state.params()[id].given_name;
    tensor.shape = shape_of(state, kind, id);
    SavedSlot slot;
    slot.name = names_of(kind).slot;
    slot.type = checkpoint::DiskType::f32;
    if (carries(state, kind, id)) tensor.slots.push_back(std::move(slot));
    section.tensors.push_back(std::move(tensor));
    add_cuts(state, kind, id, &section);
  }
  const int64_t replicas = state.replica_count();
  for (int64_t at = 0; at < section.rank_count && kind == Carried::residual_results; ++at)
    section.state_files.push_back(at % replicas * state.plan().rank_count() + at / replicas);
  return section;
}

/// Adds what an optimizer carries to a load.
class CarriedPlan {
 public:
  CarriedPlan(const SavedState &state, const std::string &prefix, const SaveDescription &saved, std::span<const SavedPlace> places,
              LoadPlan &plan)
      : state_(state), prefix_(prefix), saved_(saved), places_(places), plan_(plan) {
    for (const Section &section : saved.sections) {
      if (const auto kind = carried_in(section, prefix)) sections_[number_of(*kind)] = &section;
    }
  }

  Status add(Carried kind) {
    if (section_of(kind) == nullptr) return {};
    const Section &section = *section_of(kind);
    const std::string scale = fact(section.facts, kCarriedScale);
    double loss_scale = 0;
    ZERO_CHECK(read_hex_float(scale, &loss_scale) && check_f64(ZERO_KEY_LOSS_SCALE, loss_scale).ok(), ZERO_E_CHECKPOINT,
               "the save says that %s have %s = \"%s\", which is no value that it can have", names_of(kind).plural, kCarriedScale,
               scale.c_str());
    WrongNames dropped;
    bool any = false;
    for (size_t index = 0; index < places_.size(); ++index) {
      const auto id = static_cast<int64_t>(index);
      const int64_t tensor = places_[index].tensor;
      if (places_[index].section != plan_.sections.back() || tensor < 0 || !has(section, tensor)) continue;
      const bool kept = fits(kind, id, tensor) && fits(partner_of(kind), id, tensor);
      if (kept) add_part(kind, id, tensor);
      if (!kept) dropped.add(quoted_name(prefix_ + state_.params()[id].given_name + ":" + names_of(kind).slot));
      any = any || kept;
    }
    if (any) plan_.carried.push_back({state_.carried(kind), loss_scale});
    if (dropped.size() > 0 && names_of(kind).needed != nullptr) list_dropped(kind, dropped);
    return {};
  }

 private:
  const Section *section_of(Carried kind) const { return sections_[number_of(kind)]; }

  /// The two residuals of a tensor are kept together.
  static Carried partner_of(Carried kind) {
    if (kind == Carried::residual_sums) return Carried::residual_results;
    return kind == Carried::residual_results ? Carried::residual_sums : kind;
  }

  static bool has(const Section &section, int64_t tensor) {
    return tensor < std::ssize(section.tensors) && !section.tensors[static_cast<size_t>(tensor)].slots.empty();
  }

  /// The same on all ranks. Kinds that the save lacks begin anew.
  bool fits(Carried kind, int64_t id, int64_t tensor) const {
    if (section_of(kind) == nullptr) return true;
    const Section &section = *section_of(kind);
    if (!carries(state_, kind, id) || !has(section, tensor)) return false;
    if (section.rank_count != all_ranks(state_) || fact(section.facts, kCarriedReplicas) != std::to_string(state_.replica_count()))
      return false;
    const SavedTensor &there = section.tensors[static_cast<size_t>(tensor)];
    return there.slots.front().type == checkpoint::DiskType::f32 && there.shape == shape_of(state_, kind, id);
  }

  void add_part(Carried kind, int64_t id, int64_t tensor) {
    const CarriedPart part = state_.carried_of(kind, id);
    if (part.elements.empty()) return;
    const int64_t first = first_of(state_, kind, id, state_.replica());
    checkpoint::Wanted copied;
    copied.section = section_of(kind) - saved_.sections.data();
    copied.tensor = tensor;
    copied.slot = 0;
    copied.entries = {first + part.elements.begin, first + part.elements.end};
    copied.user = std::ssize(plan_.targets);
    plan_.copied.push_back(copied);
    plan_.targets.push_back({nullptr, 0, 0, 1, reinterpret_cast<std::byte *>(part.data)});
  }

  void list_dropped(Carried kind, const WrongNames &dropped) {
    dropped.list("dropped", &plan_.skipped);
    const Section &section = *section_of(kind);
    log_line("a load drops the %s of %s, saved by %s replicas on %s; to keep them, load with as many of both and %s", names_of(kind).plural,
             count_text(dropped.size(), "tensor").c_str(), fact(section.facts, kCarriedReplicas).c_str(),
             count_text(section.rank_count, "rank").c_str(), names_of(kind).needed);
  }

  const SavedState &state_;
  const std::string &prefix_;
  const SaveDescription &saved_;
  const std::span<const SavedPlace> places_;
  LoadPlan &plan_;
  std::array<const Section *, kCarried.size()> sections_{};  ///< by kind; nullptr: none saved
};

}  // namespace

void describe_carried(const SavedState &state, const std::string &prefix, std::vector<Section> *out) {
  for (const Carried kind : kCarried) {
    const CarriedState *carried = state.carried(kind);
    if (carried != nullptr && !carried->initial()) out->push_back(describe_section(state, prefix, kind));
  }
}

std::optional<Carried> carried_in(const Section &section, const std::string &prefix) {
  for (const Carried kind : kCarried) {
    if (section.kind == kCarriedKind && section.prefix == prefix + names_of(kind).prefix) return kind;
  }
  return std::nullopt;
}

Status copy_carried(const SavedState &state, Carried kind, int64_t id, int64_t first, std::span<std::byte> out) {
  if (out.empty()) return {};
  const CarriedPart part = state.carried_of(kind, id);
  const int64_t begin = first - first_of(state, kind, id, state.replica());
  const Range wanted = {begin, begin + std::ssize(out) / static_cast<int64_t>(sizeof(float))};
  ZERO_CHECK(intersect(wanted, part.elements).count() == wanted.count(), ZERO_E_INTERNAL,
             "%s has %s of elements [%lld, %lld) here, but [%lld, %lld) are to be saved", state.params()[id].name.c_str(),
             names_of(kind).plural, lld(part.elements.begin), lld(part.elements.end), lld(wanted.begin), lld(wanted.end));
  std::memcpy(out.data(), part.data + (wanted.begin - part.elements.begin), out.size());
  return {};
}

Status plan_carried(const SavedState &state, const std::string &prefix, const SaveDescription &saved, std::span<const SavedPlace> places,
                    LoadPlan *plan) {
  CarriedPlan carried(state, prefix, saved, places, *plan);
  for (const Carried kind : kCarried) ZERO_TRY(carried.add(kind));
  return {};
}

}  // namespace zero
