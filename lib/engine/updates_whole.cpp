/// @file Updates that need whole tensors: norms of tensors that are cut over ranks, and matrices, which are not cut.
#include "engine/updates.h"

#include "group/collectives.h"
#include "kernels/lamb.h"
#include "kernels/muon.h"

#include <algorithm>

namespace zero {

Status Updates::prepare_whole(std::span<const Format> formats, const MemorySource &source) {
  norm_index_.assign(plan_.params().size(), -1);
  norm_count_ = 0;
  for (const PlannedBucket &bucket : plan_.buckets()) {
    const Format &format = formats[static_cast<size_t>(bucket.space)];
    if (!format.trains || format.algorithm == nullptr || !format.algorithm->layerwise) continue;
    for (const int64_t id : bucket.params) norm_index_[static_cast<size_t>(id)] = norm_count_++;
  }
  const int64_t norms_nbytes = norm_count_ * kernels::kNormWords * static_cast<int64_t>(sizeof(int64_t));
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, norms_nbytes, &norms_));
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

/// nullptr: its update needs none.
int64_t *Updates::norms_at(int64_t param) const {
  const int64_t index = norm_index_[static_cast<size_t>(param)];
  return index < 0 ? nullptr : reinterpret_cast<int64_t *>(norms_.data()) + index * kernels::kNormWords;
}

/// Sums are exact, so it does not matter which rank adds which part of a tensor.
Task Updates::add_norms(Group &group) {
  const int64_t words = norm_count_ * kernels::kNormWords;
  kernels_.clear(norms_.data(), words * static_cast<int64_t>(sizeof(int64_t)));
  kernels_.add_norms(jobs_);
  if (!all_) ZERO_CO_TRY(all_reduce(group, norms_.data(), norms_.data(), words, DType::i64, ReduceOp::sum));
  co_return Status();
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
