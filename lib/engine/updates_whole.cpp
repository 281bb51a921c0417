/// @file Updates that need whole tensors: norms of tensors that are cut over ranks, and matrices, which are not cut.
#include "engine/updates.h"

#include "group/collectives.h"
#include "kernels/lamb.h"
#include "kernels/muon.h"

#include <algorithm>
#include <mutex>

namespace zero {
namespace {

/// Exported words of the two sums of one tensor.
constexpr int64_t kNormWords = 2 * kernels::ExactSum::kExported;

}  // namespace

Status Updates::prepare_whole(std::span<const Format> formats, const MemorySource &source) {
  norm_index_.assign(plan_.params().size(), -1);
  int64_t count = 0;
  for (const PlannedBucket &bucket : plan_.buckets()) {
    const Format &format = formats[static_cast<size_t>(bucket.space)];
    if (!format.trains || format.algorithm == nullptr || !format.algorithm->layerwise) continue;
    for (const int64_t id : bucket.params) norm_index_[static_cast<size_t>(id)] = count++;
  }
  norms_.assign(static_cast<size_t>(count * kNormWords), 0);
  norm_sums_ = norms_;
  workspace_elements_ = 0;
  for (const Piece &piece : pieces_) {
    if (!algorithm_of(piece).matrix) continue;
    const std::vector<int64_t> &shape = params_[piece.param].shape;
    workspace_elements_ = std::max(workspace_elements_, round_up(kernels::muon_workspace(shape[0], shape[1]), kTensorStart));
    matrices_.push_back(&piece);
  }
  const auto threads = std::min(host_.threads(), static_cast<int64_t>(matrices_.size()));
  return Arena::create_private(source, ZERO_MEMORY_WORKSPACE, threads * workspace_elements_ * static_cast<int64_t>(sizeof(float)),
                               &workspaces_);
}

/// Updates the moments and adds up the squares of every tensor; sums are exact, so it does not matter which rank adds which part.
Task Updates::find_trust_ratios(Group &group, const StepScalars &step) {
  std::fill(norms_.begin(), norms_.end(), 0);
  for (const Piece &piece : pieces_) {
    if (algorithm_of(piece).layerwise && !skips(piece, step)) {
      add_norms(piece, step, &norms_[static_cast<size_t>(norm_index_[static_cast<size_t>(piece.param)] * kNormWords)]);
    }
  }
  if (all_) {
    norm_sums_ = norms_;
  } else {
    const auto words = static_cast<int64_t>(norms_.size());
    ZERO_CO_TRY(all_reduce(group, norms_.data(), norm_sums_.data(), words, DType::i64, ReduceOp::sum));
  }
  for (Piece &piece : pieces_) {
    if (!algorithm_of(piece).layerwise) continue;
    const int64_t *limbs = &norm_sums_[static_cast<size_t>(norm_index_[static_cast<size_t>(piece.param)] * kNormWords)];
    const kernels::ExactSum param = kernels::ExactSum::import_limbs(limbs);
    piece.trust_ratio = kernels::lamb_trust_ratio(param, kernels::ExactSum::import_limbs(limbs + kernels::ExactSum::kExported));
  }
  co_return Status();
}

void Updates::add_norms(const Piece &piece, const StepScalars &step, int64_t *limbs) const {
  const kernels::UpdateScalars scalars = scalars_of(piece, step);
  kernels::ExactSum param;
  kernels::ExactSum direction;
  std::mutex mutex;
  host_.over_lines(piece.slots.count, [&](Range range) {
    const kernels::Piece part = kernels::slice(at_work(piece, step), range.begin, range.count());
    kernels::ExactSum part_param;
    kernels::ExactSum part_direction;
    kernels::lamb_moments(kernels::active(), part, scalars);
    kernels::lamb_add_norms(kernels::active(), part, scalars, part_param, part_direction);
    const std::lock_guard lock(mutex);
    param.merge(part_param);
    direction.merge(part_direction);
  });
  param.export_limbs(limbs);
  direction.export_limbs(limbs + kernels::ExactSum::kExported);
}

/// Each thread takes every n-th matrix, with a workspace of its own.
void Updates::update_matrices(const StepScalars &step) {
  if (matrices_.empty()) return;
  const auto count = static_cast<int64_t>(matrices_.size());
  const int64_t threads = std::min(host_.threads(), count);
  const DefaultFloats floats;
  parallel_pieces(threads, [&](int64_t thread) {
    float *workspace = reinterpret_cast<float *>(workspaces_.data()) + thread * workspace_elements_;
    for (int64_t i = thread; i < count; i += threads) update_matrix(*matrices_[static_cast<size_t>(i)], step, workspace);
  });
}

void Updates::update_matrix(const Piece &piece, const StepScalars &step, float *workspace) const {
  if (skips(piece, step)) return;
  const std::vector<int64_t> &shape = params_[piece.param].shape;
  kernels::muon(kernels::active(), at_work(piece, step), shape[0], shape[1], scalars_of(piece, step), workspace);
}

}  // namespace zero
