/// @file LowRankSums: sums over replicas of one rank, in which large matrices travel as factors of
/// low rank and all else in fp32. Losses are added to later gradients.
#pragma once

#include "engine/config/settings.h"
#include "engine/gradients/reduce_strategy.h"
#include "engine/layout/plan.h"
#include "kernels/low_rank.h"
#include "memory/arena.h"

#include <cstdint>
#include <vector>

namespace zero {

/// PowerSGD (Vogels et al., 2019, algorithms 1 and 2), with the sums of ranks in the place of their
/// means. M is this rank's gradient and what it lost before:
///
///     P = orthonormal(sum of M Q);  Q' = M^T P;  lost = M - P Q'^T;  Q = sum of Q'
///
/// The sum of the bucket is P Q^T.
///
/// Algorithm 2 subtracts the mean of all ranks instead of the rank's own Q'. The sum of losses over
/// ranks is the same, and so are all later sums. But differences between ranks, which no sum
/// contains, do not pile up here, and the divisor may be any.
///
/// Losses and Q are carried to the next step.
class LowRankSums final : public ReduceStrategy {
 public:
  LowRankSums(const Plan &plan, const ReplicaSettings &replicas) : plan_(plan), rank_(replicas.low_rank) {}

  /// Elements that each rank gives to the sums of a step.
  static int64_t given_count(const Plan &plan, int64_t rank);

  int64_t workspace_nbytes() const override;
  Status open(const MemorySource &source) override;
  void close() override;
  Task sum(Group &group, int64_t bucket, Contribution given, ReduceScatter call) override;
  void begin_step(const StepTerms &terms) override;
  void end_step(bool applied) override;
  void forget() override;
  CarriedState *carried(Carried kind) override;
  CarriedPart carried_of(Carried kind, int64_t id, int64_t replica) override;

  /// A tensor as a matrix; if it shortens(), it travels as factors of this rank.
  static kernels::LowRank sizes_of(const Plan &plan, int64_t id, int64_t rank);

 private:
  struct Matrix {
    int64_t param;
    int64_t begin;  ///< in its bucket
    kernels::LowRank sizes;
    int64_t number = 0;  ///< that of its runs
    // In the current sum:
    bool finite = true;
    float *lost = nullptr;    ///< by this step
    float *factor = nullptr;  ///< Q, for the next step
  };
  struct Bucket {
    std::vector<Matrix> matrices;
    std::vector<Range> others;  ///< tensors that travel in full
    int64_t left_count = 0;
    int64_t right_count = 0;
    int64_t other_count = 0;
    int64_t longest = 0;  ///< column of P

    int64_t given_count() const { return left_count + other_count + right_count; }
  };
  struct Needs;

  static Bucket bucket_of(const Plan &plan, int64_t index, int64_t rank);
  Needs needs() const;
  void add_lost(Bucket &bucket, float *values);
  void make_left(const Bucket &bucket, const float *values);
  void make_right(Bucket &bucket, float *values);
  void make_sums(const Bucket &bucket, float *values);
  Task sum_factors(Group &group, Bucket &bucket, float *values, uint64_t what);

  const Plan &plan_;
  const int64_t rank_;  ///< columns of factors
  Arena memory_;
  float *packed_ = nullptr;  ///< left factors, other tensors, right factors of a bucket
  double *column_ = nullptr;
  std::vector<Bucket> buckets_;
  CarriedState losses_;   ///< by matrix
  CarriedState factors_;  ///< by matrix
  StepTerms terms_{};
};

}  // namespace zero
