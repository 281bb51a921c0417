/// @file What a training must end with, from plain kernels. Knows no ranks' memory, shards or buckets.
#include "kernels/kernels.h"
#include "tests/engine/training.h"

namespace zero::test {

Outcome reference_training(const Model &model) {
  const kernels::Table &table = *kernels::supported().front();
  Outcome outcome;
  std::vector<float> second;
  for (size_t i = 0; i < model.counts.size(); ++i) {
    const auto id = static_cast<int64_t>(i);
    const auto count = static_cast<size_t>(model.counts[i]);
    std::vector<float> param(count), moment(count), square(count), grad(count);
    for (size_t k = 0; k < count; ++k) param[k] = first_value_at(model, id, static_cast<int64_t>(k));
    int64_t updates = 0;
    for (int64_t step = 0; step < model.steps; ++step) {
      if (model.recipe.untouched && model.unfilled(id, step)) continue;
      ++updates;
      std::vector<std::vector<float>> given(static_cast<size_t>(model.ranks), std::vector<float>(count));
      std::vector<const void *> sources;
      double divisor = model.divisor == ZERO_DIVISOR_RANKS ? static_cast<double>(model.ranks) : model.divisor == ZERO_DIVISOR_ONE ? 1 : 0;
      for (int64_t rank = 0; rank < model.ranks; ++rank) {
        const double weight = weight_of(model, step, rank);
        if (model.divisor == ZERO_DIVISOR_WEIGHTS) divisor += weight;
        for (size_t k = 0; k < count; ++k) {
          const float value = gradient_at(model, step, rank, id, static_cast<int64_t>(k));
          given[static_cast<size_t>(rank)][k] = weight == 0 ? 0.0F : static_cast<float>(weight) * value;
        }
        sources.push_back(given[static_cast<size_t>(rank)].data());
      }
      if (count == 0) continue;
      table.reduce({grad.data(), sources.data(), model.ranks, model.counts[i], DType::f32, ReduceOp::sum, divisor});
      const kernels::HyperParameters hyper{0.01, model.momentum, 0, model.nesterov, 0.9, 0.999, 1e-8, model.weight_decay, updates};
      const kernels::Slots slots{param.data(), grad.data(), {moment.data(), square.data()}, model.counts[i]};
      const kernels::Algorithm &algorithm = *kernels::find_algorithm(model.algorithm);
      (table.*algorithm.update)(slots, algorithm.constants(hyper));
    }
    outcome.params.insert(outcome.params.end(), param.begin(), param.end());
    if (model.algorithm != "sgd" || model.momentum > 0) outcome.states.insert(outcome.states.end(), moment.begin(), moment.end());
    if (model.algorithm != "sgd") second.insert(second.end(), square.begin(), square.end());
  }
  outcome.states.insert(outcome.states.end(), second.begin(), second.end());
  return outcome;
}

}  // namespace zero::test
