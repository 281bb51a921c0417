/// @file Plan: where every element lies and which rank owns it: flat layout, buckets, cuts, order. Pure arithmetic from the parameters, the
/// config and the number of ranks; knows no memory, no kernels and no collectives.
#pragma once

#include "core/partition.h"
#include "group/collectives.h"

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// What a plan is made from. The layout depends on everything but `order`.
struct PlanInput {
  std::span<const int64_t> counts;  ///< elements of each tensor, in order of registration
  std::span<const int64_t> order;   ///< ids in the order in which gradients become ready
  int64_t bucket_elements;
  const Weights &weights;
  int64_t rank;
};

struct PlannedParam {
  Range flat;           ///< in the flat space
  int64_t bucket = -1;  ///< -1 for a tensor without elements
  Cuts cuts;            ///< who owns which of its elements, counted within the tensor
};

struct PlannedBucket {
  Range flat;               ///< begins on a line; holds whole tensors
  int64_t first_param = 0;  ///< ids [first_param, end_param) lie here, but for those without elements
  int64_t end_param = 0;
  int64_t element_count = 0;  ///< elements of tensors, gaps left out
  Cuts cuts;                  ///< counted within the bucket
  Range own;                  ///< this rank's cut
  int64_t shard_begin = 0;    ///< where this rank's cut lies in its shards, on a line
  std::vector<Range> gaps;    ///< elements of no tensor, counted within the bucket
};

/// A contiguous piece of a tensor in this rank's shard.
struct PlannedView {
  int64_t param;
  int64_t offset;  ///< within the tensor
  int64_t count;
};

class Plan {
 public:
  Plan() = default;
  explicit Plan(const PlanInput &input);

  const std::vector<PlannedParam> &params() const { return params_; }
  const std::vector<PlannedBucket> &buckets() const { return buckets_; }
  const PlannedParam &param(int64_t id) const { return params_[static_cast<size_t>(id)]; }
  const PlannedBucket &bucket(int64_t index) const { return buckets_[static_cast<size_t>(index)]; }
  int64_t bucket_count() const { return static_cast<int64_t>(buckets_.size()); }
  /// Buckets in the order of their reductions.
  const std::vector<int64_t> &order() const { return order_; }
  /// Pieces of tensors that this rank owns, in flat order.
  const std::vector<PlannedView> &views() const { return views_; }

  int64_t extent() const { return extent_; }                        ///< elements of the flat space, gaps included
  int64_t shard_extent() const { return shard_extent_; }            ///< elements of this rank's shards, padding included
  int64_t element_count() const { return element_count_; }          ///< P: elements of all tensors
  int64_t own_element_count() const { return own_element_count_; }  ///< P_r: those that this rank owns
  int64_t largest_bucket() const { return largest_bucket_; }        ///< elements
  int64_t largest_param() const { return largest_param_; }          ///< elements

 private:
  void lay_out(const PlanInput &input);
  void open_bucket(int64_t begin);
  void cut_buckets(const PlanInput &input);
  void cut_params(const PlanInput &input);
  void set_order(std::span<const int64_t> order);

  std::vector<PlannedParam> params_;
  std::vector<PlannedBucket> buckets_;
  std::vector<int64_t> order_;
  std::vector<PlannedView> views_;
  int64_t extent_ = 0;
  int64_t shard_extent_ = 0;
  int64_t element_count_ = 0;
  int64_t own_element_count_ = 0;
  int64_t largest_bucket_ = 0;
  int64_t largest_param_ = 0;
};

/// Bytes that a stage needs for ever on one rank, 4 bytes per element of each slot (Rajbhandari et al., "ZeRO", 2020, figure 1).
struct MemoryFormula {
  int64_t param_nbytes;
  int64_t grad_nbytes;
  int64_t state_nbytes;
};
MemoryFormula memory_formula(int64_t stage, int64_t element_count, int64_t own_element_count, int64_t state_count);

}  // namespace zero
