/// @file Plan: the place and the owner of every element: flat spaces, buckets, cuts, order. Pure
/// arithmetic on the parameters, the config and the number of ranks; knows no memory, no kernels
/// and no collectives.
#pragma once

#include "core/partition.h"
#include "group/collectives.h"

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// A tensor to be laid out.
struct TensorShape {
  int64_t count;
  int64_t space = 0;
  int64_t tied_to = -1;  ///< the earlier tensor whose place this one shares
  double cost = 0;       ///< cost of its update, for tensors that are not cut
  int64_t rows = 0;      ///< number of rows by which it is reduced; it begins on a line; 0: whole
  int64_t height = 0;    ///< first of several dimensions; 0: there are fewer than two
};

/// A flat space: tensors that are stored alike, laid end to end.
struct SpaceShape {
  int64_t bucket_elements;
  bool trains = true;  ///< has gradients, which are reduced bucket by bucket
  /// Each tensor is a bucket of its own that one rank owns; ranks share the cost.
  bool whole_tensors = false;
};

/// The input of a plan. The layout depends on everything but `order`.
struct PlanInput {
  std::span<const TensorShape> tensors;  ///< in order of registration
  std::span<const SpaceShape> spaces;
  std::span<const int64_t> order;  ///< ids in the order in which gradients become ready
  const Weights &weights;
  int64_t rank;
  int64_t param_ranks = 0;  ///< those of a block; 0: all ranks
};

struct PlannedParam {
  Range flat;           ///< in its flat space
  int64_t bucket = -1;  ///< -1 for a tensor without elements
  int64_t height = 0;   ///< as in TensorShape
};

/// The rows of a tensor that is reduced by them. It is the first of its bucket; smaller ones may
/// share its last line.
struct PlannedRows {
  int64_t count = 0;  ///< 0: the bucket is reduced whole
  int64_t width = 0;  ///< elements of each
};

struct PlannedBucket {
  int64_t space = 0;
  Range flat;                     ///< in its space; begins on a line; holds whole tensors
  std::vector<int64_t> params;    ///< ids of its tensors in flat order, without tied ones
  int64_t element_count = 0;      ///< elements of tensors, gaps left out
  int64_t own_element_count = 0;  ///< those in this rank's cut
  /// The rank that owns all of it, if tensors are not cut; otherwise -1.
  int64_t whole_owner = -1;
  Range own;                ///< this rank's cut, counted within the bucket
  std::vector<Range> gaps;  ///< elements of no tensor, counted within the bucket
  PlannedRows rows = {};
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

  /// @name Ownership
  /// Computed on request, so that a plan stores nothing per pair of a rank and a tensor.
  /// @{
  int64_t rank_count() const { return weights_.size(); }
  /// Relative to the bucket.
  Range bucket_cut(int64_t index, int64_t rank) const;
  Cuts bucket_cuts(int64_t index) const;
  /// One entry per line of the bucket: 1 if a tensor of less than a line is in it or, with
  /// `unfilled`, if a part of it is in no tensor. Otherwise 0.
  std::vector<uint8_t> shared_lines(int64_t index, bool unfilled = false) const;
  /// Relative to the tensor; {0, 0} if the rank owns none of it.
  Range param_cut(int64_t id, int64_t rank) const;
  /// All ranges are empty for a tensor without elements.
  Cuts param_cuts(int64_t id) const;
  /// This rank's param_cut.
  Range own_param_cut(int64_t id) const;
  /// The part of a tensor in a range of its bucket, relative to the tensor; {0, 0} if it is empty.
  Range part_of(int64_t id, Range in_bucket) const;
  /// @}

  /// @name Blocks of ranks
  /// The ranks of a block hold all parameters of stage 3 between them. A rank therefore holds, of
  /// the cuts of each block, that of the rank in its own place: its shard, and copies of others.
  /// @{
  int64_t block_count() const { return rank_count() / block_ranks_; }
  int64_t block_ranks() const { return block_ranks_; }
  int64_t own_block() const { return rank_ / block_ranks_; }
  /// The rank of a block whose cuts this rank holds.
  int64_t twin(int64_t block) const { return block * block_ranks_ + rank_ % block_ranks_; }
  /// The cuts of a bucket that this rank holds, by block, laid end to end.
  Cuts held_cuts(int64_t index) const;
  /// param_cut() of the ranks of a block.
  Cuts param_cuts(int64_t id, int64_t block) const;
  /// @}

  /// Buckets that have gradients, in the order of their reductions.
  const std::vector<int64_t> &order() const { return order_; }
  /// The most buckets held at once if gradients arrive in the order of the input. These are the
  /// buckets that still wait for gradients, and at least two if there are two, so that one is
  /// filled while another is reduced.
  int64_t held_bucket_count() const { return held_bucket_count_; }
  /// Pieces of tensors that this rank owns, bucket by bucket.
  const std::vector<PlannedView> &views() const { return views_; }

  /// True if a bucket is reduced by rows.
  bool any_rows() const;
  int64_t element_count() const { return element_count_; }  ///< P: elements of all tensors
  /// P_r: those that this rank owns.
  int64_t own_element_count() const { return own_element_count_; }

 private:
  void lay_out(const PlanInput &input);
  void place_tensor(const PlanInput &input, int64_t id, int64_t begin, int64_t *open_bucket);
  void assign_whole_tensors(const PlanInput &input);
  void cut_params(const PlanInput &input);
  void set_order(const PlanInput &input);
  void count_held(const PlanInput &input, std::span<const size_t> last);

  Weights weights_;
  int64_t rank_ = 0;
  int64_t block_ranks_ = 1;
  std::vector<PlannedParam> params_;
  std::vector<PlannedBucket> buckets_;
  std::vector<int64_t> order_;
  int64_t held_bucket_count_ = 0;
  std::vector<PlannedView> views_;
  int64_t element_count_ = 0;
  int64_t own_element_count_ = 0;
};

}  // namespace zero
