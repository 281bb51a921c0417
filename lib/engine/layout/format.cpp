/// @file Deriving formats.
#include "engine/layout/format.h"

#include "core/partition.h"
#include "engine/config/settings.h"

#include <algorithm>

namespace zero {
namespace {

bool block_scaled(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8ue5m3; }

/// Blocks of 8-bit slots are lines of the flat space; tensors that share a line keep fp32 instead.
DType moment_dtype(const Param &param, DType wanted) { return block_scaled(wanted) && param.count < kLine ? DType::f32 : wanted; }

void add_moment(Format &format, int32_t number, DType dtype) {
  format.states.push_back({number, dtype, 1});
  if (block_scaled(dtype)) format.states.push_back({scale_slot(number), DType::f32, kLine});
}

void add_algorithm_states(Format &format, const Param &param, const Settings &settings, double momentum) {
  if (format.algorithm == nullptr) {
    for (int64_t i = 0; i < settings.custom_slots; ++i)
      format.states.push_back({static_cast<int32_t>(ZERO_SLOT_CUSTOM + i), DType::f32, 1});
    return;
  }
  const kernels::Algorithm &algorithm = *format.algorithm;
  const bool optional =
      !algorithm.matrix && std::find(algorithm.keys.begin(), algorithm.keys.end(), ZERO_KEY_MOMENTUM) != algorithm.keys.end();
  if (optional && momentum == 0) return;
  for (int i = 0; i < algorithm.state_count; ++i) {
    const int32_t number = algorithm.state_slot[i];
    const Precision &precision = param.options.precision;
    add_moment(format, number, moment_dtype(param, number == ZERO_SLOT_SECOND_MOMENT ? precision.second_moment : precision.first_moment));
  }
}

}  // namespace

Format make_format(const Param &param, const Settings &settings, const kernels::Algorithm *algorithm, double momentum) {
  const Precision &precision = param.options.precision;
  Format format{};
  format.value = param.dtype;
  format.param = precision.param == 0 || param.count < kLine ? param.dtype : static_cast<DType>(precision.param);
  format.grad = grad_dtype(param.dtype, precision);
  format.trains = settings.trains && !param.options.frozen;
  format.kept_whole = param.count < settings.gathers.below;
  format.replicated = param.options.replicated;
  if (!format.trains) return format;
  format.counts_updates = settings.leaves_unfilled;
  format.algorithm = algorithm;
  if (format.param != DType::f32 && precision.master != Master::none) {
    format.states.push_back({ZERO_SLOT_MASTER, precision.master == Master::f32 ? DType::f32 : DType::u16});
  } else if (format.param == DType::f32 && settings.gathers.code != nullptr) {
    format.states.push_back({ZERO_SLOT_MASTER, DType::f32});
  }
  if (settings.average) format.states.push_back({ZERO_SLOT_AVERAGE, DType::f32});
  add_algorithm_states(format, param, settings, momentum);
  if (settings.replicas.part()) format.states.push_back({ZERO_SLOT_ANCHOR, DType::f32});
  if (settings.replicas.outer_momentum > 0) format.states.push_back({ZERO_SLOT_OUTER_MOMENT, DType::f32});
  return format;
}

const SlotFormat *find_format(std::span<const SlotFormat> formats, int32_t number) {
  const auto found = std::find_if(formats.begin(), formats.end(), [number](const SlotFormat &each) { return each.number == number; });
  return found != formats.end() ? &*found : nullptr;
}

std::string slot_name(int32_t number) {
  switch (number) {
    case ZERO_SLOT_PARAM:
      return "parameter";
    case ZERO_SLOT_GRAD:
      return "gradient";
    case ZERO_SLOT_MASTER:
      return "master";
    case ZERO_SLOT_AVERAGE:
      return "average";
    case ZERO_SLOT_PARAM_SCALE:
      return "scales of the parameter";
    case ZERO_SLOT_UPDATE_COUNT:
      return "update count";
    case ZERO_SLOT_ANCHOR:
      return "anchor";
    case ZERO_SLOT_OUTER_MOMENT:
      return "outer moment";
    case ZERO_SLOT_FIRST_MOMENT:
      return "first moment";
    case ZERO_SLOT_SECOND_MOMENT:
      return "second moment";
    case ZERO_SLOT_FIRST_SCALE:
      return "scales of the first moment";
    case ZERO_SLOT_SECOND_SCALE:
      return "scales of the second moment";
    default:
      return "slot " + std::to_string(number);
  }
}

}  // namespace zero
