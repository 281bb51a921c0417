/// @file From registered parameters to formats, flat spaces and a plan.
#include "engine/layout/layout.h"

#include "core/config.h"
#include "core/number_text.h"
#include "core/partition.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

namespace zero {

/// The inputs are the same on all ranks, so all ranks return the same result.
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

Status Layout::check_code_freeze() const {
  for (int64_t id = 0; id < params_.size() && settings_.replicas.code_freeze; ++id) {
    const Param &param = params_[id];
    if (param.options.frozen || param.tied()) continue;
    const kernels::Algorithm *algorithm = sets_[static_cast<size_t>(param.options.set)].algorithm();
    const std::string_view name = algorithm != nullptr ? algorithm->name : settings_.algorithm_name();
    ZERO_CHECK(name == "adam" || name == "adamw", ZERO_E_UNSUPPORTED,
               "%s: ZERO_KEY_CODE_FREEZE is 1 and ZERO_KEY_ALGORITHM of its set is \"%s\", but only \"adam\" and \"adamw\" have a second "
               "moment that can stay and a first one that gradients can carry; use one of them, or leave out ZERO_KEY_CODE_FREEZE",
               param.name.c_str(), name.data());
    for (const auto &[key, dtype] : {std::pair{ZERO_KEY_FIRST_MOMENT_DTYPE, param.options.precision.first_moment},
                                     {ZERO_KEY_SECOND_MOMENT_DTYPE, param.options.precision.second_moment}}) {
      ZERO_CHECK(dtype == DType::f32, ZERO_E_UNSUPPORTED,
                 "%s: ZERO_KEY_CODE_FREEZE is 1 and %s is %s, but gradients carry first moments in fp32, as far as second ones allow; use "
                 "ZERO_DTYPE_F32",
                 param.name.c_str(), find_key(key)->name, dtype_name(dtype));
    }
  }
  return {};
}

Status Layout::make(int64_t rank) {
  try {
    make_formats();
    choose_sizes();
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

/// Formats, and with them the flat spaces, depend on nothing that may differ between runs that must
/// agree bit for bit.
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

/// Bytes of parameters, gradients and states on each of equal ranks, without padding.
int64_t Layout::formula_nbytes() const {
  const auto ranks = static_cast<int64_t>(settings_.shard_weights.size());
  const auto share = [&](int64_t nbytes, int64_t sharded_from) { return settings_.stage >= sharded_from ? nbytes / ranks : nbytes; };
  int64_t sum = 0;
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (params_[id].tied()) continue;
    const Format &format = format_of(id);
    const int64_t count = params_[id].count;
    int64_t states = 0;
    for (const SlotFormat &slot : format.states) states += count / slot.per * dtype_nbytes(slot.dtype);
    const int64_t param = count * dtype_nbytes(format.param);
    const bool copied = settings_.gathers.param_ranks > 0;
    sum += format.kept_whole ? param : copied ? param / settings_.gathers.param_ranks : share(param, 3);
    sum += share(format.trains ? count * dtype_nbytes(format.grad) : 0, 2) + share(states, 1);
  }
  return sum;
}

/// If a rank keeps about 20 MB or more, then pools, prefetched parameters and staging together take
/// at most a tenth of that. Buckets of one larger tensor are the exception.
/// Two buckets, with buffers for smaller ones beside them (BucketPool), take less than a third of
/// the tenth. Prefetched parameters take half of it, and staging (two groups, four rounds each) an
/// eighth. Buckets of more than kMost are no faster. All ranks choose the same sizes, whatever
/// their weights.
void Layout::choose_sizes() {
  constexpr int64_t kLeast = 64 << 10;
  constexpr int64_t kMost = 25 << 20;
  const int64_t tenth = formula_nbytes() / 10;
  const bool chosen = settings_.buckets.nbytes == 0;
  bucket_nbytes_ = chosen ? std::clamp(tenth / 8, kLeast, kMost) : settings_.buckets.nbytes;
  prefetch_nbytes_ = settings_.gathers.ahead_follows ? std::min(settings_.gathers.ahead_nbytes, tenth / 2) : settings_.gathers.ahead_nbytes;
  most_round_nbytes_ = chosen ? std::max(tenth / 64, kLeast / 2) : INT64_MAX;
}

/// Multiplications, up to a factor, of an update that needs the whole matrix: rows x columns x the
/// smaller of both.
double Layout::cost_of(int64_t id) const {
  const std::vector<int64_t> &shape = params_[id].shape;
  if (shape.size() != 2) return 0;
  return static_cast<double>(params_[id].count) * static_cast<double>(std::min(shape[0], shape[1]));
}

/// A tensor of less than a line is reduced with its neighbours, unless some of its rows may stay
/// untouched: then ranks must know which.
int64_t Layout::reduced_rows(const Param &param) const {
  const int64_t least = settings_.leaves_unfilled ? 1 : kLine;
  return param.options.by_rows && !param.options.frozen && param.count >= least ? param.shape[0] : 0;
}

void Layout::make_plan(int64_t rank) {
  std::vector<TensorShape> tensors;
  for (int64_t id = 0; id < params_.size(); ++id) {
    const Param &param = params_[id];
    tensors.push_back({param.count, spaces_[static_cast<size_t>(id)], param.options.tied_to, cost_of(id), reduced_rows(param),
                       param.shape.size() > 1 ? param.shape[0] : 0});
  }
  std::vector<SpaceShape> spaces;
  for (const Format &format : formats_) {
    const DType moved = format.trains ? format.grad : format.param;
    spaces.push_back({bucket_nbytes_ / dtype_nbytes(moved), format.trains, format.whole_tensors()});
  }
  const Weights weights(settings_.shard_weights);
  plan_ = Plan({tensors, spaces, params_.order(), weights, rank, settings_.gathers.param_ranks});
}

}  // namespace zero
