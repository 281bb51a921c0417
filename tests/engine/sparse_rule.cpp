/// @file The plain program of sparse codes.
#include "tests/engine/sparse_rule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

namespace zero::test {
namespace {

std::vector<float> largest_of(const std::vector<float> &line, int64_t kept) {
  std::vector<size_t> places(line.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return std::abs(line[a]) > std::abs(line[b]); });
  const float largest = std::abs(line[places.front()]);
  std::vector<float> out(line.size(), 0);
  for (size_t i = 0; i < static_cast<size_t>(kept) && largest > 0; ++i) {
    const float value = line[places[i]];
    out[places[i]] = std::nearbyint(value * (127 / largest)) * (largest / 127);
  }
  return out;
}

std::vector<float> signs_of(const std::vector<float> &line) {
  double sum = 0;
  for (const float value : line) sum += std::abs(static_cast<double>(value));
  const auto mean = static_cast<float>(sum / 256);
  std::vector<float> out;
  for (const float value : line) out.push_back(value < 0 ? -mean : mean);
  return out;
}

std::vector<float> decoded_line(const std::vector<float> &line, const SparseCode &code) {
  return code.number == ZERO_CODE_TOP ? largest_of(line, code.kept) : signs_of(line);
}

}  // namespace

Model sparse_model(const CodedWorld &world, const SparseCode &code) {
  Model model = coded_model(world, code.number);
  model.algorithm = "sgd";
  model.weight_decay = 0;
  model.hyper = {{ZERO_KEY_LR, 1.0}};
  if (code.momentum > 0) model.hyper.emplace_back(ZERO_KEY_CODE_MOMENTUM, code.momentum);
  if (code.number == ZERO_CODE_TOP) model.recipe.keys.emplace_back(ZERO_KEY_CODE_TOP, code.kept);
  if (code.after > 0) model.recipe.keys.emplace_back(ZERO_KEY_CODE_AFTER, code.after);
  model.recipe.residual = true;
  return model;
}

SparseRule::SparseRule(const Model &model, const SparseCode &code)
    : model_(model), code_(code), replicas_(model.ranks / model.recipe.replica_ranks), params_(zeros()), result_losses_(zeros()) {
  losses_.assign(static_cast<size_t>(replicas_), zeros());
  velocities_ = losses_;
  for (const std::vector<float> &tensor : params_) given_.emplace_back(tensor.size());
  applied_ = given_;
  lay_out();
  for (int64_t id = 0; id < model_.tensors(); ++id) {
    for (int64_t k = 0; k < model_.counts[static_cast<size_t>(id)]; ++k)
      params_[static_cast<size_t>(id)][static_cast<size_t>(k)] = first_value_at(model_, id, k);
  }
}

SparseRule::Values SparseRule::zeros() const {
  Values values;
  for (const int64_t count : model_.counts) values.emplace_back(static_cast<size_t>((count + 255) / 256 * 256));
  return values;
}

/// Tensors lie end to end, on multiples of 32 elements, those of a line or more on multiples of 256; smaller ones cross none. A line with
/// a tensor of less than a line travels in full; with signs any that a tensor does not fill.
void SparseRule::lay_out() {
  int64_t end = 0;
  std::set<int64_t> in_full;
  std::vector<int64_t> first_lines;
  for (const int64_t count : model_.counts) {
    int64_t begin = round_up(end, 32);
    if (count >= kLine || (count > 0 && begin / kLine != (begin + count - 1) / kLine)) begin = round_up(begin, kLine);
    if (count > 0) end = begin + count;
    if (count > 0 && (count < kLine || (code_.number == ZERO_CODE_SIGN && count % kLine != 0))) in_full.insert((end - 1) / kLine);
    first_lines.push_back(begin / kLine);
  }
  for (size_t id = 0; id < params_.size(); ++id) {
    coded_.emplace_back();
    for (size_t line = 0; line < params_[id].size() / kLine; ++line)
      coded_.back().push_back(in_full.count(first_lines[id] + static_cast<int64_t>(line)) == 0);
  }
}

SparseRule::Values SparseRule::sum_of(int64_t replica, int64_t gradients) const {
  Values sums = zeros();
  const int64_t ranks = model_.recipe.replica_ranks;
  for (int64_t id = 0; id < model_.tensors(); ++id) {
    for (int64_t k = 0; k < model_.counts[static_cast<size_t>(id)]; ++k) {
      float &sum = sums[static_cast<size_t>(id)][static_cast<size_t>(k)];
      sum = gradient_at(model_, gradients, replica * ranks, id, k);
      if (ranks == 2) sum += gradient_at(model_, gradients, replica * ranks + 1, id, k);
    }
  }
  return sums;
}

void SparseRule::code(Values &values, Values &losses, Values *velocities, bool in_full, float unit) const {
  for (size_t id = 0; id < values.size(); ++id) {
    for (size_t begin = 0; begin < values[id].size(); begin += 256) {
      const auto at = static_cast<int64_t>(begin);
      std::vector<float> line(values[id].begin() + at, values[id].begin() + at + 256);
      const bool is_coded = !in_full && coded_[id][begin / 256];
      if (is_coded) line = decoded_line(line, code_);
      for (size_t i = 0; i < 256; ++i) {
        losses[id][begin + i] = (values[id][begin + i] - line[i]) * unit;
        if (velocities != nullptr && is_coded && line[i] != 0) (*velocities)[id][begin + i] = 0;
        values[id][begin + i] = line[i];
      }
    }
  }
}

float SparseRule::sum_over(const std::vector<Values> &of, size_t id, size_t k, size_t low, size_t high) {
  if (high - low == 1) return of[low][id][k];
  const size_t middle = low + std::bit_floor(high - low - 1);
  return sum_over(of, id, k, low, middle) + sum_over(of, id, k, middle, high);
}

bool SparseRule::in_full() const {
  const int64_t flush = model_.recipe.flush_period;
  return made_ < code_.after || (flush > 0 && (made_ + 1) % flush == 0);
}

SparseRule::Values SparseRule::mean(int64_t gradients, const Values &carried) {
  const auto unit = static_cast<float>(model_.ranks);
  const auto momentum = static_cast<float>(code_.momentum);
  std::vector<Values> sent;
  for (size_t replica = 0; replica < losses_.size(); ++replica) {
    Values values = sum_of(static_cast<int64_t>(replica), gradients);
    for (size_t id = 0; id < values.size(); ++id) {
      for (size_t k = 0; k < values[id].size(); ++k) {
        given_[id][k] += static_cast<double>(values[id][k]);
        float &velocity = velocities_[replica][id][k];
        velocity = momentum * velocity + (values[id][k] + carried[id][k]);
        values[id][k] = velocity + losses_[replica][id][k];
      }
    }
    code(values, losses_[replica], code_.momentum > 0 ? &velocities_[replica] : nullptr, in_full(), 1);
    if (code_.momentum == 0) velocities_[replica] = zeros();
    sent.push_back(values);
  }
  Values results = zeros();
  for (size_t id = 0; id < results.size(); ++id) {
    for (size_t k = 0; k < results[id].size(); ++k)
      results[id][k] = sum_over(sent, id, k, 0, sent.size()) / unit + result_losses_[id][k] / unit;
  }
  code(results, result_losses_, nullptr, in_full(), unit);
  ++made_;
  return results;
}

void SparseRule::step(int64_t gradients) {
  const Values results = mean(gradients, zeros());
  for (size_t id = 0; id < results.size(); ++id) {
    for (size_t k = 0; k < results[id].size(); ++k) {
      params_[id][k] -= results[id][k];
      applied_[id][k] += static_cast<double>(results[id][k]) * static_cast<double>(model_.ranks);
    }
  }
}

void SparseRule::period(int64_t first, int64_t steps) {
  std::vector<Values> changes;
  Values dropped = zeros();
  for (int64_t replica = 0; replica < replicas_; ++replica) {
    Values values = params_;
    for (int64_t step = 0; step < steps; ++step) {
      const Values sums = sum_of(replica, first + step);
      for (size_t id = 0; id < values.size(); ++id) {
        for (size_t k = 0; k < values[id].size(); ++k) values[id][k] -= sums[id][k] / static_cast<float>(model_.recipe.replica_ranks);
      }
    }
    for (size_t id = 0; id < values.size(); ++id) {
      for (size_t k = 0; k < values[id].size(); ++k) values[id][k] = params_[id][k] - values[id][k];
    }
    code(values, dropped, nullptr, false, 1);
    changes.push_back(values);
  }
  Values means = zeros();
  for (size_t id = 0; id < means.size(); ++id) {
    for (size_t k = 0; k < means[id].size(); ++k)
      means[id][k] = sum_over(changes, id, k, 0, changes.size()) / static_cast<float>(replicas_);
  }
  code(means, dropped, nullptr, false, 1);
  for (size_t id = 0; id < means.size(); ++id) {
    for (size_t k = 0; k < means[id].size(); ++k) params_[id][k] -= means[id][k];
  }
}

std::vector<float> SparseRule::params() const {
  std::vector<float> all;
  for (size_t id = 0; id < params_.size(); ++id) all.insert(all.end(), params_[id].begin(), params_[id].begin() + model_.counts[id]);
  return all;
}

double SparseRule::largest_lost() const {
  double largest = 0;
  for (size_t id = 0; id < params_.size(); ++id) {
    for (size_t k = 0; k < params_[id].size(); ++k) {
      double waits = static_cast<double>(result_losses_[id][k]);
      for (const Values &losses : losses_) waits += static_cast<double>(losses[id][k]);
      largest = std::max(largest, std::abs(given_[id][k] - applied_[id][k] - waits));
    }
  }
  return largest;
}

}  // namespace zero::test
