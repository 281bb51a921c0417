/// @file BoundedTraining: what a small training must end with, in float64 with error bars: the rules of zero/optimizer.h written down once
/// more. Knows algorithms and storage; never stages, shards or buckets.
#pragma once

#include "tests/engine/bounds.h"
#include "tests/engine/training.h"

#include <cstdint>
#include <vector>

namespace zero::test {

/// The gradient that the contract promises for an element, to the bit: contributions in their dtype, their sum over ranks by the tree in
/// fp32, divided in fp32, rounded into the slot, with the loss scale in it. For trainings without ties.
float reduced_gradient(const Model &model, int64_t step, int64_t id, int64_t index);

/// Reduces the gradients of two steps and counts the elements, and the outcomes of steps, that are not what the contract promises. A
/// collective, for trainings without ties.
int64_t wrong_gradients(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner);

/// Weighted trainings in a dtype, some in several micro-steps, with tensors of no element and of fewer than there are ranks.
std::vector<Model> weighted_models(int64_t ranks, DType dtype);

/// The norm of those gradients in float64, without the loss scale.
double gradient_norm(const Model &model, int64_t step);

/// What the update sees of a gradient: unscaled and clipped by a factor that is rounded to fp32, the product rounded again.
Bounds clipped_gradient(const Model &model, double norm, float gradient);

/// The norm is right to the last places of float64 and rounds to the same fp32. Fails the test otherwise.
void expect_norm(double norm, double expected);

/// Every element of one tensor. Each operation that the library may round widens the bounds by half a unit of fp32 in its last place, each
/// constant likewise, and storage rounds the ends; so the bounds follow from the number of operations, and hold what the library keeps.
class BoundedTensor {
 public:
  BoundedTensor(const Model &model, int64_t id);

  /// One update; gradients by element, unscaled and clipped.
  void update(const std::vector<Bounds> &gradients);

  /// Goes on from what the library holds; a slot that is not kept is empty.
  void restart(const std::vector<float> &kept, const std::vector<float> &first, const std::vector<float> &second,
               const std::vector<float> &average);

  int64_t count() const { return static_cast<int64_t>(kept_.size()); }
  /// The parameter as it is stored.
  std::vector<Bounds> params() const;
  /// The master, or the parameter itself.
  Bounds kept(int64_t index) const { return kept_[static_cast<size_t>(index)]; }
  Bounds first(int64_t index) const { return first_[static_cast<size_t>(index)]; }
  Bounds second(int64_t index) const { return second_[static_cast<size_t>(index)]; }
  Bounds average(int64_t index) const { return average_[static_cast<size_t>(index)]; }

 private:
  void update_element(size_t index, Bounds gradient);
  void sgd(size_t index, Bounds gradient);
  void adam(size_t index, Bounds gradient);
  void adagrad(size_t index, Bounds gradient);
  void lion(size_t index, Bounds gradient);
  void store(std::vector<Bounds> &state, DType dtype) const;

  const Model &model_;
  DType dtype_;
  int64_t step_ = 0;
  std::vector<Bounds> kept_;
  std::vector<Bounds> first_;
  std::vector<Bounds> second_;
  std::vector<Bounds> average_;
};

}  // namespace zero::test
