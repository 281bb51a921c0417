/// @file Cutting a rank's part into pieces, and updating them.
#include "engine/updates.h"

#include <algorithm>

namespace zero {
namespace {

kernels::Elements elements_at(const SlotPlace &place, int64_t index) { return {place.at(index), place.dtype, nullptr}; }

kernels::Elements slice(const kernels::Elements &elements, int64_t begin) {
  if (elements.data == nullptr) return elements;
  float *scales = elements.scales == nullptr ? nullptr : elements.scales + begin / kLine;
  return {static_cast<std::byte *>(elements.data) + begin * dtype_nbytes(elements.dtype), elements.dtype, scales};
}

}  // namespace

kernels::Piece slice(const kernels::Piece &piece, int64_t begin, int64_t count) {
  kernels::Piece part;
  part.param = slice(piece.param, begin);
  part.master = slice(piece.master, begin);
  part.grad = slice(piece.grad, begin);
  for (int state = 0; state < kernels::kMaxStates; ++state) part.state[state] = slice(piece.state[state], begin);
  part.average = slice(piece.average, begin);
  part.sources = piece.sources;
  part.divisor = piece.divisor;
  part.replicas = piece.replicas;
  part.peers_offset = piece.peers_offset + begin;
  part.count = count;
  part.first = piece.first + static_cast<uint64_t>(begin);
  return part;
}

Status Updates::build(std::span<const Format> formats, bool all, const MemorySource &source) {
  all_ = all;
  for (int64_t index = 0; index < plan_.bucket_count(); ++index) {
    const Format &format = formats[static_cast<size_t>(plan_.bucket(index).space)];
    if (format.trains && format.algorithm != nullptr) add_bucket(index, format, all);
  }
  int64_t nbytes = 0;
  for (const Piece &piece : pieces_) nbytes += piece.slots.count * dtype_nbytes(piece.slots.param.dtype);
  streams_ = nbytes > kernels::kStreamedNbytes;
  return prepare_whole(formats, source);
}

void Updates::reach(const PeerViews *params, const PeerViews *grads, int64_t ranks, int64_t self) {
  const auto at = [](const PeerViews &views, int64_t rank, const void *address) {
    return views.at(rank, static_cast<const std::byte *>(address));
  };
  for (Piece &piece : pieces_) {
    const kernels::Elements &param = piece.slots.param;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (grads != nullptr) piece.sources.push_back(at(*grads, rank, piece.slots.grad.data));
      if (rank == self || params == nullptr) continue;
      auto *scales = param.scales == nullptr ? nullptr : reinterpret_cast<float *>(at(*params, rank, param.scales));
      piece.replicas.push_back({at(*params, rank, param.data), param.dtype, scales});
    }
  }
}

/// The slots of a piece as this step updates them.
kernels::Piece Updates::at_work(const Piece &piece, const StepScalars &step) const {
  kernels::Piece slots = piece.slots;
  if (step.sums) slots.sources = piece.sources;
  if (step.sums && settings_.divisor == ZERO_DIVISOR_RANKS) slots.divisor = static_cast<double>(piece.sources.size());
  if (step.replicates) slots.replicas = piece.replicas;
  return slots;
}

void Updates::clear() {
  pieces_.clear();
  norm_index_.clear();
  matrices_.clear();
  workspaces_.release();
}

/// Tensors of one set that lie end to end become one piece, unless the update of each stands alone.
void Updates::add_bucket(int64_t index, const Format &format, bool all) {
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
    if (first >= 0) pieces_.push_back({first, params_[first].options.set, slots_of(index, format, open)});
    open = part;
    first = id;
  }
  if (first >= 0) pieces_.push_back({first, params_[first].options.set, slots_of(index, format, open)});
}

kernels::Piece Updates::slots_of(int64_t index, const Format &format, Range range) const {
  const PlannedBucket &bucket = plan_.bucket(index);
  kernels::Piece piece;
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
    } else if (slot.per == 1) {
      piece.state[state++] = elements;
    } else {
      piece.state[state - 1].scales = static_cast<float *>(elements.data);
    }
  }
  piece.count = range.count();
  constexpr int kSpaceShift = 48;  // flat spaces are numbered alike on all ranks
  piece.first = (static_cast<uint64_t>(bucket.space) << kSpaceShift) + static_cast<uint64_t>(bucket.flat.begin + range.begin);
  return piece;
}

kernels::UpdateScalars Updates::scalars_of(const Piece &piece, const StepScalars &step) const {
  kernels::UpdateScalars scalars;
  scalars.hyper = sets_[static_cast<size_t>(piece.set)].values();
  scalars.hyper.step = step.step;
  scalars.hyper.trust_ratio = piece.trust_ratio;
  scalars.grad_factor = step.grad_factor;
  scalars.clip_value = static_cast<float>(settings_.clipping.value);
  scalars.average_decay = scalars.hyper.average_decay;
  scalars.stochastic = settings_.stochastic;
  scalars.seed = settings_.seed;
  scalars.streams = streams_;
  return scalars;
}

void Updates::begin_states() const {
  for (const Piece &piece : pieces_) {
    kernels::begin_states(kernels::active(), algorithm_of(piece), piece.slots, scalars_of(piece, {}));
  }
}

bool Updates::skips(const Piece &piece, const StepScalars &step) const {
  return !step.touched.empty() && step.touched[static_cast<size_t>(piece.param)] == 0;
}

/// All pieces count as one piece of work for the threads.
void Updates::update_elementwise(const StepScalars &step) {
  int64_t total = 0;
  for (const Piece &piece : pieces_) total += round_up(piece.slots.count, kLine);
  kernels_.over_lines(total, [&](Range mine) {
    int64_t begin = 0;
    for (const Piece &piece : pieces_) {
      const Range part = intersect(mine, {begin, begin + piece.slots.count});
      if (!part.empty() && !algorithm_of(piece).matrix && !skips(piece, step)) {
        const kernels::Piece slots = slice(at_work(piece, step), part.begin - begin, part.count());
        kernels::update(kernels::active(), algorithm_of(piece), slots, scalars_of(piece, step));
      }
      begin += round_up(piece.slots.count, kLine);
    }
  });
}

Task Updates::run(Group &group, StepScalars step) {
  if (!norms_.empty()) ZERO_CO_TRY(find_trust_ratios(group, step));
  update_elementwise(step);
  update_matrices(step);
  co_return Status();
}

}  // namespace zero
