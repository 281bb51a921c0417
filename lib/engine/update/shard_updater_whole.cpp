/// @file Updates that need whole tensors: norms of tensors that are cut over ranks, and matrices,
/// which are not cut.
#include "engine/update/shard_updater.h"

#include "group/collectives.h"
#include "kernels/lamb.h"
#include "kernels/muon.h"

#include <algorithm>

namespace zero {

Status ShardUpdater::prepare_whole(std::span<const Format> formats, const MemorySource &source) {
  norm_index_.assign(plan_.params().size(), -1);
  norm_count_ = 0;
  for (const PlannedBucket &bucket : plan_.buckets()) {
    const Format &format = formats[static_cast<size_t>(bucket.space)];
    if (!format.trains || format.algorithm == nullptr || !format.algorithm->layerwise) continue;
    for (const int64_t id : bucket.params) norm_index_[static_cast<size_t>(id)] = norm_count_++;
  }
  const int64_t norms_nbytes = norm_count_ * kernels::kNormWords * static_cast<int64_t>(sizeof(int64_t));
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, norms_nbytes, &norms_));
  workspaces_ = workspaces(formats, all_);
  return Arena::create_private(source, ZERO_MEMORY_WORKSPACE, workspaces_.nbytes(), &workspace_memory_);
}

/// A matrix is updated by the rank that owns it, or by all ranks.
ShardUpdater::Workspaces ShardUpdater::workspaces(std::span<const Format> formats, bool all) const {
  Workspaces result;
  int64_t matrices = 0;
  for (const PlannedBucket &bucket : plan_.buckets()) {
    const Format &format = formats[static_cast<size_t>(bucket.space)];
    if (!format.trains || format.algorithm == nullptr || !format.algorithm->matrix) continue;
    for (const int64_t id : bucket.params) {
      const int64_t begin = plan_.param(id).flat.begin - bucket.flat.begin;
      if (params_[id].count == 0 || (!all && intersect(bucket.own, {begin, begin + params_[id].count}).empty())) continue;
      const std::vector<int64_t> &shape = params_[id].shape;
      result.elements = std::max(result.elements, round_up(kernels::muon_workspace(shape[0], shape[1]), kTensorStart));
      ++matrices;
    }
  }
  result.count = kernels_.workspace_count(matrices);
  return result;
}

void ShardUpdater::place_matrix(UpdateJob &job, int64_t param) const {
  job.rows = params_[param].shape[0];
  job.columns = params_[param].shape[1];
  job.workspace = reinterpret_cast<float *>(workspace_memory_.data());
  job.workspace_apart = workspaces_.elements;
}

/// Returns nullptr if the update of the parameter needs no norms.
int64_t *ShardUpdater::norms_at(int64_t param) const {
  const int64_t index = norm_index_[static_cast<size_t>(param)];
  return index < 0 ? nullptr : reinterpret_cast<int64_t *>(norms_.data()) + index * kernels::kNormWords;
}

/// Sums are exact, so it does not matter which rank adds which part of a tensor.
Task ShardUpdater::add_norms(Group &group, bool over_ranks) {
  const int64_t words = norm_count_ * kernels::kNormWords;
  kernels_.clear(norms_.data(), words * static_cast<int64_t>(sizeof(int64_t)));
  kernels_.add_norms(jobs_);
  if (over_ranks) ZERO_CO_AWAIT(all_reduce(group, norms_.data(), norms_.data(), words, DType::i64, ReduceOp::sum));
  co_return Status();
}

}  // namespace zero
