/// @file From registered parameters to formats, flat spaces and a plan.
#include "engine/layout/layout.h"

#include "core/number_text.h"
#include "core/partition.h"

#include <algorithm>
#include <new>

namespace zero {

/// The same on all ranks, so all of them find the same.
Status Layout::check_matrices() const {
  for (int64_t id = 0; id < params_.size(); ++id) {
    const Param &param = params_[id];
    const kernels::Algorithm *algorithm = sets_[static_cast<size_t>(param.options.set)].algorithm();
    const bool matrix = algorithm != nullptr && algorithm->matrix && !param.options.frozen && !param.tied();
    ZERO_CHECK(!matrix || param.shape.size() == 2, ZERO_E_UNSUPPORTED,
               "%s has %s, but algorithm \"%s\" updates matrices; put it into a parameter set with another algorithm", param.text().c_str(),
               count_text(static_cast<int64_t>(param.shape.size()), "dimension").c_str(), algorithm->name);
  }
  return {};
}

Status Layout::make(int64_t rank) {
  try {
    make_formats();
    make_plan(rank);
    return {};
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for the plan of all parameters (%lld)", lld(params_.size()));
  }
}

void Layout::clear() {
  formats_.clear();
  spaces_.clear();
}

bool Layout::any_coded() const {
  return std::any_of(formats_.begin(), formats_.end(), [](const Format &format) { return format.coded(); });
}

std::vector<SlotFormat> Layout::slots_of(int64_t id) const {
  const Format &format = format_of(id);
  std::vector<SlotFormat> slots{{ZERO_SLOT_PARAM, format.param}};
  if (format.coded()) slots.push_back({ZERO_SLOT_PARAM_SCALE, DType::f32, kLine});
  slots.insert(slots.end(), format.states.begin(), format.states.end());
  if (format.counts_updates) slots.push_back({ZERO_SLOT_UPDATE_COUNT, DType::i64, kPerTensor});
  return slots;
}

/// Formats, and so the layout of flat spaces, depend on nothing that may differ between runs of the same bits.
void Layout::make_formats() {
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (params_[id].tied()) {
      spaces_.push_back(spaces_[static_cast<size_t>(params_.holder(id))]);
      continue;
    }
    const HyperSet &set = sets_[static_cast<size_t>(params_[id].options.set)];
    const Format format = make_format(params_[id], settings_, set.algorithm(), set.values().momentum);
    const auto same = std::find(formats_.begin(), formats_.end(), format);
    spaces_.push_back(same - formats_.begin());
    if (same == formats_.end()) formats_.push_back(format);
  }
}

/// Multiplications of an update that needs the whole matrix: rows x columns x the smaller of both, up to a factor.
double Layout::cost_of(int64_t id) const {
  const std::vector<int64_t> &shape = params_[id].shape;
  if (shape.size() != 2) return 0;
  return static_cast<double>(params_[id].count) * static_cast<double>(std::min(shape[0], shape[1]));
}

void Layout::make_plan(int64_t rank) {
  std::vector<TensorShape> tensors;
  for (int64_t id = 0; id < params_.size(); ++id) {
    tensors.push_back({params_[id].count, spaces_[static_cast<size_t>(id)], params_[id].options.tied_to, cost_of(id)});
  }
  std::vector<SpaceShape> spaces;
  for (const Format &format : formats_) {
    const DType moved = format.trains ? format.grad : format.param;
    spaces.push_back({settings_.bucket_nbytes / dtype_nbytes(moved), format.trains, format.whole_tensors()});
  }
  const Weights weights(settings_.shard_weights);
  plan_ = Plan({tensors, spaces, params_.order(), weights, rank});
}

}  // namespace zero
