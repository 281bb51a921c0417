/// @file Small trainings for engine tests: models with reproducible values, and one run of them under any configuration.
/// Knows what may differ between runs whose bits must agree; never what the results should be.
#pragma once

#include "engine/optimizer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero::test {

/// What decides the bits of a training.
struct Model {
  uint64_t seed = 1;
  int64_t ranks = 1;
  std::vector<int64_t> counts;
  std::string algorithm = "adamw";
  double momentum = 0;
  double nesterov = 0;
  double weight_decay = 0.01;
  int64_t divisor = ZERO_DIVISOR_RANKS;
  int64_t steps = 3;

  std::string text() const;
};

/// What must not decide them.
struct Manner {
  int64_t stage = 0;
  int64_t bucket_nbytes = 26'214'400;
  bool overlap = false;
  bool caller_memory = false;  ///< gradients come from the test's memory, otherwise acquired addresses are filled
  bool by_ranges = false;      ///< gradients become ready in pieces
  int64_t threads = 1;
  std::string shard_weights;
  uint64_t ready_seed = 0;  ///< 0: last tensor first; otherwise a random order, another one on each rank
  uint64_t order_seed = 0;  ///< 0: default; otherwise a random set_order
  int32_t source = ZERO_SOURCE_LOCAL;

  std::string text() const;
};

/// Everything a training ends with, on one rank.
struct Outcome {
  std::vector<float> params;
  std::vector<float> states;
  std::vector<double> norms;
  int64_t unfilled = 0;
};

/// Reproducible values in about (-1, 1), with many exponents.
float value_at(uint64_t seed, uint64_t stream, int64_t index);
/// The gradient that a rank has for an element in a step.
float gradient_at(const Model &model, int64_t step, int64_t rank, int64_t id, int64_t index);
float first_value_at(const Model &model, int64_t id, int64_t index);
double weight_of(const Model &model, int64_t step, int64_t rank);

Config make_config(const Model &model, const Manner &manner);
/// A sealed optimizer with the model's tensors, before begin. Fails the test on errors.
std::shared_ptr<Optimizer> make_optimizer(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner);
/// Writes first values and begins.
void begin_training(Optimizer &optimizer, const Model &model, const Manner &manner);
/// Gives this rank's gradients of a step.
void give_gradients(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t step);
/// One step with this rank's gradients.
zero_step_result train_step(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t step);
/// Reads a whole slot of all tensors, one after another.
std::vector<float> read_slot(Optimizer &optimizer, const Model &model, int32_t slot);
/// Runs the whole training.
Outcome train(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner);

/// What a training must end with: the same without ranks, shards and buckets, by the plain reference kernels over whole tensors; no norms.
Outcome reference_training(const Model &model);

/// 1 to 40 tensors of log-uniform sizes, some without elements, at most `most` elements in all.
Model random_model(uint64_t seed, int64_t ranks, int64_t most);
Manner random_manner(uint64_t seed, int64_t ranks);

/// Elements of two arrays that differ in any bit.
int64_t differing(const std::vector<float> &a, const std::vector<float> &b);
int64_t differing(const Outcome &a, const Outcome &b);

}  // namespace zero::test
