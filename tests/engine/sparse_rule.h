/// @file What training by gradient descent must end with whose replicas send sparse codes: a plain program of the rules in replicas.h.
/// Knows whole tensors; no shards, buckets or collectives.
#pragma once

#include "tests/engine/coded_model.h"

#include <cstdint>
#include <vector>

namespace zero::test {

/// A sparse code and how gradients come to it.
struct SparseCode {
  int64_t number;
  int64_t kept = 8;     ///< by ZERO_CODE_TOP
  double momentum = 0;  ///< before it
  int64_t after = 0;    ///< steps in full before the first that is coded
};

/// Gradient descent with rate 1, whose parameters show the sum of all gradients.
Model sparse_model(const CodedWorld &world, const SparseCode &code);

class SparseRule {
 public:
  using Values = std::vector<std::vector<float>>;  ///< by tensor, in whole lines

  /// Parameters as a training of the model begins. `code`: that of sparse_model.
  SparseRule(const Model &model, const SparseCode &code);

  /// All ranks give the gradients of that step, and the next step is made.
  void step(int64_t gradients);
  /// The mean of the gradients of the next step, as all replicas decode it. `carried` is added to the sum of each replica before the code.
  Values mean(int64_t gradients, const Values &carried);
  /// The next step is made by no one.
  void skip() { ++made_; }
  /// The next step codes that element.
  bool codes(size_t id, size_t k) const { return !in_full() && coded_[id][k / kLine]; }
  /// From now on codes begin after so many steps.
  void begin_after(int64_t steps) { code_.after = steps; }
  Values zeros() const;
  /// A period of steps by each replica, and the plain mean of their coded changes. `first`: gradients of its first step.
  void period(int64_t first, int64_t steps);

  std::vector<float> params() const;
  /// The largest difference of an element between all that was given, and all that was applied and still waits, in float64.
  double largest_lost() const;

 private:
  bool in_full() const;
  void lay_out();
  /// The sum of a replica's gradients.
  Values sum_of(int64_t replica, int64_t gradients) const;
  /// values = what they decode to; losses = what the code has lost. Where `velocities` is not nullptr, they end where values are sent.
  void code(Values &values, Values &losses, Values *velocities, bool in_full, float unit) const;
  /// Over replicas, in the order of the library's sums.
  static float sum_over(const std::vector<Values> &of, size_t id, size_t k, size_t low, size_t high);

  const Model model_;
  SparseCode code_;
  const int64_t replicas_;
  int64_t made_ = 0;                      ///< steps
  std::vector<std::vector<bool>> coded_;  ///< by tensor and line
  Values params_;
  std::vector<Values> losses_;      ///< by replica
  std::vector<Values> velocities_;  ///< by replica
  Values result_losses_;
  std::vector<std::vector<double>> given_;
  std::vector<std::vector<double>> applied_;
};

}  // namespace zero::test
