/// @file What gradient descent must end with whose replicas send factors of low rank: a plain program of the rule in replicas.h, in
/// float64. Knows whole tensors; no buckets or collectives.
#pragma once

#include "tests/engine/coded_model.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero::test {

/// Gradient descent with rate 1, whose parameters show the sum of all gradients. `rank`: that of the factors.
Model low_rank_model(int64_t ranks, int64_t rank);
/// The tensor travels as factors.
bool is_factored(const Model &model, int64_t id, int64_t rank);

/// By tensor.
using TensorValues = std::vector<std::vector<double>>;

TensorValues first_values_of(const Model &model);
/// Adds the gradients of all ranks for a tensor.
void add_gradients(const Model &model, int64_t step, int64_t id, std::vector<double> &sum);

/// PowerSGD of the sum of all ranks' matrices, which is all that the parameters depend on.
class LowRankRule {
 public:
  LowRankRule(const Model &model, int64_t rank);

  void step(int64_t step);
  const TensorValues &params() const { return params_; }

 private:
  std::vector<double> factored(int64_t id, const std::vector<double> &matrix);

  const Model model_;
  const size_t rank_;
  TensorValues params_;
  TensorValues lost_;     ///< sums over ranks
  TensorValues factors_;  ///< Q, column by column; empty: the tensor travels in full
};

}  // namespace zero::test
