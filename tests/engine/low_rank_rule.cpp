/// @file The plain program of low rank.
#include "tests/engine/low_rank_rule.h"

#include "kernels/initialise.h"

#include <algorithm>
#include <cmath>

namespace zero::test {

Model low_rank_model(int64_t ranks, int64_t rank) {
  Model model = coded_model({ranks, 1}, ZERO_CODE_LOW_RANK);
  model.algorithm = "sgd";
  model.weight_decay = 0;
  model.hyper = {{ZERO_KEY_LR, 1.0}};
  model.counts = {64 * 48, 17, 40 * 30, 6 * 5, 300 * 20, 257, 0, 20 * 90};
  model.rows = {64, 0, 40, 6, 300, 0, 0, 20};
  model.recipe.residual = true;
  model.recipe.keys = {{ZERO_KEY_CODE_RANK, rank}};
  return model;
}

bool is_factored(const Model &model, int64_t id, int64_t rank) {
  if (!model.is_table(id)) return false;
  const std::vector<int64_t> shape = model.shape(id);
  return shape[0] * shape[1] > 2 * rank * (shape[0] + shape[1]);
}

TensorValues first_values_of(const Model &model) {
  TensorValues values;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    values.emplace_back();
    for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k) values.back().push_back(first_value_at(model, id, k));
  }
  return values;
}

void add_gradients(const Model &model, int64_t step, int64_t id, std::vector<double> &sum) {
  for (int64_t rank = 0; rank < model.ranks; ++rank) {
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += static_cast<double>(gradient_at(model, step, rank, id, static_cast<int64_t>(k)));
  }
}

LowRankRule::LowRankRule(const Model &model, int64_t rank)
    : model_(model), rank_(static_cast<size_t>(rank)), params_(first_values_of(model)) {
  lost_ = params_;
  for (std::vector<double> &lost : lost_) std::fill(lost.begin(), lost.end(), 0);
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const int64_t columns = is_factored(model, id, rank) ? model.shape(id)[1] : 0;
    std::vector<float> first(static_cast<size_t>(columns * rank));
    kernels::initialise(first.data(), columns * rank, kernels::Initialiser::uniform, -1, 1, 0, static_cast<uint64_t>(id), 0);
    factors_.emplace_back(first.begin(), first.end());
  }
}

void LowRankRule::step(int64_t step) {
  for (int64_t id = 0; id < model_.tensors(); ++id) {
    std::vector<double> sum = lost_[static_cast<size_t>(id)];
    add_gradients(model_, step, id, sum);
    std::vector<double> applied = sum;
    if (!factors_[static_cast<size_t>(id)].empty()) applied = factored(id, sum);
    for (size_t k = 0; k < sum.size(); ++k) {
      lost_[static_cast<size_t>(id)][k] = sum[k] - applied[k];
      params_[static_cast<size_t>(id)][k] -= applied[k] / static_cast<double>(model_.ranks);
    }
  }
}

std::vector<double> LowRankRule::factored(int64_t id, const std::vector<double> &matrix) {
  const auto rows = static_cast<size_t>(model_.shape(id)[0]);
  const auto columns = static_cast<size_t>(model_.shape(id)[1]);
  std::vector<double> &q = factors_[static_cast<size_t>(id)];
  std::vector<std::vector<double>> p(rank_, std::vector<double>(rows));
  for (size_t r = 0; r < rank_; ++r) {
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < columns; ++j) p[r][i] += matrix[i * columns + j] * q[r * columns + j];
    }
    for (size_t before = 0; before <= r; ++before) {
      double along = 0;
      for (size_t i = 0; i < rows; ++i) along += p[r][i] * p[before][i];
      for (size_t i = 0; i < rows; ++i) p[r][i] = before < r ? p[r][i] - along * p[before][i] : p[r][i] / std::sqrt(along);
    }
  }
  std::vector<double> product(matrix.size());
  for (size_t r = 0; r < rank_; ++r) {
    for (size_t j = 0; j < columns; ++j) {
      q[r * columns + j] = 0;
      for (size_t i = 0; i < rows; ++i) q[r * columns + j] += matrix[i * columns + j] * p[r][i];
      for (size_t i = 0; i < rows; ++i) product[i * columns + j] += p[r][i] * q[r * columns + j];
    }
  }
  return product;
}

}  // namespace zero::test
