/// @file Cutting a rank's part into pieces, and updating them.
#include "engine/update/shard_updater.h"

#include "core/default_floats.h"
#include "engine/storage/host_copy.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace zero {
namespace {

kernels::Elements elements_at(const SlotPlace &place, int64_t index) { return {place.at(index), place.dtype, nullptr}; }

/// A limit below the least fp32 is that, because 0 means none.
float clip_value_of(const Clipping &clipping) {
  if (clipping.value == 0) return 0;
  return std::max(static_cast<float>(clipping.value), std::numeric_limits<float>::denorm_min());
}

}  // namespace

Status ShardUpdater::build(std::span<const Format> formats, bool all, const MemorySource &source) {
  all_ = all;
  update_counts_ = slots_.update_counts();
  pieces_ = cut(formats, all);
  int64_t nbytes = 0;
  for (const UpdateSegment &piece : pieces_) nbytes += piece.slots.count * dtype_nbytes(piece.slots.param.dtype);
  streams_ = nbytes > kernels::kStreamedNbytes;
  return prepare_whole(formats, source);
}

ShardUpdater::Pieces ShardUpdater::cut(std::span<const Format> formats, bool all) const {
  Pieces pieces;
  for (int64_t index = 0; index < plan_.bucket_count(); ++index) {
    const Format &format = formats[static_cast<size_t>(plan_.bucket(index).space)];
    if (format.trains && format.algorithm != nullptr) add_bucket(index, format, all, pieces);
  }
  return pieces;
}

void ShardUpdater::reach(std::span<const Format> formats, const Reached &reached, int64_t ranks, int64_t self) {
  if (all_) cuts_ = cut(formats, false);
  if (all_) jobs_.reserve(std::max(pieces_.size(), cuts_->size()));
  for (UpdateSegment &piece : all_ ? *cuts_ : pieces_) add_peers(piece, reached, ranks, self);
}

void ShardUpdater::add_peers(UpdateSegment &piece, const Reached &reached, int64_t ranks, int64_t self) {
  const auto at = [](const PeerViews &views, int64_t rank, const kernels::Elements &mine) {
    const auto there = [&](void *address) { return address == nullptr ? nullptr : views.at(rank, static_cast<std::byte *>(address)); };
    return kernels::Elements{there(mine.data), mine.dtype, reinterpret_cast<float *>(there(mine.scales))};
  };
  const kernels::UpdateSegment &slots = piece.slots;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (reached.grads != nullptr) piece.sources.push_back(at(*reached.grads, rank, slots.grad).data);
    if (rank == self || reached.params == nullptr) continue;
    kernels::Replica replica{.param = at(*reached.params, rank, slots.param)};
    if (reached.states != nullptr) {
      replica.master = at(*reached.states, rank, slots.master);
      for (int state = 0; state < kernels::kMaxStates; ++state) replica.state[state] = at(*reached.states, rank, slots.state[state]);
      replica.average = at(*reached.states, rank, slots.average);
    }
    piece.replicas.push_back(replica);
  }
}

/// The slots of a piece as this step updates them.
kernels::UpdateSegment ShardUpdater::at_work(const UpdateSegment &piece, const StepScalars &step) const {
  kernels::UpdateSegment slots = piece.slots;
  if (step.sums) slots.sources = piece.sources;
  if (step.sums && settings_.divisor == ZERO_DIVISOR_RANKS) slots.divisor = static_cast<double>(piece.sources.size());
  if (step.replicates) slots.replicas = piece.replicas;
  return slots;
}

void ShardUpdater::clear() {
  update_counts_ = nullptr;
  pieces_.clear();
  cuts_.reset();
  jobs_.clear();
  norm_index_.clear();
  norms_.release();
  workspace_memory_.release();
}

/// Tensors of one set that lie end to end become one piece, unless the update of each stands alone.
void ShardUpdater::add_bucket(int64_t index, const Format &format, bool all, Pieces &pieces) const {
  const PlannedBucket &bucket = plan_.bucket(index);
  const Range mine = all ? Range{0, bucket.flat.count()} : bucket.own;
  const bool apart = settings_.leaves_unfilled || format.algorithm->layerwise || format.algorithm->matrix;
  Range open{};
  int64_t first = -1;
  for (const int64_t id : bucket.params) {
    const Range flat = plan_.param(id).flat;
    const Range part = intersect(mine, {flat.begin - bucket.flat.begin, flat.end - bucket.flat.begin});
    if (part.empty()) continue;
    if (first >= 0 && !apart && params_[id].options.set == params_[first].options.set) {
      open.end = part.end;
      continue;
    }
    if (first >= 0) pieces.push_back(piece_of(index, format, first, open));
    open = part;
    first = id;
  }
  if (first >= 0) pieces.push_back(piece_of(index, format, first, open));
}

/// A table is the first of its bucket.
ShardUpdater::UpdateSegment ShardUpdater::piece_of(int64_t index, const Format &format, int64_t param, Range range) const {
  const PlannedBucket &bucket = plan_.bucket(index);
  UpdateSegment piece{param, params_[param].options.set, slots_of(index, format, range)};
  if (settings_.leaves_unfilled && bucket.rows.count > 0 && param == bucket.params.front())
    piece.rows = {rows_.of(index).data(), bucket.rows.width, range.begin};
  return piece;
}

kernels::UpdateSegment ShardUpdater::slots_of(int64_t index, const Format &format, Range range) const {
  const PlannedBucket &bucket = plan_.bucket(index);
  kernels::UpdateSegment piece;
  piece.param = elements_at(slots_.place(slots_.param(), index), range.begin);
  if (format.coded()) piece.param.scales = slots_.param_scales_at(index, range.begin);
  piece.grad = elements_at(slots_.place(slots_.grad(), index), range.begin);
  int state = 0;
  for (const SlotFormat &slot : format.states) {
    const kernels::Elements elements = elements_at(slots_.place(*slots_.find(slot.number), index), range.begin);
    if (slot.number == ZERO_SLOT_MASTER) {
      piece.master = elements;
    } else if (slot.number == ZERO_SLOT_AVERAGE) {
      piece.average = elements;
    } else if (is_common(slot.number)) {
      continue;
    } else if (slot.per == 1) {
      piece.state[state++] = elements;
    } else {
      piece.state[state - 1].scales = static_cast<float *>(elements.data);
    }
  }
  // Parameters that follow their masters by differences change when they are gathered.
  if (settings_.gathers.code != nullptr) piece.param = std::exchange(piece.master, {});
  piece.count = range.count();
  constexpr int kSpaceShift = 48;  // flat spaces are numbered alike on all ranks
  piece.first = (static_cast<uint64_t>(bucket.space) << kSpaceShift) + static_cast<uint64_t>(bucket.flat.begin + range.begin);
  return piece;
}

kernels::UpdateScalars ShardUpdater::scalars_of(const UpdateSegment &piece, const StepScalars &step) const {
  kernels::UpdateScalars scalars;
  scalars.hyper = sets_[static_cast<size_t>(piece.set)].values();
  // Counts on a device are for its own kernels to read.
  scalars.hyper.step = update_counts_ != nullptr && !settings_.on_device ? update_counts_[piece.param] + 1 : step.step;
  scalars.hyper.second_missed = freeze_.missed();
  scalars.hyper.second_stays = freeze_.stays() ? 1 : 0;
  scalars.step = step.step;
  scalars.grad_factor = step.grad_factor;
  scalars.clip_value = clip_value_of(settings_.clipping);
  scalars.average_decay = scalars.hyper.average_decay;
  scalars.stochastic = settings_.rounding.stochastic;
  scalars.seed = settings_.rounding.seed;
  scalars.streams = streams_;
  return scalars;
}

/// Memory comes zeroed, and zeros are stored as zeros in every format.
Status ShardUpdater::begin_states(const MemorySource &source) const {
  for (const UpdateSegment &piece : pieces_) {
    const kernels::UpdateScalars scalars = scalars_of(piece, {});
    const kernels::Algorithm &algorithm = algorithm_of(piece);
    const kernels::Elements &state = piece.slots.state[0];
    if (algorithm.initial_state == nullptr || scalars.hyper.*algorithm.initial_state == 0 || state.data == nullptr) continue;
    HostCopy values;
    HostCopy scales;
    kernels::UpdateSegment slots = piece.slots;
    const int64_t lines = state.scales == nullptr ? 0 : round_up(slots.count, kLine) / kLine;
    ZERO_TRY(values.open(source, state.data, slots.count * dtype_nbytes(state.dtype)));
    ZERO_TRY(scales.open(source, state.scales, lines * dtype_nbytes(DType::f32)));
    slots.state[0] = {values.data(), state.dtype, reinterpret_cast<float *>(scales.data())};
    const DefaultFloats floats;
    kernels::begin_states(kernels::active(), algorithm, slots, scalars);
    ZERO_TRY(values.write_back());
    ZERO_TRY(scales.write_back());
  }
  return {};
}

bool ShardUpdater::skips(const UpdateSegment &piece, const StepScalars &step) const {
  return piece.rows.marks == nullptr && !step.touched.empty() && step.touched[static_cast<size_t>(piece.param)] == 0;
}

void ShardUpdater::list_jobs(const StepScalars &step) {
  jobs_.clear();
  for (const UpdateSegment &piece : takes_cuts(step) ? *cuts_ : pieces_) {
    const kernels::Algorithm &algorithm = algorithm_of(piece);
    const int64_t *updates = update_counts_ != nullptr ? update_counts_ + piece.param : nullptr;
    jobs_.push_back(
        {&algorithm, at_work(piece, step), scalars_of(piece, step), piece.set, skips(piece, step), updates, norms_at(piece.param)});
    jobs_.back().touched = piece.rows;
    if (algorithm.matrix) place_matrix(jobs_.back(), piece.param);
  }
}

/// With all places that any step may use.
Status ShardUpdater::prepare() { return kernels_.prepare(all_jobs()); }

std::span<const UpdateJob> ShardUpdater::all_jobs() {
  list_jobs({.step = 1, .grad_factor = 1, .touched = {}, .sums = true, .replicates = true});
  return jobs_;
}

Task ShardUpdater::run(Group &group, StepScalars step) {
  list_jobs(step);
  if (norm_count_ > 0) ZERO_CO_AWAIT(add_norms(group, !all_ || takes_cuts(step)));
  kernels_.update(jobs_);
  co_return kernels_.status();
}

}  // namespace zero
