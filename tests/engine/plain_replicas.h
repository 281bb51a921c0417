/// @file PlainReplicas: gradient descent of all replicas in fp32, without shards, for one tensor, and the same steps of an optimizer. Knows
/// nothing of how replicas meet.
#pragma once

#include "tests/engine/training.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace zero::test {

/// One replica skips one step.
struct Skip {
  int64_t step = -1;
  int64_t replica = 0;
};

/// The default rate of an optimizer in tests.
inline constexpr double kPlainRate = 0.01;

/// The sum of get(lo) to get(hi - 1) in the order of the contract.
template <class Get>
float tree_sum(int64_t lo, int64_t hi, const Get &get) {
  if (hi - lo == 1) return get(lo);
  int64_t half = 1;
  while (2 * half < hi - lo) half *= 2;
  return tree_sum(lo, lo + half, get) + tree_sum(lo + half, hi, get);
}

class PlainReplicas {
 public:
  using Values = std::vector<float>;

  PlainReplicas(const Model &model, int64_t id) : model_(model), id_(id) {
    for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k) first_.push_back(first_value_at(model, id, k));
    replicas_.assign(static_cast<size_t>(model.ranks / model.recipe.replica_ranks), first_);
  }

  /// `together`: with the mean gradient of all ranks.
  void step(int64_t step, const Skip &skip, bool together = false) {
    if (model_.frozen(id_)) return;
    for (size_t replica = 0; replica < replicas_.size(); ++replica) {
      if (step == skip.step && static_cast<int64_t>(replica) == skip.replica) continue;
      const int64_t ranks = together ? model_.ranks : model_.recipe.replica_ranks;
      const int64_t first = together ? 0 : static_cast<int64_t>(replica) * ranks;
      for (size_t k = 0; k < first_.size(); ++k) {
        const auto given = [&](int64_t rank) { return gradient_at(model_, step, rank, id_, static_cast<int64_t>(k)); };
        const float gradient = tree_sum(first, first + ranks, given) / static_cast<float>(ranks);
        replicas_[replica][k] = std::fma(static_cast<float>(-kPlainRate), gradient, replicas_[replica][k]);
      }
    }
  }

  const Values &first() const { return first_; }
  const Values &values(int64_t replica) const { return replicas_[static_cast<size_t>(replica)]; }
  std::vector<Values> &all() { return replicas_; }
  const std::vector<Values> &all() const { return replicas_; }

 private:
  const Model &model_;
  int64_t id_;
  Values first_;
  std::vector<Values> replicas_;
};

/// One step of an optimizer with these gradients, scaled as the optimizer asked for. `overflows`: with one that is infinite.
inline zero_step_result plain_step(Optimizer &optimizer, const Model &model, int64_t step, double loss_scale, bool overflows) {
  for (int64_t id = model.tensors() - 1; id >= 0; --id) {
    if (model.frozen(id)) continue;
    std::vector<float> values;
    for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k)
      values.push_back(static_cast<float>(loss_scale) * gradient_at(model, step, optimizer.group()->rank(), id, k));
    if (overflows && !values.empty()) values[0] = std::numeric_limits<float>::infinity();
    expect_ok(optimizer.grad_ready(id, values.data(), 0, std::ssize(values)), "grad_ready");
  }
  zero_step_result result{};
  expect_ok(run_task(optimizer, optimizer.step(&result)), "step");
  return result;
}

}  // namespace zero::test
